"""LU factorization with partial pivoting, A = P L U, with batching, and solving with the factors.

A is of shape (..., m, n). The compact format is LAPACK's: a matrix that holds L below the diagonal (the diagonal of L
is 1) and U, and an int32 tensor `pivots` of shape (..., min(m, n)), the 1-based index of the row that each row was
exchanged with. Gradients: F. R. de Hoog, R. S. Anderssen, M. A. Lukas, "Differentiation of matrix functionals using
triangular factorization" (2011).
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, IN1, OUT0, OUT1, declare, facts, publish
from cygrad._core.graph.record import record_n, record_outputs, write_into
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.linalg import lu as kernels
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, neg
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import matmul
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import transpose
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given_several
from cygrad._ops.creation.ranges import arange, eye
from cygrad._ops.linalg.common import (
    LINALG,
    adjoint_times,
    aligned_factors,
    batch_element,
    check_equation,
    check_inexact,
    check_kernel,
    check_lengths,
    check_matrices,
    check_outs,
    check_same_dtype,
    constant,
    first_failure,
    given,
    lengthened,
    several,
    times_adjoint,
)
from cygrad._ops.linalg.triangular import solve
from cygrad._ops.shape.diagonals import tril, triu

# -- gradients --


def product_gradient(p, lower, upper, of_lower, of_upper):
    """Return the gradient of A = P L U, given those of L and U, one of which may be None."""
    k = lower.shape[-1]
    first, rest = upper[..., :, :k], upper[..., :, k:]
    top, bottom = lower[..., :k, :], lower[..., k:, :]
    of_first = None if of_upper is None else of_upper[..., :, :k]
    of_top = None if of_lower is None else of_lower[..., :k, :]
    of_rest = of_bottom = None
    if rest.shape[-1] and of_upper is not None:  # these columns of U are L^-1 P^T A
        of_rest = solve(adjoint(top), of_upper[..., :, k:], True, True, True)
        of_top = plus(of_top, matmul(of_rest, adjoint(rest)), -1)
    if bottom.shape[-2] and of_lower is not None:  # these rows of L are P^T A U^-1
        of_bottom = solve(adjoint(first), of_lower[..., k:, :], False, False)
        of_first = plus(of_first, matmul(adjoint(bottom), of_bottom), -1)
    inner = None
    if of_top is not None:
        inner = tril(matmul(adjoint(top), of_top), -1)
    if of_first is not None:
        inner = plus(inner, triu(matmul(of_first, adjoint(first))))
    square = solve(adjoint(first), solve(adjoint(top), inner, True, True, True), False, False)
    square = lengthened(square, k + rest.shape[-1], -1) if of_rest is None else cat((square, of_rest), -1)
    square = lengthened(square, k + bottom.shape[-2], -2) if of_bottom is None else cat((square, of_bottom), -2)
    return matmul(p, square)


def plus(a, b, sign=1):
    return (b if sign > 0 else -b) if a is None else add(a, b, alpha=sign)


def unit_lower(compact, k):
    """Extract L from the compact format."""
    lower = compact[..., :, :k]
    ones = eye(lower.shape[-2], k, dtype=compact.dtype, device=compact.device)
    return add(tril(lower, -1), ones)


# -- factorization --


def checked(A, function, shown, pivot):
    t = require(A, function, "A")
    if t.dim() < 2:
        raise RuntimeError(f"{shown}: Expected tensor with 2 or more dimensions. Got size: {list(t.shape)} instead")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    check_kernel(t, "lu_cpu")
    return t


@in_parts(saved=(2, 1, 2, 2))
def factor_rule(n, g):
    compact = n.saved_output(0)
    m, columns = compact.shape[-2:]
    k = min(m, columns)
    p = permutation("linalg_lu_factor_ex", n.saved_output(1), m, compact)
    of_lower = tril(g[..., :, :k], -1)
    return product_gradient(p, unit_lower(compact, k), triu(compact[..., :k, :]), of_lower, triu(g[..., :k, :]))


FACTOR = declare(
    "linalg_lu_factor_ex",
    factor_rule,
    saves=OUT0 | OUT1,
    flags=LINALG,
    inputs="A",
    outputs="LU pivots",
    attributes="pivot _",
    out_dtype="same",
)


def permutation(name, pivots, m, *others):
    """Return the matrices P with A = P L U, with the dtype of the first of `others`; constant for autograd."""
    return constant(name, kernels.permutation(array_of(pivots), m, array_of(others[0]).dtype), pivots, *others)


def factored(t, kind, function, check_errors, out, n=3):
    compact, pivots, info = kernels.lu_factor(array_of(t))
    failure = first_failure(info) if check_errors else None
    if failure:
        number, pivot = failure
        raise RuntimeError(
            f"torch.linalg.{function}: {batch_element(number, t.dim())}U[{pivot},{pivot}] is zero and using it on "
            "lu_solve would result in a division by zero. If you still want to perform the factorization, consider "
            "calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return several(FACTOR, kind, (compact, pivots, info)[:n], (t,), (True, bool(check_errors)), out, 1)


def linalg_lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """Compute the LU factors in compact format: a tuple (LU, pivots, info).

    info is an int32 tensor of shape (...): 0, or the 1-based index of the first zero on the diagonal of U; raises
    RuntimeError for the latter if `check_errors`. Saves LU. Gradient: see `linalg.lu`.

    >>> import cygrad
    >>> cygrad.linalg.lu_factor_ex(cygrad.tensor([[1.0, 2.0], [2.0, 1.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    t = checked(A, "linalg_lu_factor_ex", "torch.lu_factor", pivot)
    return factored(t, return_types.linalg_lu_factor_ex, "lu_factor_ex", check_errors, out)


@rule("linalg_lu_factor_ex")
def _lu_factor(call):
    if len(call.outs) == 1:
        return _permutation(call)
    return linalg_lu_factor_ex(call.full(call.inputs[0]), check_errors=call.args[1])


def _permutation(call):
    pivots, like = call.inputs[:2]
    return permutation(call.key, call.full(pivots), call.out.shape[-1], like)


@facts(out_dtype="same")
def linalg_lu_factor(A, *, pivot=True, out=None):
    """Compute the LU factors in compact format: a tuple (LU, pivots). Raises RuntimeError for a zero on U's diagonal.

    Saves LU. Gradient: see `linalg.lu`.

    >>> import cygrad
    >>> cygrad.linalg.lu_factor(cygrad.tensor([[1.0, 2.0], [2.0, 1.0]])).LU
    tensor([[2.0000, 1.0000],
            [0.5000, 1.5000]])
    """
    t = checked(A, "linalg_lu_factor", "torch.lu_factor", pivot)
    return factored(t, return_types.linalg_lu_factor, "lu_factor", True, out, 2)


@facts(autocast="float32", in_python=True)
def lu(A, pivot=True, get_infos=False, out=None):
    """Compute the LU factors in compact format: (LU, pivots), plus infos if `get_infos`. See `linalg.lu_factor_ex`.

    >>> import cygrad
    >>> cygrad.lu(cygrad.tensor([[2.0]]))[1]
    tensor([1], dtype=torch.int32)
    """
    t = checked(A, "lu", "torch.lu_factor", pivot)
    if get_infos:
        return factored(t, return_types._lu_with_info, "lu_factor_ex", False, out)
    return factored(t, tuple, "lu_factor_ex", False, out, 2)


@in_parts(args=(2,))
def lu_rule(n, grads):
    return product_gradient(n.args[0], n.saved_output(0), n.saved_output(1), *grads)


LU = declare(
    "linalg_lu",
    lu_rule,
    saves=OUT0 | OUT1,
    flags=LINALG,
    inputs="A",
    outputs="L U",
    attributes="P pivot",
    out_dtype="same",
)


def linalg_lu(A, *, pivot=True, out=None):
    """Compute the LU factors: a tuple (P, L, U) with A = P L U.

    P is a permutation matrix (..., m, m), L lower triangular (..., m, k) with unit diagonal, U upper triangular
    (..., k, n), k = min(m, n). P is constant; all three are saved. Gradient for square A:
    P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H.

    >>> import cygrad
    >>> P, L, U = cygrad.linalg.lu(cygrad.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    t = checked(A, "linalg_lu", "linalg.lu", pivot)
    parts = kernels.factors(array_of(t))
    if out is not None:
        check_outs("linalg_lu", out, 3)
        return return_types.linalg_lu(given_several("linalg_lu", parts, out, t))
    p = constant("linalg_lu", parts[0], t)
    return return_types.linalg_lu((p, *record_outputs(LU, parts[1:], (t,), (p, True), 2)))


@rule("linalg_lu")
def _lu(call):
    p, *triangles = linalg_lu(call.full(call.inputs[0]))
    return p if len(call.outs) == 1 else triangles


@in_parts()
def unpack_rule(n, grads):
    shape, _ = n.args
    of_lower, of_upper = grads
    total = None if of_lower is None else lengthened(tril(of_lower, -1), shape[-1], -1)
    return total if of_upper is None else plus(total, lengthened(triu(of_upper), shape[-2], -2))


UNPACK = declare(
    "lu_unpack",
    unpack_rule,
    flags=FUNCTION_ONLY,
    inputs="LU_data",
    attributes="_ _",
    derived={"LU_data_sym_argsize_minus_1": (0, -1), "LU_data_sym_argsize_minus_2": (0, -2)},
    devices="together",
    out_dtype="same",
    float8="tril",
)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """Unpack the compact format: a tuple (P, L, U). Factors that are not requested are empty tensors.

    Gradient: that of L below the diagonal and that of U on and above it, in one matrix. Raises RuntimeError for pivots
    that are not valid row numbers. Saves nothing.

    >>> import cygrad
    >>> LU, pivots = cygrad.linalg.lu_factor(cygrad.tensor([[1.0, 2.0], [2.0, 1.0]]))
    >>> P, L, U = cygrad.lu_unpack(LU, pivots)
    >>> P @ L @ U
    tensor([[1., 2.],
            [2., 1.]])
    """
    t = require(LU_data, "lu_unpack", "LU_data")
    require(LU_pivots, "lu_unpack", "LU_pivots", 2)
    if t.dim() < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(t.shape)} instead"
        )
    pivots = array_of(LU_pivots) if unpack_pivots else None
    if pivots is not None and pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    compact = array_of(t)
    m, k = compact.shape[-2], min(compact.shape[-2:])
    if pivots is not None and (pivots.shape != (*compact.shape[:-2], k) or not kernels.are_rows(pivots, m)):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    if not (unpack_data and unpack_pivots):
        nothing = np.empty(0, compact.dtype, like=compact)
    lower, upper = kernels.triangles(compact) if unpack_data else (nothing, nothing)
    p = permutation("lu_unpack", LU_pivots, m, t) if unpack_pivots else constant("lu_unpack", nothing, t)
    if out is not None:
        check_outs("lu_unpack", out, 3)
        return return_types.lu_unpack(given_several("lu_unpack", (array_of(p), lower, upper), out, t))
    hint = LU_pivots, p, bool(unpack_data), bool(unpack_pivots)
    found = record_outputs(UNPACK, (lower, upper), (t,), (compact.shape, bool(unpack_data)), 2, hint)
    return return_types.lu_unpack((p, *found))


@rule("lu_unpack")
def _lu_unpack(call):
    x = call.inputs[0]
    if len(call.outs) == 1:
        return _permutation(call) if len(call.inputs) > 1 else x.new_zeros((call.size, 0))
    if not call.args[1]:
        return [x.new_zeros((call.size, 0))] * 2
    return lu_unpack(call.full(x), arange(0, device=x.device), unpack_pivots=False)[1:]


# -- linear systems --


def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """Solve A X = B (X A = B if not `left`) given the compact LU factors of A; A^H if `adjoint`. Batches broadcast.

    Saves the factors and the result X. Gradients: that of B is G = A^-H g; with A = P L U, that of L is the triangle of
    -P^T G X^H U^H, that of U the triangle of -L^H P^T G X^H. Raises RuntimeError for mismatched shapes and for pivots
    that are not valid row numbers.

    >>> import cygrad
    >>> LU, pivots = cygrad.linalg.lu_factor(cygrad.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> cygrad.linalg.lu_solve(LU, pivots, cygrad.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    t, b = require(LU, "linalg_lu_solve", "LU"), require(B, "linalg_lu_solve", "B", 3)
    p = array_of(require(pivots, "linalg_lu_solve", "pivots", 2))
    check_lu_system(t, p, b, left)
    args = (bool(left), bool(adjoint))
    x = kernels.lu_solve(as_float32(array_of(t)), p, as_float32(array_of(b)), *args)
    x = in_dtype(x, array_of(t).dtype)
    if out is None:
        return record_n(SOLVE, x, (t, pivots, b), args)
    return write_into(SOLVE, out, x, (t, pivots, b), args)


@rule("linalg_lu_solve")
def _lu_solve(call):
    left, adjoint = call.args
    factors, pivots, b = aligned_factors(call)
    return linalg_lu_solve(factors, pivots, b, left=left, adjoint=adjoint)


@in_parts(saved=(2, 1, 2, 2), inputs=(2, 1, 2))
def solve_rule(n, g):
    left, turned = n.args
    compact, pivots = n.saved(0), n.saved(1)
    of_b = linalg_lu_solve(compact, pivots, g, left=left, adjoint=not turned)
    if not n.needs(0):
        return None, None, of_b
    x = n.saved_result()
    pair = (of_b, x) if left != turned else (x, of_b)
    of_a = times_adjoint(*pair) if left else adjoint_times(*pair)  # up to the sign; A = P L U
    size = compact.shape[-1]
    p = permutation("lu_unpack", pivots, size, compact)
    moved = matmul(transpose(p, -2, -1), of_a)
    of_lower = tril(matmul(moved, adjoint(triu(compact))), -1)
    of_upper = triu(matmul(adjoint(unit_lower(compact, size)), moved))
    return neg(add(of_lower, of_upper)), None, of_b


SOLVE = declare(
    "linalg_lu_solve",
    solve_rule,
    saves=(IN0 | IN1 | OUT0, 0, IN0 | IN1),
    flags=LINALG,
    inputs="LU pivots B",
    attributes="left adjoint",
    devices="together",
    out_dtype="same",
    float8="linalg.lu_solve_cpu",
)


def check_lu_system(t, pivots, b, left):
    shown = "linalg.lu_solve"
    check_inexact(t, "torch.linalg.lu_solve")
    check_same_dtype(t, b, shown, ("LU", "B"))
    if pivots.dtype != np.int32:
        raise RuntimeError(f"{shown}: pivots should be a Tensor of scalar type torch.int32")
    if t.dim() < 2:
        raise RuntimeError("torch.linalg.lu_solve: The input tensor A must have at least 2 dimensions.")
    check_lengths(t, "torch.linalg.lu_solve: ")
    check_matrices(b, shown, "B")
    check_equation(t, b, shown, left)
    if pivots.shape[-1:] != t.shape[-1:]:
        raise RuntimeError(f"{shown}: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != tuple(t.shape[:-2]):
        raise RuntimeError(
            f"{shown}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    broadcast_shape(tuple(t.shape[:-2]), tuple(b.shape[:-2]))
    if not kernels.are_rows(pivots, t.shape[-2]):
        fault = "greater or equal to 1" if pivots.min() < 1 else "smaller or equal to LU.size(-2)"
        raise RuntimeError(
            f"Pivots given to lu_solve must all be {fault}. Did you properly pass the result of lu_factor?"
        )


@facts(devices="together", autocast="float32", out_dtype="same")
def lu_solve(input, LU_data, LU_pivots, *, out=None):
    """Solve A X = `input` given the compact LU factors of A; see `linalg.lu_solve`.

    >>> import cygrad
    >>> cygrad.lu_solve(cygrad.tensor([[4.0]]), *cygrad.linalg.lu_factor(cygrad.tensor([[2.0]])))
    tensor([[2.]])
    """
    require(input, "lu_solve")
    require(LU_data, "lu_solve", "LU_data", 2)
    require(LU_pivots, "lu_solve", "LU_pivots", 3)
    return given("lu_solve", linalg_lu_solve(LU_data, LU_pivots, input), out)


composite = {"linalg_lu_factor": LINALG, "lu": 0, "lu_solve": 0}
functions = publish(globals())
