"""ONNX forms of functions on diagonals and matrices, and of finite differences."""

import math
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.indexing import written
from cygrad.export._onnx_forms.shape import diagonal as diagonal_of
from cygrad.export._onnx_forms.shape import flip
from cygrad.export._onnx_forms.table import Unsupported, form

# -- diagonals ---------------------------------------------------------------------------------------------


def _on_diagonal(g: Graph, value: Value, length: int, offset: int) -> Value:
    """Matrices, in the last two dimensions, with the elements of the last dimension on a diagonal."""
    size = length + abs(offset)
    places = np.full((size, size), length)
    at = np.arange(length)
    places[at - min(offset, 0), at + max(offset, 0)] = at
    zero = g.op("Pad", value, g.ints([0, 1]), None, g.ints([-1]))  # taken off the diagonal
    return g.op("Gather", zero, g.constant(places, cygrad.int64), axis=-1)


@form("diag_embed")
def diag_embed(g: Graph, input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    found = _on_diagonal(g, input, input.length(-1), offset)
    rank = input.rank + 1
    order = [*range(rank - 2)]
    for at, source in sorted([(dim1 % rank, rank - 2), (dim2 % rank, rank - 1)]):
        order.insert(at, source)
    return found if order == list(range(rank)) else g.op("Transpose", found, perm=order)


@form("diag")
def diag(g: Graph, input: Value, diagonal: int = 0, *, out: Any = None) -> Value:
    if input.rank == 1:
        return diag_embed(g, input, diagonal)
    return diagonal_of(g, input, diagonal)


@form("diagflat")
def diagflat(g: Graph, input: Value, offset: int = 0) -> Value:
    count = math.prod(input.fixed(range(input.rank)))
    return _on_diagonal(g, g.reshape(input, [-1]), count, offset)


@form("diagonal_scatter")
def diagonal_scatter(g: Graph, input: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    return written(g, input, lambda numbers: diagonal_of(g, numbers, offset, dim1, dim2), src)


@form("fill_diagonal")
def fill_diagonal(g: Graph, input: Value, fill_value: Any, wrap: bool = False) -> Value:
    if input.rank != 2 or wrap:
        raise Unsupported("more than two dimensions, and `wrap=True`")
    return written(g, input, lambda numbers: diagonal_of(g, numbers), fill_value)


# -- products and the like ---------------------------------------------------------------------------------


@form("addbmm")
def addbmm(
    g: Graph, input: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1, out: Any = None
) -> Value:
    product = g.scaled(g.op("ReduceSum", g.op("MatMul", batch1, batch2), [0], keepdims=0), alpha)
    return product if beta == 0 else g.op("Add", g.scaled(input, beta), product)


@form("addr")
def addr(g: Graph, input: Value, vec1: Value, vec2: Value, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Value:
    product = g.scaled(g.op("Mul", g.reshape(vec1, [-1, 1]), g.reshape(vec2, [1, -1])), alpha)
    return product if beta == 0 else g.op("Add", g.scaled(input, beta), product)


@form("det")
def det(g: Graph, A: Value, *, out: Any = None) -> Value:
    return g.op("Det", A)


@form("matrix_power")
def matrix_power(g: Graph, input: Value, n: int, *, out: Any = None) -> Value:
    if n < 1:
        raise Unsupported("powers below 1")
    found: Value | None = None
    while n:  # by squaring
        if n % 2:
            found = input if found is None else g.op("MatMul", found, input)
        n //= 2
        if n:
            input = g.op("MatMul", input, input)
    assert found is not None
    return found


@form("kron")
def kron(g: Graph, input: Value, other: Value, *, out: Any = None) -> Value:
    a, b = g.promoted(input, other)
    rank = max(input.rank, other.rank)
    ours, theirs = ([1] * (rank - each.rank) + each.fixed(range(each.rank)) for each in (input, other))
    spread = g.reshape(a, [n for pair in zip(ours, [1] * rank) for n in pair])
    close = g.reshape(b, [n for pair in zip([1] * rank, theirs) for n in pair])
    return g.reshape(g.op("Mul", spread, close), [n * m for n, m in zip(ours, theirs)])


@form("cross", "linalg.cross")
def cross(g: Graph, input: Value, other: Value, dim: int | None = None, *, out: Any = None) -> Value:
    if input.shape != other.shape:
        raise Unsupported("operands of different shapes")
    if dim is None:
        dim = -1 if g.target.startswith("linalg") else input.shape.index(3)
    axis = input.axis(dim)
    a, b = g.promoted(input, other)

    def turned(value: Value, by: int) -> Value:
        return g.op("Gather", value, g.constant((np.arange(3) + by) % 3, cygrad.int64), axis=axis)

    return g.op("Sub", g.op("Mul", turned(a, 1), turned(b, 2)), g.op("Mul", turned(a, 2), turned(b, 1)))


@form("vander")
def vander(g: Graph, x: Value, N: int | None = None, increasing: bool = False) -> Value:
    powers = np.arange(x.length(0) if N is None else N)
    exponents = g.constant(powers if increasing else powers[::-1], x.dtype)
    return g.op("Pow", g.op("Unsqueeze", x, [-1]), exponents)


@form("cov")
def cov(
    g: Graph, input: Value, *, correction: int = 1, fweights: Value | None = None, aweights: Value | None = None
) -> Value:
    if fweights is not None or aweights is not None or input.rank != 2:
        raise Unsupported("weights, and other than two dimensions")
    gap = g.op("Sub", input, g.op("ReduceMean", input, [1], keepdims=1))
    total = g.op("MatMul", gap, g.op("Transpose", gap, perm=[1, 0]))
    count = g.op("Sub", g.number(g.size(input, 1), input.dtype), g.constant(correction, input.dtype))
    return g.op("Div", total, g.op("Max", count, g.constant(0, input.dtype)))


@form("corrcoef")
def corrcoef(g: Graph, input: Value) -> Value:
    found = cov(g, input)
    variances = g.op("ReduceSum", g.op("Mul", found, _identity_like(g, input, found)), [1], keepdims=1)
    deviations = g.op("Sqrt", variances)
    found = g.op("Div", g.op("Div", found, deviations), g.op("Transpose", deviations, perm=[1, 0]))
    return g.op("Clip", found, g.constant(-1, input.dtype), g.constant(1, input.dtype))


def _identity_like(g: Graph, input: Value, square: Value) -> Value:
    rows = g.arange(g.size(input, 0))
    equal = g.op("Equal", g.reshape(rows, [-1, 1]), rows, dtype=cygrad.bool)
    return g.cast(equal, square.dtype)


@form("block_diag")
def block_diag(g: Graph, *tensors: Value) -> Value:
    blocks = [each if each.rank == 2 else g.reshape(each, [1, -1]) for each in tensors]
    widths = [each.length(-1) if each.rank else 1 for each in tensors]
    rows, before = [], 0
    for block, width in zip(g.promoted(*blocks), widths):
        after = sum(widths) - before - width
        rows.append(g.op("Pad", block, g.ints([before, after]), None, g.ints([1])))
        before += width
    return g.op("Concat", *rows, axis=0)


@form("cartesian_prod")
def cartesian_prod(g: Graph, *tensors: Value) -> Value:
    if len(tensors) == 1:
        return tensors[0]
    sizes = g.op("Concat", *[g.size(each, 0) for each in tensors], axis=0)
    columns = []
    for i, value in enumerate(g.promoted(*tensors)):
        spread = g.reshape(value, [-1 if d == i else 1 for d in range(len(tensors))])
        columns.append(g.reshape(g.op("Expand", spread, sizes), [-1, 1]))
    return g.op("Concat", *columns, axis=1)


@form("rot90")
def rot90(g: Graph, input: Value, k: int = 1, dims: Any = (0, 1)) -> Value:
    first, second = input.axes(dims)
    if k % 4 == 0:
        return input
    if k % 4 == 2:
        return flip(g, input, first, second)
    order = list(range(input.rank))
    order[first], order[second] = order[second], order[first]
    return g.op("Transpose", flip(g, input, second if k % 4 == 1 else first), perm=order)


# -- differences -------------------------------------------------------------------------------------------


def _neighbours(g: Graph, value: Value, axis: int) -> tuple[Value, Value]:
    return g.slice(value, axis, 1), g.slice(value, axis, 0, -1)


@form("diff")
def diff(
    g: Graph, input: Value, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None
) -> Value:
    axis = input.axis(dim)
    parts = [each for each in (prepend, input, append) if each is not None]
    value = g.op("Concat", *g.promoted(*parts), axis=axis) if len(parts) > 1 else input
    for _ in range(n):
        after, before = _neighbours(g, value, axis)
        value = g.op("Xor" if input.dtype is cygrad.bool else "Sub", after, before)
    return value


def _areas(g: Graph, y: Value, x: Value | None, dx: Any, axis: int) -> Value:
    after, before = _neighbours(g, y, axis)
    mean = g.op("Mul", g.op("Add", after, before), g.constant(0.5, y.dtype))
    if x is None:
        return g.scaled(mean, dx)
    if x.rank == 1:
        x = g.reshape(x, [-1 if d == axis else 1 for d in range(y.rank)])
    return g.op("Mul", mean, g.op("Sub", *_neighbours(g, g.cast(x, y.dtype), axis)))


@form("trapezoid", "trapz")
def trapezoid(g: Graph, y: Value, x: Value | None = None, *, dx: Any = 1, dim: int = -1) -> Value:
    axis = y.axis(dim)
    return g.op("ReduceSum", _areas(g, y, x, dx, axis), [axis], keepdims=0)


@form("cumulative_trapezoid")
def cumulative_trapezoid(g: Graph, y: Value, x: Value | None = None, *, dx: Any = 1, dim: int = -1) -> Value:
    axis = y.axis(dim)
    return g.op("CumSum", _areas(g, y, x, dx, axis), g.constant(axis, cygrad.int64))
