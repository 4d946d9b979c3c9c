"""LDL factorization A = L D L^T of symmetric or Hermitian indefinite matrices, and solving with the factors.

These functions are not differentiable, as in PyTorch.
"""

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import declare, facts, publish
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.types import return_types
from cygrad._kernels.cpu.linalg import ldl as kernels
from cygrad._kernels.cpu.linalg.lu import are_rows
from cygrad._kernels.device.cupy_library import is_array
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.linalg.common import (
    LINALG,
    aligned_factors,
    batch_element,
    check_inexact,
    check_kernel,
    check_old_system,
    check_square,
    first_failure,
    several,
)

NOT_IMPLEMENTED = "torch::autograd::NotImplemented"


def factor_rule(n, g):
    raise RuntimeError("derivative for aten::linalg_ldl_factor_ex is not implemented")


FACTOR = declare(
    "linalg_ldl_factor_ex",
    factor_rule,
    flags=LINALG,
    inputs="self",
    attributes="hermitian check_errors",
    node=NOT_IMPLEMENTED,
    out_dtype="same",
)


def factors(A, hermitian, check_errors, name):
    """Return (tensor, (LD, pivots, info)) after checking the argument."""
    t = require(A, name)
    check_square(t, "torch.linalg.ldl_factor_ex")
    check_inexact(t, "torch.linalg.ldl_factor_ex")
    check_kernel(t, "ldl_factor_kernel_cpu")
    found = kernels.ldl_factor(array_of(t), bool(hermitian))
    if check_errors and (failure := first_failure(found[2])):
        number, block = failure
        raise RuntimeError(
            f"torch.{name.replace('_', '.', 1)}: {batch_element(number, t.dim())}The factorization could be completed, "
            f"but D[{block},{block}] is zero, and using it on ldl_solve would result in a division by zero."
        )
    return t, found


@facts(out_dtype="same")
def linalg_ldl_factor(A, *, hermitian=False, out=None):
    """Factor symmetric matrices (Hermitian ones if `hermitian`) as L D L^T, in LAPACK's format: (LD, pivots).

    LD holds L below its unit diagonal and the 1x1 and 2x2 blocks of D on the diagonal. `pivots`, int32 of shape
    (..., n), encodes the row interchanges and marks 2x2 blocks by negative values. Only the lower triangle of A is
    read. Raises RuntimeError for a block of D that is 0. Not differentiable, as in PyTorch.

    >>> import cygrad
    >>> cygrad.linalg.ldl_factor(cygrad.tensor([[0.0, 1.0], [1.0, 0.0]])).pivots
    tensor([-2, -2], dtype=torch.int32)
    """
    t, found = factors(A, hermitian, True, "linalg_ldl_factor")
    return several(FACTOR, return_types.linalg_ldl_factor, found[:2], (t,), (bool(hermitian), True), out, 1)


def linalg_ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """Run `ldl_factor` without raising for singular blocks: a tuple (LD, pivots, info).

    info is an int32 tensor of shape (...): 0, or the 1-based index of the first block of D that is 0. Raises only if
    `check_errors`. Saves nothing.

    >>> import cygrad
    >>> cygrad.linalg.ldl_factor_ex(cygrad.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    t, found = factors(A, hermitian, check_errors, "linalg_ldl_factor_ex")
    args = (bool(hermitian), bool(check_errors))
    return several(FACTOR, return_types.linalg_ldl_factor_ex, found, (t,), args, out, 1)


@rule("linalg_ldl_factor_ex")
def _ldl_factor(call):
    hermitian, check_errors = call.args
    return linalg_ldl_factor_ex(call.full(call.inputs[0]), hermitian=hermitian, check_errors=check_errors)


def solve_rule(n, g):
    raise RuntimeError("derivative for aten::linalg_ldl_solve is not implemented")


SOLVE = declare(
    "linalg_ldl_solve",
    solve_rule,
    flags=LINALG,
    inputs="LD pivots B",
    attributes="hermitian",
    node=NOT_IMPLEMENTED,
    out_dtype="same",
)


def linalg_ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """Solve A X = B, given the result of `ldl_factor` for A. B is (..., n, k); batch dimensions broadcast.

    Raises RuntimeError for mismatched shapes and for pivots that are not valid row numbers. Not differentiable, as in
    PyTorch. Saves nothing.

    >>> import cygrad
    >>> LD, pivots = cygrad.linalg.ldl_factor(cygrad.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> cygrad.linalg.ldl_solve(LD, pivots, cygrad.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    t, p = require(LD, "linalg_ldl_solve", "LD"), require(pivots, "linalg_ldl_solve", "pivots", 2)
    b = require(B, "linalg_ldl_solve", "B", 3)
    check_factors(t, p, b)
    x = kernels.ldl_solve(array_of(t), array_of(p), array_of(b), bool(hermitian))
    if out is None:
        return record_n(SOLVE, x, (t, p, b), (bool(hermitian),))
    return write_into(SOLVE, out, x, (t, p, b), (bool(hermitian),))


@rule("linalg_ldl_solve")
def _ldl_solve(call):
    factors, pivots, b = aligned_factors(call)
    return linalg_ldl_solve(factors, pivots, b, hermitian=call.args[0])


def check_factors(t, p, b):
    shown = "torch.linalg.ldl_solve"
    check_square(t, shown)
    check_inexact(t, shown)
    factors, pivots, columns = array_of(t), array_of(p), array_of(b)
    if columns.ndim < 2:
        raise RuntimeError(
            f"{shown}: Expected B to have at least 2 dimensions, but it has {b.dim()} dimensions instead"
        )
    if pivots.shape != factors.shape[:-1]:
        raise RuntimeError(
            f"{shown}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(p.shape)} instead"
        )
    if p.is_floating_point() or p.is_complex() or p.dtype.name == "bool":
        raise RuntimeError(f"{shown}: Expected pivots to be integers. Got {p.dtype.type_name}")
    check_old_system(b, t, shown)
    check_kernel(t, "ldl_solve_kernel_cpu")
    broadcast_shape(factors.shape[:-2], columns.shape[:-2])
    if is_array(pivots):  # the check would wait for the GPU
        return
    rows = abs(pivots.astype("int64"))
    if are_rows(rows, t.size(-2)):
        return
    bound = ">= 1" if rows.min() < 1 else "<= LD.size(-2)"
    raise RuntimeError(
        f"Pivots given to ldl_solve must all satisfy |pivot| {bound}. Did you properly pass the result of ldl_factor?"
    )


composite = {"linalg_ldl_factor": LINALG}
functions = publish(globals())
