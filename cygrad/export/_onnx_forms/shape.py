"""ONNX forms of functions that change shapes: views, joining, splitting, padding."""

from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form
from cygrad.export._programs.sizes import Formula


def _numbers(args: Any) -> list[Any]:
    """Return numbers that were given one by one or as a list."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else list(args)


def _without_formula(numbers: list[Any]) -> list[Any]:
    """Write -1 for the only length that varies, so that it need not be computed."""
    varying = [i for i, n in enumerate(numbers) if isinstance(n, Formula)]
    if len(varying) == 1 and -1 not in [n for n in numbers if type(n) is int] and 0 not in numbers:
        numbers[varying[0]] = -1
    return numbers


@form("view", "reshape", "view_copy")
def view(g: Graph, input: Value, *shape: Any, **named: Any) -> Value:
    shape = shape or tuple(named.values())
    if isinstance(shape[0], cygrad.dtype):
        raise Unsupported("a view in another dtype")
    numbers = _without_formula(_numbers(shape))
    return g.op("Reshape", input, g.ints(numbers), allowzero=1 if 0 in numbers else None)


@form("view_as", "reshape_as")
def view_as(g: Graph, input: Value, other: Value) -> Value:
    return g.reshape(input, g.sizes(other))


@form("flatten")
def flatten(g: Graph, input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if not input.rank:
        return g.reshape(input, [1])
    first, last = input.axis(start_dim), input.axis(end_dim)
    before = [0] * first  # which keeps a length
    after = [_keep(g, input, d) for d in range(last + 1, input.rank)]
    return g.op("Reshape", input, g.ints([*before, -1, *after]))


def _keep(g: Graph, value: Value, dim: int) -> Any:
    length = value.shape[dim]
    return g.size(value, dim) if length is None else length


@form("ravel")
def ravel(g: Graph, input: Value) -> Value:
    return g.reshape(input, [-1])


@form("unflatten")
def unflatten(g: Graph, input: Value, dim: int, sizes: Any) -> Value:
    axis = input.axis(dim)
    before = [0] * axis  # which keeps a length
    after = [_keep(g, input, d) for d in range(axis + 1, input.rank)]
    return g.op("Reshape", input, g.ints([*before, *_without_formula(list(sizes)), *after]))


@form("squeeze", "squeeze_copy")
def squeeze(g: Graph, input: Value, dim: Any = None) -> Value:
    if dim is None and None in input.shape:
        raise Unsupported("`squeeze` of all dimensions, some of which vary; give `dim`")
    axes = [axis for axis in input.axes(dim) if input.rank and input.shape[axis] == 1]
    return g.op("Squeeze", input, axes) if axes else input


@form("unsqueeze", "unsqueeze_copy")
def unsqueeze(g: Graph, input: Value, dim: int) -> Value:
    return g.op("Unsqueeze", input, [dim + input.rank + 1 if dim < 0 else dim])


@form("transpose", "swapaxes", "transpose_copy")
def transpose(g: Graph, input: Value, dim0: int, dim1: int) -> Value:
    return g.swapped(input, input.axis(dim0), input.axis(dim1)) if input.rank else input


@form("t", "t_copy")
def t(g: Graph, input: Value) -> Value:
    return g.swapped(input, 0, 1) if input.rank == 2 else input


@form("adjoint")
def adjoint(g: Graph, input: Value) -> Value:
    return g.swapped(input, input.rank - 2, input.rank - 1)


@form("permute", "permute_copy")
def permute(g: Graph, input: Value, *dims: Any, **named: Any) -> Value:
    return g.transpose(input, [input.axis(d) for d in _numbers(dims or tuple(named.values()))])


@form("movedim", "moveaxis")
def movedim(g: Graph, input: Value, source: Any, destination: Any) -> Value:
    sources, places = input.axes(source), input.axes(destination)
    rest = iter([d for d in range(input.rank) if d not in sources])
    order = [sources[places.index(d)] if d in places else next(rest) for d in range(input.rank)]
    return g.transpose(input, order)


@form("expand", "broadcast_to", "expand_copy")
def expand(g: Graph, input: Value, *sizes: Any, **named: Any) -> Value:
    numbers = _numbers(sizes or tuple(named.values()))
    # -1 keeps a length, and so does 1 in ONNX
    return g.op("Expand", input, g.ints([1 if type(n) is int and n == -1 else n for n in numbers]))


@form("expand_as")
def expand_as(g: Graph, input: Value, other: Value) -> Value:
    return g.op("Expand", input, g.sizes(other))


@form("broadcast_tensors")
def broadcast_tensors(g: Graph, *tensors: Any) -> Any:
    values = _numbers(tensors)
    sizes = g.sizes(values[0])
    for value in values[1:]:
        ones = g.op("ConstantOfShape", sizes, dtype=cygrad.int64, value=_filled(g, 1, np.int64))
        sizes = g.op("Shape", g.op("Expand", ones, g.sizes(value)), dtype=cygrad.int64)
    return tuple([g.op("Expand", value, sizes) for value in values])


def _filled(g: Graph, number: Any, kind: Any) -> Any:
    return g.onnx.numpy_helper.from_array(np.array([number], kind))


@form("repeat", "tile")
def repeat(g: Graph, input: Value, *sizes: Any, **named: Any) -> Value:
    numbers = _numbers(sizes or tuple(named.values()))
    numbers = [1] * (input.rank - len(numbers)) + numbers
    if len(numbers) > input.rank:
        lengths = [1] * (len(numbers) - input.rank) + [_keep(g, input, d) for d in range(input.rank)]
        input = g.reshape(input, g.ints(lengths))
    return g.op("Tile", input, g.ints(numbers))


@form("repeat_interleave")
def repeat_interleave(g: Graph, input: Value, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Value:
    if isinstance(repeats, Value):
        raise Unsupported("`repeats` as a tensor")
    if dim is None:
        flat = g.reshape(input, [-1, 1])
        return g.reshape(g.op("Tile", flat, g.ints([1, repeats])), [-1])
    axis = input.axis(dim)
    lengths = [_keep(g, input, d) for d in range(input.rank)]
    times = [1] * (input.rank + 1)
    times[axis + 1] = repeats
    found = g.op("Tile", g.op("Unsqueeze", input, [axis + 1]), g.ints(times))
    return g.reshape(found, g.ints([*lengths[:axis], -1, *lengths[axis + 1 :]]))


# -- joining and splitting ---------------------------------------------------------------------------------


@form("cat")
def cat(g: Graph, tensors: Any, dim: int = 0, *, out: Any = None) -> Value:
    values = [value for value in tensors if value.shape != (0,)] or list(tensors)
    return g.op("Concat", *g.promoted(*values), axis=values[0].axis(dim))


@form("stack")
def stack(g: Graph, tensors: Any, dim: int = 0, *, out: Any = None) -> Value:
    axis = dim + tensors[0].rank + 1 if dim < 0 else dim
    return g.op("Concat", *[g.op("Unsqueeze", value, [axis]) for value in g.promoted(*tensors)], axis=axis)


@form("hstack")
def hstack(g: Graph, tensors: Any, *, out: Any = None) -> Value:
    values = [g.reshape(value, [1]) if not value.rank else value for value in tensors]
    return g.op("Concat", *g.promoted(*values), axis=0 if tensors[0].rank <= 1 else 1)


@form("vstack", "row_stack")
def vstack(g: Graph, tensors: Any, *, out: Any = None) -> Value:
    values = [g.reshape(value, [1, -1]) if value.rank <= 1 else value for value in tensors]
    return g.op("Concat", *g.promoted(*values), axis=0)


@form("dstack")
def dstack(g: Graph, tensors: Any, *, out: Any = None) -> Value:
    values = []
    for value in tensors:
        sizes = {0: [1, 1, 1], 1: [1, -1, 1]}.get(value.rank)
        deep = g.op("Unsqueeze", value, [2]) if value.rank == 2 else value
        values.append(deep if sizes is None else g.reshape(value, sizes))
    return g.op("Concat", *g.promoted(*values), axis=2)


@form("column_stack")
def column_stack(g: Graph, tensors: Any, *, out: Any = None) -> Value:
    values = [g.reshape(value, [-1, 1]) if value.rank <= 1 else value for value in tensors]
    return g.op("Concat", *g.promoted(*values), axis=1)


@form("atleast_1d", "atleast_2d", "atleast_3d")
def atleast(g: Graph, *tensors: Any) -> Any:
    if len(tensors) > 1 or isinstance(tensors[0], (list, tuple)):
        raise Unsupported("several tensors")
    (value,) = tensors
    rank = int(g.target[-2])
    shapes = {(0, 1): [1], (0, 2): [1, 1], (1, 2): [1, -1], (0, 3): [1, 1, 1], (1, 3): [1, -1, 1]}
    if (value.rank, rank) == (2, 3):
        return g.op("Unsqueeze", value, [2])
    return g.reshape(value, shapes[value.rank, rank]) if value.rank < rank else value


def _parts(g: Graph, input: Value, axis: int, lengths: list[Any]) -> Any:
    if len(lengths) == 1:
        return (input,)
    return g.op("Split", input, g.ints(lengths), n=len(lengths), axis=axis)


@form("split", "split_with_sizes", "unsafe_split", "split_copy", "split_with_sizes_copy", "unsafe_split_with_sizes")
def split(g: Graph, tensor: Value, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    sizes = split_size_or_sections if split_size_or_sections is not None else next(iter(named.values()))
    axis = tensor.axis(dim)
    if isinstance(sizes, (list, tuple)):
        return _parts(g, tensor, axis, list(sizes))
    count = len(g.results)
    if count == 1:
        return (tensor,)
    last = g.op("Sub", g.size(tensor, axis), g.op("Mul", g.number(sizes, cygrad.int64, (1,)), g.ints([count - 1])))
    if tensor.shape[axis] is not None and type(sizes) is int:
        return _parts(g, tensor, axis, [sizes] * (count - 1) + [tensor.length(axis) - sizes * (count - 1)])
    return _parts(g, tensor, axis, [sizes] * (count - 1) + [last])


@form("chunk", "unsafe_chunk")
def chunk(g: Graph, input: Value, chunks: int, dim: int = 0) -> Any:
    axis = input.axis(dim)
    if input.shape[axis] is None:
        raise Unsupported("`chunk` of a dimension that varies; its results would be of other number or length")
    return _parts(g, input, axis, [t.shape[axis] for t in g.results])


@form("tensor_split")
def tensor_split(g: Graph, input: Value, indices_or_sections: Any, dim: int = 0) -> Any:
    return chunk(g, input, len(g.results), dim)


@form("hsplit", "vsplit", "dsplit")
def split_along(g: Graph, input: Value, *args: Any, **named: Any) -> Any:
    axis = {"hsplit": min(input.rank - 1, 1), "vsplit": 0, "dsplit": 2}[g.target]
    return chunk(g, input, len(g.results), axis)


@form("unbind", "unbind_copy")
def unbind(g: Graph, input: Value, dim: int = 0) -> Any:
    axis, count = input.axis(dim), len(g.results)
    return tuple([g.op("Gather", input, g.constant(i, cygrad.int64), axis=axis) for i in range(count)])


@form("meshgrid")
def meshgrid(g: Graph, *tensors: Any, indexing: Any = None) -> Any:
    values = _numbers(tensors)
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[0], order[1] = 1, 0
    sizes = g.op("Concat", *[g.size(values[i], 0) if values[i].rank else g.ints([1]) for i in order], axis=0)
    found = []
    for i, value in enumerate(values):
        shape = [-1 if order[d] == i else 1 for d in range(len(values))]
        found.append(g.op("Expand", g.reshape(value, shape), sizes))
    return tuple(found)


# -- moving elements ---------------------------------------------------------------------------------------


@form("flip")
def flip(g: Graph, input: Value, *dims: Any) -> Value:
    axes = [input.axis(d) for d in _numbers(dims)]
    count = len(axes)
    return g.op("Slice", input, [-1] * count, [-(2**63)] * count, axes, [-1] * count) if axes else input


@form("fliplr")
def fliplr(g: Graph, input: Value) -> Value:
    return flip(g, input, 1)


@form("flipud")
def flipud(g: Graph, input: Value) -> Value:
    return flip(g, input, 0)


@form("roll")
def roll(g: Graph, input: Value, shifts: Any, dims: Any = None) -> Value:
    if dims is None or dims == ():
        flat = _rolled(g, g.reshape(input, [-1]), shifts if isinstance(shifts, int) else shifts[0], 0)
        return g.reshape(flat, g.sizes(input))
    shifts, axes = (shifts if isinstance(shifts, (tuple, list)) else [shifts]), input.axes(dims)
    for shift, axis in zip(shifts, axes):
        length = input.shape[axis]
        if length is not None:
            shift %= length or 1
        input_ = _rolled(g, input, shift, axis)
        input_._shape = input.shape
        input = input_
    return input


def _rolled(g: Graph, value: Value, shift: Any, axis: int) -> Value:
    if shift == 0:
        return g.op("Identity", value)
    return g.op("Concat", g.slice(value, axis, -shift), g.slice(value, axis, 0, -shift), axis=axis)


def _triangle(name: str, upper: int) -> None:
    @form(name)
    def write(g: Graph, input: Value, diagonal: int = 0, *, out: Any = None) -> Value:
        value = g.cast(input, cygrad.int32) if input.dtype is cygrad.bool else input
        return g.cast(g.op("Trilu", value, g.constant(diagonal, cygrad.int64), upper=upper), input.dtype)


_triangle("tril", 0)
_triangle("triu", 1)


@form("pad", "constant_pad_nd")
def pad(g: Graph, input: Value, pad: Any, mode: Any = "constant", value: Any = None) -> Value:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    return padded(g, input, list(pad), mode, value)


def padded(g: Graph, input: Value, pads: list[Any], mode: str, number: Any = None) -> Value:
    """Write padding; `pads` are (before, after) for each dimension from the last one."""
    kinds = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    count = len(pads) // 2
    before, after = pads[0::2][::-1], pads[1::2][::-1]
    axes = list(range(input.rank - count, input.rank))
    if any(type(n) is int and n < 0 for n in pads) and mode == "constant":
        for axis, b, a in zip(axes, before, after):
            cut = g.slice(input, axis, max(-b, 0), a if a < 0 else 2**63 - 1)
            cut._shape = (*input.shape[:axis], None, *input.shape[axis + 1 :])
            input = cut
        before, after = [max(b, 0) for b in before], [max(a, 0) for a in after]
    if mode == "circular" and g.opset < 19:
        return _wrapped(g, input, axes, before, after)
    fill = g.number(0 if number is None else number, input.dtype) if mode == "constant" else None
    value = input
    if input.dtype is cygrad.bool:
        value = g.cast(input, cygrad.int32)
        fill = None if fill is None else g.cast(fill, cygrad.int32)
    rest = [0] * (input.rank - count)
    found = g.op("Pad", value, g.ints([*rest, *before, *rest, *after]), fill, mode=kinds[mode])
    return g.cast(found, input.dtype)


def _wrapped(g: Graph, input: Value, axes: list[int], before: list[Any], after: list[Any]) -> Value:
    for axis, b, a in zip(axes, before, after):
        parts = [g.slice(input, axis, -b)] if b else []
        parts += [input]
        parts += [g.slice(input, axis, 0, a)] if a else []
        input = g.op("Concat", *parts, axis=axis) if len(parts) > 1 else input
    return input


@form("pixel_shuffle")
def pixel_shuffle(g: Graph, input: Value, upscale_factor: int) -> Value:
    if input.rank != 4:
        return _around(g, input, lambda x: g.op("DepthToSpace", x, blocksize=upscale_factor, mode="CRD"))
    return g.op("DepthToSpace", input, blocksize=upscale_factor, mode="CRD")


def _around(g: Graph, input: Value, function: Any) -> Value:
    """Write an op on four dimensions for values with three or with more than four."""
    lead = [_keep(g, input, d) for d in range(input.rank - 3)]
    found = function(g.reshape(input, g.ints([-1 if lead else 1, *(_keep(g, input, d) for d in range(-3, 0))])))
    tail = [g.size(found, 1), g.size(found, 2), g.op("Shape", found, dtype=cygrad.int64, start=3)]
    return g.reshape(found, g.ints([*lead, *tail]))


@form("pixel_unshuffle")
def pixel_unshuffle(g: Graph, input: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    *lead, channels, height, width = range(input.rank)
    sizes = [_keep(g, input, d) for d in range(input.rank)]
    c, h, w = input.length(channels), _divided(g, input, height, r), _divided(g, input, width, r)
    n = len(lead)
    parts = g.reshape(input, g.ints([*sizes[:n], c, h, r, w, r]))
    order = [*lead, n, n + 2, n + 4, n + 1, n + 3]
    return g.reshape(g.op("Transpose", parts, perm=order), g.ints([*sizes[:n], c * r * r, h, w]))


def _divided(g: Graph, value: Value, dim: int, by: int) -> Any:
    length = value.shape[dim]
    return g.op("Div", g.size(value, dim), g.ints([by])) if length is None else length // by


@form("channel_shuffle")
def channel_shuffle(g: Graph, input: Value, groups: int) -> Value:
    sizes = [_keep(g, input, d) for d in range(input.rank)]
    channels = input.length(1)
    parts = g.reshape(input, g.ints([sizes[0], groups, channels // groups, *sizes[2:]]))
    order = [0, 2, 1, *range(3, input.rank + 1)]
    return g.reshape(g.op("Transpose", parts, perm=order), g.ints(sizes))


@form("diagonal", "linalg.diagonal", "diagonal_copy")
def diagonal(g: Graph, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    rows, columns = input.length(input.axis(dim1)), input.length(input.axis(dim2))
    at = np.arange(max(min(rows + min(offset, 0), columns - max(offset, 0)), 0))
    index = (at - min(offset, 0)) * columns + at + max(offset, 0)
    a, b = input.axis(dim1), input.axis(dim2)
    rest = [d for d in range(input.rank) if d not in (a, b)]
    last = g.transpose(input, [*rest, a, b])
    flat = g.reshape(last, g.ints([*(_keep(g, input, d) for d in rest), rows * columns]))
    return g.op("Gather", flat, g.constant(index, cygrad.int64), axis=len(rest))
