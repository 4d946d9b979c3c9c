"""Linear systems with triangular matrices."""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, IN1, OUT0, declare, publish
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.graph.spent_gradients import is_spare
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.linalg import triangular as kernels
from cygrad._kernels.cpu.linalg.lapack import laid_by_columns
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, neg
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import typed
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import transpose
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.linalg.common import (
    LINALG,
    adjoint_times,
    check_equation,
    check_kernel,
    check_matrices,
    check_old_system,
    check_square,
    several,
    times_adjoint,
)
from cygrad._ops.shape.diagonals import tril, triu


def solve_array(a, b, upper, left, unit, is_own=False):
    if left:
        return kernels.solve_triangular(a, b, upper, unit, is_own)
    a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    return kernels.solve_triangular(a, b, not upper, unit, False, True).swapaxes(-1, -2)


def triangle(t, upper, unit):
    """Return the part of a matrix that the solver reads."""
    return triu(t, int(unit)) if upper else tril(t, -int(unit))


@in_parts()
def solve_rule(n, g):
    upper, left, unit = n.args
    of_b = solve(adjoint(n.saved(0)), g, not upper, left, unit, is_spare(g))
    if not n.needs(0):
        return None, of_b
    x = n.saved_result()
    of_a = times_adjoint(of_b, x) if left else adjoint_times(x, of_b)
    return triangle(neg(of_a), upper, unit), of_b


SOLVE = declare(
    "linalg_solve_triangular",
    solve_rule,
    saves=(IN0 | OUT0, IN0),
    flags=LINALG,
    kernel=solve_array,
    inputs="self B",
    attributes="upper left unitriangular",
    devices="together",
    out_dtype="expected scalar type {result} but found {out}",
)


def solve(a, b, upper, left=True, unit=False, spends=False):
    """`linalg_solve_triangular` for arguments that are known to be valid; may overwrite `b` if it `spends` it."""
    array = solve_array(array_of(a), array_of(b), upper, left, unit, spends)
    return record_n(SOLVE, array[...] if spends else array, (a, b), (upper, left, unit))


@typed(upper=bool, left=bool, unitriangular=bool)
def linalg_solve_triangular(input, B, *, upper, left=True, unitriangular=False, out=None):
    """Solve A X = B, or X A = B if not `left`, for a triangular A = `input` of shape (..., n, n).

    Only the `upper` or the lower triangle of A is read; its diagonal is treated as ones if `unitriangular`. B is of
    shape (..., n, k); batches broadcast. A zero on the diagonal gives inf and NaN. Saves A and the result X. Gradients:
    that of B is A^-H g, that of A is the triangle of -A^-H g X^H. Raises RuntimeError for mismatched shapes.

    >>> import cygrad
    >>> A = cygrad.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> cygrad.linalg.solve_triangular(A, cygrad.tensor([[2.0], [5.0]]), upper=False)
    tensor([[1.],
            [1.]])
    """
    a = require(input, "linalg_solve_triangular")
    b = require(B, "linalg_solve_triangular", "B", 2)
    matrix, columns = array_of(a), array_of(b)
    n = matrix.shape[-1:]
    if not (columns.ndim > 1 and n == matrix.shape[-2:-1] and n[0] == columns.shape[-2 if left else -1]):
        check_square(a, "linalg.solve_triangular")
        check_matrices(b, "linalg.solve_triangular", "B")
        check_equation(a, b, "linalg.solve_triangular", left)
    if b.dtype is not a.dtype:
        if b.is_complex() and not a.is_complex():
            raise RuntimeError(f"expected scalar type {a.dtype.type_name} but found {b.dtype.type_name}")
        b = b.to(a.dtype)
        columns = array_of(b)
    broadcast_shape(matrix.shape[:-2], columns.shape[:-2])
    check_kernel(a, "triangular_solve_cpu")
    args = (bool(upper), bool(left), bool(unitriangular))
    x = in_dtype(solve_array(matrix, columns, *args), matrix.dtype)
    return record_n(SOLVE, x, (a, b), args) if out is None else write_into(SOLVE, out, x, (a, b), args)


@rule("linalg_solve_triangular")
def _solve_triangular(call):
    ndim = call.out.ndim
    upper, left, unitriangular = call.args
    a, b = (call.aligned(x, ndim) for x in call.inputs)
    return linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


@in_parts()
def triangular_solve_rule(n, grads):
    upper, transposed, unit = n.args
    g, g_copy = grads
    of_b = of_a = None
    if g is not None:
        a, x = n.saved(1), n.saved_result()
        read = upper != transposed
        of_b = solve(adjoint(transpose(a, -2, -1) if transposed else a), g, not read, True, unit)
        if n.needs(1):
            of_a = triangle(neg(matmul(of_b, adjoint(x))), read, unit)
            of_a = transpose(of_a, -2, -1) if transposed else of_a
    if g_copy is not None:
        of_a = g_copy if of_a is None else add(of_a, g_copy)
    return of_b, of_a


TRIANGULAR_SOLVE = declare(
    "triangular_solve",
    triangular_solve_rule,
    saves=IN1 | OUT0,
    inputs="self A",
    outputs="solution",
    attributes="upper transpose unitriangular",
    devices="together",
    autocast="float32",
    out_dtype="same",
)


def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """Solve A X = `input` for a triangular A, or with A^T if `transpose`: a tuple (solution, copy of A).

    An older form of `linalg.solve_triangular`. Saves `A` and the result.

    >>> import cygrad
    >>> A = cygrad.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> cygrad.triangular_solve(cygrad.tensor([[3.0], [4.0]]), A).solution
    tensor([[1.],
            [1.]])
    """
    b, a = require(input, "triangular_solve"), require(A, "triangular_solve", "A", 2)
    for t, name in ((b, "b"), (a, "A")):
        if t.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {t.dim()} "
                "dimensions instead"
            )
    check_old_system(b, a, "triangular_solve")
    check_kernel(a, "triangular_solve_cpu")
    args = (bool(upper), bool(transpose), bool(unitriangular))
    matrix = array_of(a)
    shape = broadcast_shape(matrix.shape[:-2], array_of(b).shape[:-2])
    shape = (*shape, *matrix.shape[-2:])
    copy = laid_by_columns(matrix, shape) if isinstance(matrix, np.ndarray) else np.broadcast_to(matrix, shape).copy()
    coefficient = matrix.swapaxes(-1, -2) if transpose else matrix
    x = kernels.solve_triangular(coefficient, array_of(b), args[0] != args[1], args[2])
    return several(TRIANGULAR_SOLVE, return_types.triangular_solve, (x, copy), (b, a), args, out)


@rule("triangular_solve")
def _old_solve_triangular(call):
    ndim = call.out.ndim
    b, a = (call.aligned(x, ndim) for x in call.inputs)
    found, copy = triangular_solve(b, a, *call.args)
    return call.shaped(found, call.out.shape), call.shaped(copy, call.outs[1].shape)


functions = publish(globals())
