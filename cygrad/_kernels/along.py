"""Work along axes that is no reduction: running sums, shifts, picking by index."""

import numpy as np

from cygrad._kernels.by_numpy import silent


@silent
def cumsum(a, axis, reverse=False):
    """The running sum along an axis, from the end if `reverse`."""
    if a.ndim == 0:
        return a.copy()
    if reverse:
        out = np.empty(a.shape, a.dtype)
        np.cumsum(np.flip(a, axis), axis, out=np.flip(out, axis))
        return out
    return np.cumsum(a, axis, dtype=a.dtype)


@silent
def cumsum_within(a, axis):
    """The running sum, written into the array itself."""
    np.cumsum(a, axis, out=a)


@silent
def cumprod_within(a, axis):
    """The running product, written into the array itself."""
    np.cumprod(a, axis, out=a)


@silent
def cumprod(a, axis):
    """The running product along an axis."""
    if a.ndim == 0:
        return a.copy()
    if a.shape[axis] > 1 and a.strides[axis] == 0:
        return _powers(a, axis)
    return np.multiply.accumulate(a, axis)


def _powers(a, axis):
    """The same of one element repeated: twice as many powers at each step."""
    out = np.empty(a.shape, a.dtype)
    a, powers = np.moveaxis(a, axis, -1), np.moveaxis(out, axis, -1)
    powers[..., 0] = a[..., 0]
    count, known = a.shape[-1], 1
    while known < count:
        more = min(known, count - known)
        np.multiply(powers[..., :more], powers[..., known - 1 : known], out=powers[..., known : known + more])
        known += more
    return out


def shift(a, axis, steps, fill):
    """`a` moved along an axis by `steps` places (backwards if negative), with `fill` in the places left free."""
    out = np.full_like(a, fill)
    length = a.shape[axis]
    source = [slice(None)] * a.ndim
    target = list(source)
    source[axis] = slice(max(-steps, 0), max(length - steps, 0))
    target[axis] = slice(max(steps, 0), max(length + steps, 0))
    out[tuple(target)] = a[tuple(source)]
    return out


def select_along(a, index, axis, keepdim):
    """The elements of `a` at the positions `index` along an axis, one for each place of the others."""
    if a.ndim == 0:
        return a.copy()
    index = index if keepdim else np.expand_dims(index, axis)
    values = np.take_along_axis(a, index, axis)
    return values if keepdim else np.asarray(values.squeeze(axis))


def place_along(values, index, shape, axis, keepdim):
    """Zeros of that shape with `values` at the positions `index` along an axis: undoes `select_along`."""
    if not shape:
        return values.copy()
    out = np.zeros(shape, values.dtype)
    if not keepdim:
        values, index = np.expand_dims(values, axis), np.expand_dims(index, axis)
    np.put_along_axis(out, index, values, axis)
    return out


def nonzero(a):
    """The indices of what is not zero: (how many, dimensions), int64."""
    found = np.nonzero(np.atleast_1d(a))
    if a.ndim == 0:
        return np.empty((len(found[0]), 0), np.int64)
    return np.stack(found).T
