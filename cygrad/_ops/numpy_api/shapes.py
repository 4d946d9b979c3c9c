"""NumPy's functions that reshape, join and split, on tensors; see functions.py."""

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._ops.numpy_api.operands import (
    as_tensor,
    convert,
    deliver,
    dims_of,
    means,
    method_of,
    public,
    typed,
    wrapped,
)
from cygrad._ops.numpy_api.ufuncs import reduce_

# -- shapes --


@means("reshape")
def reshape(a, /, shape=None, order="C", *, copy=None, newshape=None):
    t, shape = as_tensor(a), newshape if shape is None else shape
    if order == "F":
        size = tuple(array_of(t).reshape(shape, order="F").shape)
        return t.permute(*reversed(range(t.ndim))).reshape(size[::-1]).permute(*reversed(range(len(size))))
    result = t.reshape(shape)
    return result.clone() if copy else result


@means("ravel")
def ravel(a, order="C"):
    return reshape(a, -1, "F" if order == "F" else "C")


@means("transpose", "permute_dims")
def transpose(a, axes=None):
    t = as_tensor(a)
    return t.permute(*(reversed(range(t.ndim)) if axes is None else axes))


@means("squeeze")
def squeeze(a, axis=None):
    t = as_tensor(a)
    dims = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for dim in dims:
        if t.shape[dim] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return t.squeeze() if axis is None else t.squeeze(dims)


@means("expand_dims")
def expand_dims(a, axis):
    t = as_tensor(a)
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = t.ndim + len(axes)
    for dim in sorted(dim % ndim if -ndim <= dim < ndim else dim for dim in axes):
        t = t.unsqueeze(dim)
    return t


@means("broadcast_to")
def broadcast_to(array, shape, subok=False):
    return as_tensor(array).expand(shape)


@means("broadcast_arrays")
def broadcast_arrays(*args, subok=False):
    try:
        tensors = [as_tensor(arg) for arg in args]
    except (RuntimeError, TypeError):  # None and strings, which Matplotlib passes
        tensors = None
    if tensors is None:
        return np.broadcast_arrays(*convert(args), subok=subok)
    return tuple(public("broadcast_tensors")(*tensors))


@means("flip")
def flip(m, axis=None):
    t = as_tensor(m)
    return public("flip")(t, dims_of(axis, t) if axis is None or isinstance(axis, tuple) else (axis,))


@means("roll")
def roll(a, shift, axis=None):
    return public("roll")(as_tensor(a), shift, () if axis is None else axis)


@means("repeat")
def repeat(a, repeats, axis=None):
    times = repeats if isinstance(repeats, int) else as_tensor(repeats)
    return public("repeat_interleave")(as_tensor(a), times, axis)


@means("tile")
def tile(A, reps):
    return public("tile")(as_tensor(A), (reps,) if isinstance(reps, int) else tuple(reps))


@means("diagonal")
def diagonal(a, offset=0, axis1=0, axis2=1):
    return public("diagonal")(as_tensor(a), offset, axis1, axis2)


@means("trace")
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    return reduce_(np.add, diagonal(a, offset, axis1, axis2), -1, dtype, out)


@means("swapaxes")
def swapaxes(a, axis1, axis2):
    return as_tensor(a).transpose(axis1, axis2)


@means("moveaxis")
def moveaxis(a, source, destination):
    return public("movedim")(as_tensor(a), source, destination)


for _name in ("fliplr", "flipud", "real", "imag", "sinc", "i0", "isreal", "isposinf", "isneginf"):
    means(_name)(method_of(_name))


def with_offset(name):
    def function(m, k=0):
        return public(name)(as_tensor(m), k)

    return function


for _name in ("tril", "triu", "diag", "diagflat"):
    means(_name)(with_offset(_name))


@means("rot90")
def rot90(m, k=1, axes=(0, 1)):
    return public("rot90")(as_tensor(m), k, axes)


@means("copy")
def copy(a, order="K", subok=False):
    return as_tensor(a).clone()


# -- joining and splitting --


@means("concatenate", "concat")
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    tensors = list(map(as_tensor, arrays))
    tensors, axis = ([t.reshape(-1) for t in tensors], 0) if axis is None else (tensors, axis)
    return deliver(typed(public("cat")(tensors, axis), dtype), out)


@means("stack")
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    return deliver(typed(public("stack")(list(map(as_tensor, arrays)), axis), dtype), out)


def joining(name):
    def function(tup, *, dtype=None, casting="same_kind"):
        return typed(public(name)(list(map(as_tensor, tup))), dtype)

    return function


for _name in ("hstack", "vstack", "dstack", "column_stack"):
    means(_name)(joining(_name))


@means("append")
def append(arr, values, axis=None):
    return concatenate((arr, values), axis)


@means("array_split")
def array_split(ary, indices_or_sections, axis=0):
    parts = indices_or_sections if isinstance(indices_or_sections, int) else tuple(indices_or_sections)
    return list(public("tensor_split")(as_tensor(ary), parts, axis))


@means("split")
def split(ary, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int) and as_tensor(ary).shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


@means("atleast_1d")
def atleast_1d(*arys):
    return each("atleast_1d", arys)


@means("atleast_2d")
def atleast_2d(*arys):
    return each("atleast_2d", arys)


@means("atleast_3d")
def atleast_3d(*arys):
    return each("atleast_3d", arys)


def each(name, arrays):
    results = tuple(public(name)(as_tensor(a)) for a in arrays)
    return results[0] if len(results) == 1 else results


@means("meshgrid")
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    grids = public("meshgrid")(*map(as_tensor, xi), indexing=indexing)
    return tuple(grid.clone() if copy else grid for grid in grids)


def along(axis, name, least):
    def function(ary, indices_or_sections):
        if as_tensor(ary).ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return split(ary, indices_or_sections, axis)

    return function


means("vsplit")(along(0, "vsplit", 2))
means("dsplit")(along(2, "dsplit", 3))


@means("hsplit")
def hsplit(ary, indices_or_sections):
    ndim = as_tensor(ary).ndim
    if ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ndim > 1 else 0)


@means("unstack")
def unstack(x, /, *, axis=0):
    return public("unbind")(as_tensor(x), axis)


@means("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x, /):
    return as_tensor(x).transpose(-2, -1)


@means("rollaxis")
def rollaxis(a, axis, start=0):
    t = as_tensor(a)
    axis, start = axis % t.ndim, start + t.ndim if start < 0 else start
    return public("movedim")(t, axis, start - 1 if axis < start else start)


@means("pad")
def pad(array, pad_width, mode="constant", **options):
    t = as_tensor(array)
    widths = np.broadcast_to(np.asarray(pad_width), (t.ndim, 2)).tolist()
    fills = np.unique(options.get("constant_values", 0)).tolist()
    if mode == "constant" and len(fills) == 1 and options.keys() <= {"constant_values"}:
        (fill,) = fills
        flat = [width for pair in reversed(widths) for width in pair]
        return public("nn.functional.pad")(t, flat, value=fill)
    if mode not in ("edge", "wrap", "reflect", "symmetric") or options.get("reflect_type", "even") != "even":
        if t.requires_grad:
            raise TypeError(f"pad() of a tensor that requires grad does not support mode {mode!r} with {options}")
        return wrapped(np.pad(convert(t), pad_width, mode, **options))
    places = [np.pad(np.arange(n), pair, mode, **options) for n, pair in zip(t.shape, widths)]
    for dim, place in enumerate(places):
        t = public("index_select")(t, dim, as_tensor(place))
    return t


@means("block")
def block(arrays):
    if not isinstance(arrays, list):
        return as_tensor(arrays)

    def depth(value):
        return 1 + max(map(depth, value)) if isinstance(value, list) else 0

    levels = depth(arrays)
    ndim = max(levels, max(as_tensor(part).ndim for part in leaves(arrays)))

    def joined(value, level):
        if not isinstance(value, list):
            t = as_tensor(value)
            return t.reshape([1] * (ndim - t.ndim) + list(t.shape))
        return concatenate([joined(part, level - 1) for part in value], -level)

    return joined(arrays, levels)


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]


@means("delete")
def delete(arr, obj, axis=None):
    t = as_tensor(arr)
    t, axis = (t.reshape(-1), 0) if axis is None else (t, axis)
    kept = np.delete(np.arange(t.shape[axis]), convert(obj))
    return public("index_select")(t, axis, as_tensor(kept))
