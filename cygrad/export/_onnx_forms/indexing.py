"""ONNX forms of indexing, gathering, scattering and embeddings."""

from collections.abc import Callable
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form
from cygrad.export._programs.sizes import Formula

_END = 2**63 - 1


def _is_int(item: Any) -> bool:
    return type(item) is int or isinstance(item, Formula)


def _items(index: Any, rank: int) -> list[Any]:
    """Return the parts of an index, one for each dimension and each None; lists as arrays."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [np.array(item) if isinstance(item, list) else item for item in items]
    used = sum(_dims_of(item) for item in items)
    full = [slice(None)] * (rank - used)
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    return [*items, *full] if at is None else [*items[:at], *full, *items[at + 1 :]]


def _dims_of(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.rank if isinstance(item, Value) and item.dtype is cygrad.bool else 1


@form("__getitem__")
def getitem(g: Graph, input: Value, index: Any) -> Value:
    items = _items(index, input.rank)
    if any(isinstance(item, bool) for item in items):
        raise Unsupported("an index that is True or False")
    if any(isinstance(item, Value) and item.dtype is cygrad.bool for item in items):
        return _masked(g, input, items)
    value, kinds = _sliced(g, input, items)
    return _gathered(g, value, kinds)


def _sliced(g: Graph, input: Value, items: list[Any]) -> tuple[Value, list[Any]]:
    """Apply slices and Nones; return the value, and for each dimension the index by which it is gathered, or None."""
    starts, stops, axes, steps = [], [], [], []
    kinds: list[Any] = []
    added = []
    axis = 0
    for item in items:
        if item is None:
            added.append(len(kinds))
            kinds.append(None)
            continue
        if isinstance(item, slice):
            if item.start is not None or item.stop is not None or item.step not in (None, 1):
                step = 1 if item.step is None else item.step
                starts.append(0 if item.start is None else item.start)
                stops.append(_END if item.stop is None else item.stop)
                axes.append(axis)
                steps.append(step)
            kinds.append(None)
        else:
            kinds.append(item)
        axis += 1
    value = input
    if axes:
        value = g.op("Slice", value, g.ints(starts), g.ints(stops), axes, steps)
    if added:
        value = g.op("Unsqueeze", value, added)
    return value, kinds


def _gathered(g: Graph, value: Value, kinds: list[Any]) -> Value:
    arrays = [d for d, item in enumerate(kinds) if item is not None and not _is_int(item)]
    if len(arrays) <= 1:
        # one index at most: integers drop their dimension, from the last on
        used = [d for d, item in enumerate(kinds) if item is not None]
        if arrays and not _together(kinds):
            return _several(g, value, kinds)
        for d in reversed(used):
            value = g.op("Gather", value, _index(g, kinds[d]), axis=d)
        return value
    return _several(g, value, kinds)


def _together(kinds: list[Any]) -> bool:
    used = [d for d, item in enumerate(kinds) if item is not None]
    return used == list(range(used[0], used[-1] + 1))


def _index(g: Graph, item: Any) -> Value:
    if _is_int(item):
        return g.number(item, cygrad.int64)
    if isinstance(item, np.ndarray):
        return g.constant(item, cygrad.int64)
    return g.cast(item, cygrad.int64)


def _several(g: Graph, value: Value, kinds: list[Any]) -> Value:
    """Write an index with several arrays, which are broadcast: GatherND on the dimensions moved to the front."""
    used = [d for d, item in enumerate(kinds) if item is not None]
    rest = [d for d in range(len(kinds)) if d not in used]
    ranks = [_rank(kinds[d]) for d in used]
    rank = max(ranks)
    indices = [_index(g, kinds[d]) for d in used]
    total = indices[0]
    for each in indices[1:]:
        total = g.op("Add", total, g.op("Mul", each, g.constant(0, cygrad.int64)))
    sizes = g.op("Shape", total, dtype=cygrad.int64)
    wrapped = []
    for each in indices:
        wrapped.append(g.op("Unsqueeze", g.op("Expand", each, sizes), [rank]))
    index = g.op("Concat", *wrapped, axis=rank)
    front = g.op("Transpose", value, perm=[*used, *rest]) if [*used, *rest] != list(range(len(kinds))) else value
    found = g.op("GatherND", front, index)
    if _together(kinds) and used[0]:  # the broadcast dimensions take the place of the first
        first = used[0]
        order = [*range(rank, rank + first), *range(rank), *range(rank + first, rank + len(rest))]
        found = g.op("Transpose", found, perm=order)
    return found


def _rank(item: Any) -> int:
    return 0 if _is_int(item) else item.ndim if isinstance(item, np.ndarray) else item.rank


def _masked(g: Graph, input: Value, items: list[Any]) -> Value:
    if not (len(items) >= 1 and isinstance(items[0], Value) and all(item == slice(None) for item in items[1:])):
        raise Unsupported("a mask along with other indices")
    return _selected(g, input, items[0])


def _selected(g: Graph, input: Value, mask: Value) -> Value:
    places = g.op("Transpose", g.op("NonZero", mask, dtype=cygrad.int64), perm=[1, 0])
    return g.op("GatherND", input, places)


@form("masked_select")
def masked_select(g: Graph, input: Value, mask: Value, *, out: Any = None) -> Value:
    if input.shape != mask.shape:
        raise Unsupported("a mask of another shape")
    return _selected(g, input, mask)


@form("nonzero", "argwhere")
def nonzero(g: Graph, input: Value, *, as_tuple: bool = False, out: Any = None) -> Value:
    if as_tuple:
        raise Unsupported("`as_tuple=True`")
    return g.op("Transpose", g.op("NonZero", input, dtype=cygrad.int64), perm=[1, 0])


def written(g: Graph, input: Value, part: Callable[[Value], Value], value: Any) -> Value:
    """Write `input` with the elements that `part` takes from it replaced by `value`."""
    numbers = Value(g.reshape(g.arange(g.numel(input)), g.sizes(input)).name, cygrad.int64)
    numbers._shape = input.shape
    places = part(numbers)
    new = g.value(value, input.dtype)
    new = g.op("Expand", new, g.op("Shape", places, dtype=cygrad.int64))
    flat = g.op("ScatterElements", g.reshape(input, [-1]), g.reshape(places, [-1]), g.reshape(new, [-1]), axis=0)
    return g.reshape(flat, g.sizes(input))


@form("__setitem__")
def setitem(g: Graph, input: Value, index: Any, value: Any) -> Value:
    items = _items(index, input.rank)
    if isinstance(items[0], Value) and items[0].dtype is cygrad.bool:
        mask = items[0]
        if isinstance(value, Value) and value.rank:
            raise Unsupported("a mask with a tensor of values")
        if input.rank > mask.rank:
            mask = g.op("Unsqueeze", mask, list(range(mask.rank, input.rank)))
        return g.where(mask, g.value(value, input.dtype), input)
    return written(g, input, lambda numbers: getitem(g, numbers, index), value)


@form("index_put")
def index_put(g: Graph, input: Value, indices: Any, values: Any, accumulate: bool = False) -> Value:
    if accumulate:
        raise Unsupported("`accumulate=True`")
    return setitem(g, input, tuple(slice(None) if each is None else each for each in indices), values)


@form("select", "select_copy")
def select(g: Graph, input: Value, dim: int, index: Any) -> Value:
    return g.op("Gather", input, g.number(index, cygrad.int64), axis=input.axis(dim))


@form("narrow", "narrow_copy")
def narrow(g: Graph, input: Value, dim: int, start: Any, length: Any) -> Value:
    axis = input.axis(dim)
    if type(start) is int and start < 0:
        start += input.length(axis)
    first, count = g.number(start, cygrad.int64, (1,)), g.number(length, cygrad.int64, (1,))
    if type(start) is int and type(length) is int:
        return g.slice(input, axis, start, start + length)
    return g.op("Slice", input, first, g.op("Add", first, count), [axis], [1])


@form("index_select")
def index_select(g: Graph, input: Value, dim: int, index: Value, *, out: Any = None) -> Value:
    index = index if index.rank else g.reshape(index, [1])
    return g.op("Gather", input, index, axis=input.axis(dim))


@form("gather")
def gather(g: Graph, input: Value, dim: int, index: Value, *, sparse_grad: bool = False, out: Any = None) -> Value:
    return g.op("GatherElements", input, index, axis=input.axis(dim))


@form("take_along_dim")
def take_along_dim(g: Graph, input: Value, indices: Value, dim: Any = None, *, out: Any = None) -> Value:
    if dim is None:
        return g.op("GatherElements", g.reshape(input, [-1]), g.reshape(indices, [-1]), axis=0)
    return g.op("GatherElements", input, indices, axis=input.axis(dim))


@form("take")
def take(g: Graph, input: Value, index: Value) -> Value:
    return g.op("Gather", g.reshape(input, [-1]), index, axis=0)


@form("scatter")
def scatter(
    g: Graph,
    input: Value,
    dim: int,
    index: Value,
    src: Any = None,
    value: Any = None,
    *,
    reduce: Any = None,
    out: Any = None,
) -> Value:
    kind = {None: None, "add": "add", "multiply": "mul"}[reduce]
    new = _updates(g, input, index, value if src is None else src)
    return g.op("ScatterElements", input, index, new, axis=input.axis(dim), reduction=kind)


def _updates(g: Graph, input: Value, index: Value, src: Any) -> Value:
    if not isinstance(src, Value) or not src.rank:
        return g.op("Expand", g.value(src, input.dtype), g.sizes(index))
    if src.shape != index.shape:
        zeros = [0] * index.rank
        src = g.op("Slice", src, zeros, g.sizes(index), list(range(index.rank)))
    return g.cast(src, input.dtype)


@form("scatter_add")
def scatter_add(g: Graph, input: Value, dim: int, index: Value, src: Value) -> Value:
    new = _updates(g, input, index, src)
    return g.op("ScatterElements", input, index, new, axis=input.axis(dim), reduction="add")


@form("scatter_reduce")
def scatter_reduce(
    g: Graph, input: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Value:
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise Unsupported("`reduce='mean'` and `include_self=False`")
    new = _updates(g, input, index, src)
    return g.op("ScatterElements", input, index, new, axis=input.axis(dim), reduction=kinds[reduce])


@form("index_fill")
def index_fill(g: Graph, input: Value, dim: int, index: Value, value: Any) -> Value:
    axis = input.axis(dim)
    return written(g, input, lambda numbers: g.op("Gather", numbers, index, axis=axis), value)


@form("index_add")
def index_add(
    g: Graph, input: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1, out: Any = None
) -> Value:
    axis = input.axis(dim)
    shape = [-1 if d == axis else 1 for d in range(input.rank)]
    places = g.op("Expand", g.reshape(index, shape), g.sizes(source))
    new = g.cast(source, input.dtype)
    new = new if alpha == 1 else g.op("Mul", new, g.value(alpha, new.dtype))
    return g.op("ScatterElements", input, places, new, axis=axis, reduction="add")


@form("index_copy")
def index_copy(g: Graph, input: Value, dim: int, index: Value, source: Value) -> Value:
    axis = input.axis(dim)
    return written(g, input, lambda numbers: g.op("Gather", numbers, index, axis=axis), source)


@form("select_scatter")
def select_scatter(g: Graph, input: Value, src: Value, dim: int, index: Any) -> Value:
    return written(g, input, lambda numbers: select(g, numbers, dim, index), src)


@form("slice_scatter")
def slice_scatter(
    g: Graph, input: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Value:
    index = (*[slice(None)] * input.axis(dim), slice(start, end, step))
    return written(g, input, lambda numbers: getitem(g, numbers, index), src)


# -- embeddings --------------------------------------------------------------------------------------------


@form("embedding")
def embedding(g: Graph, input: Value, weight: Value, *args: Any, **kwargs: Any) -> Value:
    if input.is_float:  # torch.embedding has the weight first
        input, weight = weight, input
    max_norm = args[1] if len(args) > 1 else kwargs.get("max_norm")
    if max_norm is not None and not isinstance(max_norm, bool):
        raise Unsupported("`max_norm`, which changes the weights")
    return g.op("Gather", weight, input, axis=0)


@form("embedding_bag")
def embedding_bag(
    g: Graph, input: Value, weight: Value, offsets: Value | None = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Value | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Value:  # fmt: skip
    if input.is_float or max_norm is not None:
        raise Unsupported("`max_norm`" if not input.is_float else "the order of arguments of torch.embedding_bag")
    if offsets is not None:
        return _bags_of_offsets(g, input, weight, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    rows = g.op("Gather", weight, input, axis=0)
    kept = None
    if padding_idx is not None:
        padding = g.constant(padding_idx % weight.length(0), input.dtype)
        kept = g.op("Unsqueeze", g.op("Not", g.op("Equal", input, padding, dtype=cygrad.bool)), [-1])
    if per_sample_weights is not None:
        rows = g.op("Mul", rows, g.op("Unsqueeze", per_sample_weights, [-1]))
    if mode == "max":
        if kept is not None:
            rows = g.where(kept, rows, g.constant(-np.inf, rows.dtype))
        found = g.op("ReduceMax", rows, [1], keepdims=0)
        if kept is not None:  # a bag of padding alone is 0
            found = g.where(g.op("IsInf", found, dtype=cygrad.bool), g.constant(0, rows.dtype), found)
        return found
    if kept is None:
        return g.op("ReduceMean" if mode == "mean" else "ReduceSum", rows, [1], keepdims=0)
    weights = g.cast(kept, rows.dtype)
    total = g.op("ReduceSum", g.op("Mul", rows, weights), [1], keepdims=0)
    if mode == "sum":
        return total
    count = g.op("Max", g.op("ReduceSum", weights, [1], keepdims=0), g.constant(1, rows.dtype))
    return g.op("Div", total, count)


def _bags_of_offsets(
    g: Graph,
    input: Value,
    weight: Value,
    offsets: Value,
    mode: str,
    weights: Value | None,
    last: bool,
    padding_idx: int | None,
) -> Value:
    """Sum rows by the bag that their position belongs to: the number of offsets up to it, less one."""
    if mode == "max" or padding_idx is not None:
        raise Unsupported("offsets with `mode='max'` or `padding_idx`")
    if last:
        offsets = g.slice(offsets, 0, 0, -1)
    positions = g.op("Unsqueeze", g.arange(g.numel(input)), [0])
    starts = g.op("Unsqueeze", g.cast(offsets, cygrad.int64), [1])
    begun = g.op("GreaterOrEqual", positions, starts, dtype=cygrad.bool)  # (bags, elements)
    following = g.op("Concat", g.slice(g.cast(begun, cygrad.int32), 0, 1), g.op(
        "ConstantOfShape", g.op("Concat", g.ints([1]), g.op("Reshape", g.numel(input), [1]), axis=0),
        dtype=cygrad.int32, value=g.onnx.numpy_helper.from_array(np.zeros(1, np.int32))), axis=0)  # fmt: skip
    member = g.cast(g.op("Sub", g.cast(begun, cygrad.int32), following), weight.dtype)
    rows = g.op("Gather", weight, input, axis=0)
    if weights is not None:
        rows = g.op("Mul", rows, g.op("Unsqueeze", weights, [-1]))
    total = g.op("MatMul", member, rows)
    if mode == "sum":
        return total
    number = g.op("Max", g.op("ReduceSum", member, [1], keepdims=1), g.constant(1, weight.dtype))
    return g.op("Div", total, number)
