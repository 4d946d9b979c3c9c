"""ONNX forms of products of matrices and tensors, and of distances."""

from typing import Any

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


@form("linear")
def linear(g: Graph, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if weight.rank == 1:
        found = g.op("MatMul", input, weight)
    elif input.rank == 2:
        return g.op("Gemm", input, weight, bias, transB=1)
    else:
        found = g.op("MatMul", input, g.swapped(weight, 0, 1))
    return found if bias is None else g.op("Add", found, bias)


@form("bilinear")
def bilinear(g: Graph, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    found = g.op("Einsum", input1, weight, input2, equation="...i,oij,...j->...o")
    return found if bias is None else g.op("Add", found, bias)


@form("matmul", "mm", "spmm", "dsmm", "bmm", "mv", "dot", "vdot", "__matmul__")
def matmul(g: Graph, input: Value, other: Value, *, out: Any = None, **options: Any) -> Value:
    if options:
        raise Unsupported(f"the options {', '.join(options)}")
    return g.op("MatMul", input, other)


@form("inner")
def inner(g: Graph, input: Value, other: Value, *, out: Any = None) -> Value:
    return tensordot(g, input, other, ([-1], [-1])) if input.rank and other.rank else g.op("Mul", input, other)


@form("__rmatmul__")
def rmatmul(g: Graph, input: Value, other: Value) -> Value:
    return g.op("MatMul", other, input)


@form("addmm", "addmv", "baddbmm")
def addmm(g: Graph, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Value:
    product = g.scaled(g.op("MatMul", mat1, mat2), alpha)
    return product if beta == 0 else g.op("Add", g.scaled(input, beta), product)


@form("chain_matmul", "linalg.multi_dot")
def chain_matmul(g: Graph, *matrices: Any, out: Any = None) -> Value:
    values = list(matrices[0]) if isinstance(matrices[0], (list, tuple)) else list(matrices)
    found = values[0]
    for value in values[1:]:
        found = g.op("MatMul", found, value)
    return found


@form("linalg.vecdot")
def vecdot(g: Graph, x: Value, y: Value, *, dim: int = -1, out: Any = None) -> Value:
    if x.rank != y.rank:
        raise Unsupported("operands with different numbers of dimensions")
    return g.op("ReduceSum", g.op("Mul", *g.promoted(x, y)), [x.axis(dim)], keepdims=0)


@form("outer", "ger")
def outer(g: Graph, input: Value, vec2: Value, *, out: Any = None) -> Value:
    a, b = g.promoted(input, vec2)
    return g.op("Mul", g.reshape(a, [-1, 1]), g.reshape(b, [1, -1]))


@form("einsum")
def einsum(g: Graph, equation: str, *operands: Any) -> Value:
    if not isinstance(equation, str):
        raise Unsupported("einsum with lists of subscripts")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return g.op("Einsum", *operands, equation=equation.replace(" ", ""))


@form("tensordot")
def tensordot(g: Graph, a: Value, b: Value, dims: Any = 2, *, out: Any = None) -> Value:
    if isinstance(dims, int):
        dims = (list(range(a.rank - dims, a.rank)), list(range(dims)))
    ours, theirs = a.axes(dims[0]), b.axes(dims[1])
    letters = "abcdefghijklmnopqrstuvwxyz"
    first, second = list(letters[: a.rank]), list(letters[a.rank : a.rank + b.rank])
    for i, j in zip(ours, theirs):
        second[j] = first[i]
    kept = [c for i, c in enumerate(first) if i not in ours] + [c for j, c in enumerate(second) if j not in theirs]
    return g.op("Einsum", a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")


# -- distances ---------------------------------------------------------------------------------------------


@form("cosine_similarity")
def cosine_similarity(g: Graph, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    a, b = g.promoted(x1, x2)
    axis = [dim % max(x1.rank, x2.rank)]
    floor = g.constant(eps, a.dtype)

    def unit(value: Value) -> Value:
        return g.op("Div", value, g.op("Max", g.op("ReduceL2", value, axis, keepdims=1), floor))

    if x1.rank != x2.rank:
        raise Unsupported("operands with different numbers of dimensions")
    return g.op("ReduceSum", g.op("Mul", unit(a), unit(b)), axis, keepdims=0)


def norm_along(g: Graph, value: Value, p: float, axes: list[int], keepdim: bool) -> Value:
    """Write the p-norm along axes."""
    keep = int(keepdim)
    if p == 2:
        return g.op("ReduceL2", value, axes, keepdims=keep)
    size = g.op("Abs", value)
    if p == 1:
        return g.op("ReduceSum", size, axes, keepdims=keep)
    if p == float("inf"):
        return g.op("ReduceMax", size, axes, keepdims=keep)
    if p == float("-inf"):
        return g.op("ReduceMin", size, axes, keepdims=keep)
    if p == 0:
        nonzero = g.op("Not", g.op("Equal", size, g.constant(0, size.dtype), dtype=cygrad.bool))
        return g.op("ReduceSum", g.cast(nonzero, size.dtype), axes, keepdims=keep)
    total = g.op("ReduceSum", g.op("Pow", size, g.constant(p, size.dtype)), axes, keepdims=keep)
    return g.op("Pow", total, g.constant(1 / p, size.dtype))


@form("pairwise_distance")
def pairwise_distance(
    g: Graph, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    a, b = g.promoted(x1, x2)
    gap = g.op("Add", g.op("Sub", a, b), g.constant(eps, a.dtype))
    return norm_along(g, gap, p, [-1], keepdim)


@form("cdist")
def cdist(g: Graph, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    a, b = g.promoted(x1, x2)
    gap = g.op("Sub", g.op("Unsqueeze", a, [-2]), g.op("Unsqueeze", b, [-3]))
    return norm_along(g, gap, p, [-1], False)
