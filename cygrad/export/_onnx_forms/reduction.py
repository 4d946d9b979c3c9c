"""ONNX forms of reductions, sorting and running sums."""

from typing import Any

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.products import norm_along
from cygrad.export._onnx_forms.shape import diagonal
from cygrad.export._onnx_forms.table import Unsupported, form


def reduced(g: Graph, kind: str, value: Value, axes: list[int], keepdim: Any) -> Value:
    """Write a reduction along axes of a value with a known rank."""
    return g.op(kind, value, axes, keepdims=int(keepdim)) if axes else value


def _reduce(name: str, kind: str) -> None:
    @form(name)
    def write(
        g: Graph,
        input: Value,
        dim: Any = None,
        keepdim: Any = False,
        *,
        dtype: Any = None,
        out: Any = None,
        axis: Any = None,
        keepdims: Any = False,
    ) -> Value:
        value = g.cast(input, g.results[0].dtype)
        return reduced(g, kind, value, input.axes(axis if dim is None else dim), keepdim or keepdims)


_reduce("sum", "ReduceSum")
_reduce("mean", "ReduceMean")
_reduce("amax", "ReduceMax")
_reduce("amin", "ReduceMin")
_reduce("logsumexp", "ReduceLogSumExp")


@form("prod")
def prod(
    g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Value:
    return reduced(g, "ReduceProd", g.cast(input, g.results[0].dtype), input.axes(dim), keepdim)


def _truths(g: Graph, input: Value) -> Value:
    if input.dtype is cygrad.bool:
        return g.cast(input, cygrad.int32)
    nonzero = g.op("Not", g.op("Equal", input, g.constant(0, input.dtype), dtype=cygrad.bool))
    return g.cast(nonzero, cygrad.int32)


@form("any")
def any_(g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Value:
    return g.cast(reduced(g, "ReduceMax", _truths(g, input), input.axes(dim), keepdim), cygrad.bool)


@form("all")
def all_(g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Value:
    return g.cast(reduced(g, "ReduceMin", _truths(g, input), input.axes(dim), keepdim), cygrad.bool)


@form("count_nonzero")
def count_nonzero(g: Graph, input: Value, dim: Any = None) -> Value:
    return reduced(g, "ReduceSum", g.cast(_truths(g, input), cygrad.int64), input.axes(dim), False)


def _extreme(kind: str) -> None:
    @form(kind.lower())
    def write(g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if isinstance(dim, Value):
            return g.op(kind, *g.promoted(input, dim))
        if dim is None:
            return reduced(g, f"Reduce{kind}", input, input.axes(None), False)
        return (
            reduced(g, f"Reduce{kind}", input, input.axes(dim), keepdim),
            g.op(f"Arg{kind}", input, dtype=cygrad.int64, axis=input.axis(dim), keepdims=int(keepdim)),
        )

    @form(f"arg{kind.lower()}")
    def position(g: Graph, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
        if dim is None:
            flat = g.reshape(input, [-1])
            found = g.op(f"Arg{kind}", flat, dtype=cygrad.int64, axis=0, keepdims=0)
            return g.reshape(found, [1] * input.rank) if keepdim else found
        return g.op(f"Arg{kind}", input, dtype=cygrad.int64, axis=input.axis(dim), keepdims=int(keepdim))


_extreme("Max")
_extreme("Min")


@form("aminmax")
def aminmax(g: Graph, input: Value, *, dim: Any = None, keepdim: bool = False) -> Any:
    axes = input.axes(dim)
    return reduced(g, "ReduceMin", input, axes, keepdim), reduced(g, "ReduceMax", input, axes, keepdim)


# -- moments -----------------------------------------------------------------------------------------------


def _variance(g: Graph, input: Value, dim: Any, unbiased: Any, correction: Any, keepdim: bool) -> tuple[Value, Value]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    axes = input.axes(dim)
    mean = g.op("ReduceMean", input, axes, keepdims=1)
    gap = g.op("Sub", input, mean)
    total = g.op("ReduceSum", g.op("Mul", gap, gap), axes, keepdims=int(keepdim))
    count = g.constant(1, cygrad.int64)
    for axis in axes:
        count = g.op("Mul", count, g.op("Squeeze", g.size(input, axis)))
    count = g.cast(count, input.dtype)
    if correction:
        count = g.op("Max", g.op("Sub", count, g.constant(correction, input.dtype)), g.constant(0, input.dtype))
    return g.op("Div", total, count), mean if keepdim else g.op("Squeeze", mean, axes)


def _moment(name: str, *, is_root: bool, with_mean: bool) -> None:
    @form(name)
    def moment(
        g: Graph,
        input: Value,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
        out: Any = None,
    ) -> Any:
        found, mean = _variance(g, input, dim, unbiased, correction, keepdim)
        if is_root:
            found = g.op("Sqrt", found)
        return (found, mean) if with_mean else found


_moment("var", is_root=False, with_mean=False)
_moment("std", is_root=True, with_mean=False)
_moment("var_mean", is_root=False, with_mean=True)
_moment("std_mean", is_root=True, with_mean=True)


@form("norm", "linalg.vector_norm")
def norm(
    g: Graph,
    input: Value,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    ord: Any = None,
) -> Value:
    order = p if ord is None else ord
    if order in ("fro", None):
        order = 2
    if isinstance(order, str):
        raise Unsupported(f"the norm {order!r}")
    value = g.cast(input, g.results[0].dtype)
    axes = input.axes(dim)
    return norm_along(g, value, float(order), axes, keepdim) if axes else g.op("Abs", value)


@form("linalg.norm")
def linalg_norm(
    g: Graph,
    input: Value,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Value:
    if ord is not None and (len(input.axes(dim)) > 1 or isinstance(ord, str)):
        raise Unsupported("norms of matrices")
    return norm(g, input, ord, dim, keepdim)


@form("dist")
def dist(g: Graph, input: Value, other: Value, p: float = 2) -> Value:
    a, b = g.promoted(input, other)
    gap = g.op("Sub", a, b)
    return norm_along(g, gap, float(p), list(range(max(input.rank, other.rank))), False)


# -- order -------------------------------------------------------------------------------------------------


@form("topk")
def topk(
    g: Graph, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None
) -> Any:
    order = {"largest": int(largest), "sorted": int(sorted)}
    values, indices = g.op("TopK", input, g.ints([k]), n=2, axis=input.axis(dim), **order)
    indices.dtype = cygrad.int64
    return values, indices


def _sorted(g: Graph, input: Value, dim: int, descending: bool) -> Any:
    axis = input.axis(dim)
    values, indices = g.op("TopK", input, g.size(input, axis), n=2, axis=axis, largest=int(descending), sorted=1)
    indices.dtype = cygrad.int64
    return values, indices


@form("sort")
def sort(
    g: Graph, input: Value, dim: Any = -1, descending: bool = False, *, stable: Any = None, out: Any = None
) -> Any:
    return _sorted(g, input, dim, descending)


@form("argsort")
def argsort(g: Graph, input: Value, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Value:
    return _sorted(g, input, dim, descending)[1]


@form("msort")
def msort(g: Graph, input: Value, *, out: Any = None) -> Value:
    return _sorted(g, input, 0, False)[0]


@form("nansum", "nanmean")
def ignoring_nan(
    g: Graph, input: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Value:
    value = g.cast(input, g.results[0].dtype)
    if not value.is_float:
        return reduced(g, "ReduceSum", value, input.axes(dim), keepdim)
    missing = g.op("IsNaN", value, dtype=cygrad.bool)
    axes = input.axes(dim)
    total = reduced(g, "ReduceSum", g.where(missing, g.constant(0, value.dtype), value), axes, keepdim)
    if g.target == "nansum":
        return total
    count = reduced(g, "ReduceSum", g.cast(g.op("Not", missing), value.dtype), axes, keepdim)
    return g.op("Div", total, count)


@form("trace")
def trace(g: Graph, input: Value) -> Value:
    return reduced(g, "ReduceSum", diagonal(g, input), [0], False)


@form("cumsum")
def cumsum(g: Graph, input: Value, dim: int, *, dtype: Any = None, out: Any = None) -> Value:
    value = g.cast(input, g.results[0].dtype)
    return g.op("CumSum", value, g.constant(input.axis(dim), cygrad.int64))
