"""ONNX forms of functions that compare elements with each other: quantiles, searches, sets, running extremes."""

import math
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


def _smallest(g: Graph, value: Value, count: int, axis: int) -> tuple[Value, Value]:
    """The smallest elements along an axis, in order, and their places."""
    values, places = g.op("TopK", value, g.ints([count]), n=2, axis=axis, largest=0, sorted=1)
    places.dtype = cygrad.int64
    return values, places


def _at(g: Graph, value: Value, place: int, axis: int, keepdim: bool) -> Value:
    part = g.slice(value, axis, place, place + 1)
    return part if keepdim else g.op("Squeeze", part, [axis])


# -- quantiles ---------------------------------------------------------------------------------------------


@form("kthvalue")
def kthvalue(g: Graph, input: Value, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    axis = input.axis(dim)
    return tuple(_at(g, each, k - 1, axis, keepdim) for each in _smallest(g, input, k, axis))


@form("median")
def median(g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    if dim is not None:
        return kthvalue(g, input, (input.length(input.axis(dim)) + 1) // 2, dim, keepdim)
    middle = (math.prod(input.fixed(range(input.rank))) + 1) // 2
    values, _ = _smallest(g, g.reshape(input, [-1]), middle, 0)
    return _at(g, values, middle - 1, 0, keepdim=False)


@form("quantile")
def quantile(
    g: Graph,
    input: Value,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
) -> Value:
    if isinstance(q, Value):
        raise Unsupported("several quantiles")
    axis = 0 if dim is None else input.axis(dim)
    count = math.prod(input.fixed(range(input.rank))) if dim is None else input.length(axis)
    values, _ = _smallest(g, g.reshape(input, [-1]) if dim is None else input, count, axis)
    place = q * (count - 1)
    below, above = math.floor(place), math.ceil(place)
    keep = keepdim and dim is not None
    if interpolation in ("lower", "higher", "nearest"):
        chosen = {"lower": below, "higher": above, "nearest": round(place)}[interpolation]
        found = _at(g, values, chosen, axis, keep)
    else:
        share = 0.5 if interpolation == "midpoint" else place - below
        low, high = (_at(g, values, each, axis, keep) for each in (below, above))
        found = g.op("Add", low, g.op("Mul", g.op("Sub", high, low), g.constant(share, input.dtype)))
    return g.reshape(found, [1] * input.rank) if keepdim and dim is None else found


# -- searches and sets -------------------------------------------------------------------------------------


@form("searchsorted")
def searchsorted(
    g: Graph,
    sorted_sequence: Value,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
    out: Any = None,
) -> Value:
    if sorter is not None:
        raise Unsupported("`sorter`")
    sequence, value = g.promoted(sorted_sequence, input)
    if isinstance(input, Value) and input.rank:
        value = g.op("Unsqueeze", value, [-1])
        if sorted_sequence.rank > 1:
            sequence = g.op("Unsqueeze", sequence, [-2])
    is_right = right or side == "right"
    precedes = g.op("LessOrEqual" if is_right else "Less", sequence, value, dtype=cygrad.bool)
    return g.op("ReduceSum", g.cast(precedes, g.results[0].dtype), [-1], keepdims=0)


@form("bucketize")
def bucketize(
    g: Graph, input: Any, boundaries: Value, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Value:
    return searchsorted(g, boundaries, input, right=right)


@form("isin")
def isin(g: Graph, elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Value:
    values, wanted = g.promoted(elements, test_elements)
    equal = g.op("Equal", g.op("Unsqueeze", values, [-1]), g.reshape(wanted, [-1]), dtype=cygrad.bool)
    found = g.cast(g.op("ReduceMax", g.cast(equal, cygrad.int32), [-1], keepdims=0), cygrad.bool)
    return g.op("Not", found) if invert else found


@form("unique")
def unique(
    g: Graph,
    input: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    axis = None if dim is None else input.axis(dim)
    values, _, inverse, counts = g.op("Unique", input, n=4, axis=axis, sorted=1)
    inverse.dtype = counts.dtype = cygrad.int64
    if dim is None:
        inverse = g.reshape(inverse, g.sizes(input))
    if not (return_inverse or return_counts):
        return values
    return (values, *[inverse] * return_inverse, *[counts] * return_counts)


# -- running along a dimension -----------------------------------------------------------------------------


def _prefixes(g: Graph, input: Value, axis: int, neutral: Any) -> Value:
    """The elements up to each place of the last axis, (..., place, element), with a neutral one after it.

    A length squared in memory, since ONNX has running sums alone.
    """
    length = input.length(axis)
    last = g.op("Unsqueeze", g.swapped(input, axis, input.rank - 1), [-2])
    counts = g.constant(np.tri(length, dtype=bool), cygrad.bool)
    return g.where(counts, last, g.constant(neutral, input.dtype))


def _turned_back(g: Graph, value: Value, input: Value, axis: int) -> Value:
    value._shape = tuple(input.shape[d] for d in _swapped(input.rank, axis))
    return g.swapped(value, axis, input.rank - 1)


def _swapped(rank: int, axis: int) -> list[int]:
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def _running(name: str, kind: str, neutral: Any) -> None:
    @form(name)
    def write(g: Graph, input: Value, dim: Any = None, *, dtype: Any = None, out: Any = None) -> Value:
        axis = input.axis(dim)
        value = g.cast(input, g.results[0].dtype)
        found = g.op(kind, _prefixes(g, value, axis, neutral), [-1], keepdims=0)
        return _turned_back(g, found, input, axis)


_running("cumprod", "ReduceProd", 1)
_running("logcumsumexp", "ReduceLogSumExp", -np.inf)


def _running_extreme(name: str, kind: str, sign: int) -> None:
    @form(name)
    def write(g: Graph, input: Value, dim: Any = None, *, out: Any = None) -> Any:
        axis = input.axis(dim)
        limits = cygrad.finfo(input.dtype) if input.is_float else cygrad.iinfo(input.dtype)
        worst = -sign * np.inf if input.is_float else limits.min if sign > 0 else limits.max
        prefixes = _prefixes(g, input, axis, worst)
        values = g.op(f"Reduce{kind}", prefixes, [-1], keepdims=0)
        places = g.op(f"Arg{kind}", prefixes, dtype=cygrad.int64, axis=-1, keepdims=0, select_last_index=1)
        return tuple(_turned_back(g, each, input, axis) for each in (values, places))


_running_extreme("cummax", "Max", 1)
_running_extreme("cummin", "Min", -1)
