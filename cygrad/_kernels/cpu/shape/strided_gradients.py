"""Gradients of views with arbitrary strides, which need a model of the memory.

Note [Strided gradients]
------------------------
A tensor and a view of its memory are two geometries: (shape, strides) of the tensor, (shape, strides, offset) of the
view, in bytes and relative to the tensor's first element. The view's gradient is accumulated in the memory that it
shows; an address shown twice gets the sum. The tensor's gradient is read back from there; where several of its elements
share an address (an expanded tensor), each gets an equal share, so that their sum is right. `strided_sum` does this,
and `strided_gather` is its transpose. Neither touches the original memory.
"""

import math

import numpy as np

from cygrad._kernels.cpu.base.half_sums import sum_type
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.view_geometry import restride
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted


def strided_sum(g, view, base):
    """The gradient of a tensor with geometry `base`, from the gradient `g` of a view of it with geometry `view`."""
    g, view = _sum_repeats(g, view)
    if _may_overlap(*view[:2]) or _may_overlap(*base):
        return sum_by_place(g, view, base)
    first = _blank(g, view, base)
    restride(first, *view)[...] = g
    return restride(first, *base, 0)


def strided_gather(a, view, base):
    """The elements that `view` shows of memory that holds `a` in geometry `base`; zero outside of it."""
    if _is_inside(a, view, base):
        return restride(a, *view).copy("C")
    if _may_overlap(*base):
        a = mean_by_place(a, base)
    first = _blank(a, view, base)
    restride(first, *base, 0)[...] = a
    return restride(first, *view).copy("C")


@noted
def strided_scatter(a, part, view, base):
    """A copy of `a`, with geometry `base`, in which `view` shows `part`, or zeros if that is None."""
    if _is_inside(a, view, base):
        result = first = a.copy()
    else:
        first = _blank(a, view, base)
        result = restride(first, *base, 0)
        result[...] = a
    restride(first, *view)[...] = 0 if part is None else part
    return result


def _is_inside(a, view, base):
    """Whether the view lies within the memory of a copy of `a`."""
    if not a.flags.c_contiguous or (a.shape, a.strides) != base:
        return False
    low, high = extent(view[0], view[1], a.itemsize)
    return low + view[2] >= 0 and high + view[2] <= a.nbytes


def _may_overlap(shape, strides):
    """Whether two elements may share an address. May be True without overlap, but False is certain."""
    if 0 in shape:
        return False
    reach = 0
    for stride, length in sorted((abs(stride), length) for length, stride in zip(shape, strides) if length > 1):
        if stride <= reach:
            return True
        reach += (length - 1) * stride
    return False


@silent
def _sum_repeats(g, view):
    """Sum over the dimensions of stride 0, whose elements share an address."""
    shape, strides, offset = view
    dims = tuple(i for i in range(len(shape)) if strides[i] == 0 and shape[i] != 1)
    if not dims:
        return g, view
    kept = tuple(1 if i in dims else length for i, length in enumerate(shape))
    sums = g.sum(dims, keepdims=True, dtype=sum_type(g.dtype))  # on GPUs it may be of half precision
    return sums.astype(g.dtype, copy=False), (kept, strides, offset)


def extent(shape, strides, itemsize):
    """The byte range [low, high) around the first element that such an array spans."""
    low, high = 0, itemsize
    for length, stride in zip(shape, strides):
        if length == 0:
            return 0, 0
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high


def laid_out(shape, strides, dtype, beside):
    """A new array with exactly these strides, on the device of `beside`. Elements are uninitialized, gaps are zero."""
    low, high = extent(shape, strides, dtype.itemsize)
    make = np.empty if high - low == dtype.itemsize * math.prod(shape) else np.zeros
    memory = make((high - low + dtype.itemsize - 1) // dtype.itemsize, dtype, like=beside)
    return restride(memory, shape, strides, -low)


def _blank(like, view, base):
    """A 0-dim array at the first element of `base`, in zeroed memory with room for both geometries."""
    dtype, (low, high) = like.dtype, extent_of_both(like.dtype, view, base)
    memory = np.zeros(-(-max(high - low, dtype.itemsize) // dtype.itemsize), dtype, like=like)
    return restride(memory, (), (), -low)


def extent_of_both(dtype, view, base):
    """The byte range [low, high) around the first element of `base` that both geometries span."""
    low, high = extent(base[0], base[1], dtype.itemsize)
    low_view, high_view = extent(view[0], view[1], dtype.itemsize)
    if low_view != high_view:
        low = min(low, view[2] + low_view)
        high = max(high, view[2] + high_view)
    return low, high


def _places(shape, strides, offset=0):
    """The byte offset of each element, flattened."""
    places = np.asarray(offset, np.int64)
    for length, stride in zip(shape, strides):
        places = places[..., None] + np.arange(length, dtype=np.int64) * stride
    return places.reshape(-1)


def sum_by_place(g, view, base):
    places, which = np.unique(np.concatenate([_places(*view), _places(*base)]), return_inverse=True)
    in_view, in_base = np.split(which.reshape(-1), [g.size])
    totals = np.zeros(len(places), g.dtype)
    np.add.at(totals, in_view, g.reshape(-1))
    shares = np.bincount(in_base, minlength=len(places))[in_base].astype(g.dtype)
    return (totals[in_base] / shares).astype(g.dtype, copy=False).reshape(base[0])


def mean_by_place(a, base):
    """Give all elements at an address their mean: the transpose of giving each an equal share."""
    places, which = np.unique(_places(*base), return_inverse=True)
    which = which.reshape(-1)
    totals = np.zeros(len(places), a.dtype)
    np.add.at(totals, which, a.reshape(-1))
    return (totals / np.bincount(which))[which].astype(a.dtype, copy=False).reshape(base[0])


dispatching(globals(), "sum_by_place mean_by_place")
