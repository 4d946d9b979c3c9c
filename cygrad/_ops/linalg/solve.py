"""Inverses and linear systems of square matrices, with batching.

A is of shape (..., n, n), of float32, float64 or a complex dtype. Singular matrices raise `LinAlgError`, a
RuntimeError. Values come from NumPy's batched LAPACK functions; gradients follow M. B. Giles, "An extended collection
of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

import math

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, OUT0, declare, facts, publish
from cygrad._core.graph.record import record_n, write_into
from cygrad._core.registry.dispatch import unseen
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg import lu as kernels
from cygrad._kernels.cpu.linalg.lapack import by_columns, laid_by_columns
from cygrad._kernels.cpu.linalg.triangular import stack_of
from cygrad._kernels.device.cupy_library import is_meta, module_of
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import broadcast_shape, integer, integers, require, wrap_dim
from cygrad._ops.base.arithmetic import neg
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import permute, reshape, unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given
from cygrad._ops.linalg.common import (
    LINALG,
    LinAlgError,
    batch_element,
    check_equation,
    check_matrices,
    check_precision,
    check_same_dtype,
    check_square,
    decomposition,
    first_failure,
    several,
)

# -- arrays --


@noted
@over_stacks(2, 2)
def solve_array(a, b):
    """Return (A^-1 B, info), with broadcasting; info is the 1-based index of each matrix's first zero pivot, or 0."""
    if isinstance(a, np.ndarray):
        try:
            shape = (*stack_of(a, b), *b.shape[-2:])
            found = by_columns("solve", "xx->x", (a, b), shape)
            if found is None:
                with np.errstate(all="ignore"):
                    found = np.linalg.solve(a, b)
            return found, np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    lu, pivots, info = kernels.lu_factor(a)
    x = kernels.lu_solve(lu, pivots, b)
    return (laid_by_columns(x) if type(x) is np.ndarray or is_meta(x) else x), info


@noted
@over_stacks(2)
def inv_array(a):
    """Return (A^-1, info)."""
    if isinstance(a, np.ndarray):
        if a.size == 0:
            return np.empty(a.shape, a.dtype), np.zeros(a.shape[:-2], np.int32)
        try:
            found = by_columns("inv", "x->x", (a,), a.shape)
            if found is None:
                with np.errstate(all="ignore"):
                    found = np.linalg.inv(a)
            return found, np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    return solve_array(a, module_of(a).eye(a.shape[-1], dtype=a.dtype))


# -- inverse --


@in_parts()
def inv_rule(n, g):
    inverse = adjoint(n.saved_result())
    return neg(matmul(inverse, matmul(g, inverse)))


INV = declare(
    "linalg_inv_ex",
    inv_rule,
    saves=OUT0,
    flags=LINALG,
    inputs="A",
    outputs="inverse",
    autocast="float32",
    out_dtype="same",
    batching=decomposition,
)


def inverses(A):
    """Check the argument and return (tensor, inverse, info)."""
    t = require(A, "linalg_inv", "A")
    check_square(t, "linalg.inv")
    check_precision(t, "linalg.inv")
    return t, *inv_array(array_of(t))


def check_invertible(info, shown):
    failure = first_failure(info)
    if failure:
        number, pivot = failure
        raise LinAlgError(
            f"{shown}: {batch_element(number, info.ndim + 2)}The diagonal element {pivot} is zero, "
            "the inversion could not be completed because the input matrix is singular."
        )


@facts(autocast="float32")
def linalg_inv(A, *, out=None):
    """Compute the inverse of square matrices A of shape (..., n, n). Saves the result r. Gradient: -r^H g r^H.

    Raises LinAlgError for a singular matrix.

    >>> import cygrad
    >>> cygrad.linalg.inv(cygrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv_named(A, "linalg.inv", out)


def inv_named(A, shown, out=None):
    """Compute the inverse; `shown` is the function's name in error messages."""
    t, inverse, info = inverses(A)
    check_invertible(info, shown)
    if out is None:
        return record_n(INV, inverse, (t,), None)
    return write_into(INV, out, inverse, (t,), None)


def linalg_inv_ex(A, *, check_errors=False, out=None):
    """Run `inv` without raising for singular matrices: a tuple (inverse, info).

    info is an int32 tensor of shape (...): 0, or the 1-based index of the first zero on the diagonal of U in the LU
    factorization; the inverse is then meaningless. Raises only if `check_errors`. Saves the result.

    >>> import cygrad
    >>> cygrad.linalg.inv_ex(cygrad.ones(2, 2)).info
    tensor(2, dtype=torch.int32)
    """
    t, inverse, info = inverses(A)
    if check_errors:
        check_invertible(info, "linalg.inv_ex")
    return several(INV, return_types.linalg_inv_ex, (inverse, info), (t,), None, out, 1)


@facts(autocast="float32")
def inverse(input, *, out=None):
    """Compute the inverse of square matrices; see `cygrad.linalg.inv`.

    >>> import cygrad
    >>> cygrad.inverse(cygrad.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return linalg_inv(require(input, "inverse"), out=out)


@facts(autocast="float32", out_castable="tensorinv result")
def linalg_tensorinv(input, ind=2, *, out=None):
    """Compute the inverse with respect to `tensordot`, of shape `input.shape[ind:] + input.shape[:ind]`.

    `input` is treated as a matrix of shape (prod(input.shape[:ind]), prod(input.shape[ind:])). Raises LinAlgError for a
    singular matrix, RuntimeError if it is not square.

    >>> import cygrad
    >>> a = cygrad.eye(4).reshape(4, 2, 2) * 2
    >>> cygrad.linalg.tensorinv(a, ind=1).shape
    torch.Size([2, 2, 4])
    """
    t = require(input, "linalg_tensorinv")
    ind = integer(ind, "linalg_tensorinv", "ind", 2)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = tuple(t.shape[:ind]), tuple(t.shape[ind:])
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {math.prod(last)} != {math.prod(first)}"
        )
    matrix = reshape(t, (math.prod(last), math.prod(first)))
    return given("linalg_tensorinv", reshape(inv_named(matrix, "inv"), last + first), out)


# -- linear systems --


def solved(a, b, left, is_vector):
    """Return (X, info)."""
    if is_vector:
        x, info = solve_array(a, b[..., None])
        x = x[..., 0]
        return laid_by_columns(x) if x.ndim > 1 and type(x) is np.ndarray else x, info  # PyTorch's memory layout
    if left:
        return solve_array(a, b)
    x, info = solve_array(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2))
    return np.swapaxes(x, -1, -2), info


def own_dims(n):
    """Number of matrix or vector dimensions of the result or its gradient."""
    return 1 if n.args[1] else 2


@in_parts(own_dims, lambda n: (2, 2, 2, own_dims(n)), inputs=lambda n: (2, own_dims(n)))
def solve_rule(n, g):
    left, is_vector = n.args
    a = n.saved(0)
    matrix = adjoint(a)
    array, info = solved(array_of(matrix), array_of(g), left, is_vector)
    of_b = record_n(SOLVE, array, (matrix, g), n.args)
    if not n.needs(0):
        return None, of_b
    x, columns = n.saved_result(), of_b
    if is_vector:
        x, columns = unsqueeze(x, -1), unsqueeze(of_b, -1)
    of_a = neg(matmul(columns, adjoint(x)) if left else matmul(adjoint(x), columns))
    return of_a, of_b if n.needs(1) else None


SOLVE = declare(
    "linalg_solve_ex",
    solve_rule,
    saves=(IN0 | OUT0, IN0),
    flags=LINALG,
    inputs="A B",
    attributes="left _",
    devices="together",
    out_dtype="same",
)


def system(A, B, left):
    """Check all arguments and return (inputs, (left, is_vector), X, info)."""
    a = require(A, "linalg_solve", "A")
    b = require(B, "linalg_solve", "B", 2)
    check_square(a, "linalg.solve")
    check_precision(a, "linalg.solve")
    check_same_dtype(a, b, "linalg.solve", "AB")
    is_vector = b.dim() == 1 or (b.dim() + 1 == a.dim() and tuple(b.shape) == tuple(a.shape[:-1]))
    if not is_vector:
        check_matrices(b, "linalg.solve", "B")
    with unseen():
        columns = unsqueeze(b, -1) if is_vector else b
    check_equation(a, columns, "linalg.solve", left)
    if is_vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    broadcast_shape(tuple(a.shape[:-2]), tuple(columns.shape[:-2]))
    args = (bool(left), is_vector)
    return (a, b), args, *solved(array_of(a), array_of(b), *args)


def check_solvable(info, shown):
    failure = first_failure(info)
    if failure:
        batch = batch_element(failure[0], info.ndim + 2)
        raise LinAlgError(f"{shown}: {batch}The solver failed because the input matrix is singular.")


@facts(devices="together", autocast="float32")
def linalg_solve(A, B, *, left=True, out=None):
    """Solve A X = B, or X A = B if not `left`. A is (..., n, n); B is (..., n, k), or vectors of shape (..., n).

    B holds vectors if it has one dimension, or the shape of A without its last dimension. Saves A and the result X.
    Gradients: that of B is A^-H g, that of A is -A^-H g X^H. Raises LinAlgError for a singular A.

    >>> import cygrad
    >>> A = cygrad.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cygrad.linalg.solve(A, cygrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    inputs, args, x, info = system(A, B, left)
    check_solvable(info, "torch.linalg.solve")
    if out is None:
        return record_n(SOLVE, x, inputs, args)
    return write_into(SOLVE, out, x, inputs, args)


def linalg_solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """Run `solve` without raising for singular matrices: a tuple (result, info).

    info is the same as that of `inv_ex`. Raises only if `check_errors`. Saves `A` and the result.

    >>> import cygrad
    >>> cygrad.linalg.solve_ex(cygrad.eye(2), cygrad.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    inputs, args, x, info = system(A, B, left)
    if check_errors:
        check_solvable(info, "torch.linalg.solve_ex")
    return several(SOLVE, return_types.linalg_solve_ex, (x, info), inputs, args, out, 1)


@rule("linalg_solve_ex")
def _solve(call):
    (left, is_vector), (a, b) = call.args, call.inputs
    columns = call.full(b).unsqueeze(-1) if is_vector else call.full(b)
    shapes = a.shape, columns.shape[1:]
    ndim = max(map(len, shapes))
    a, columns = (
        call.shaped(x, (*(1,) * (ndim - len(shape)), *shape))
        for x, shape in zip((call.full(a), columns), shapes, strict=True)
    )
    if len(call.outs) == 1:
        return call.shaped(linalg_solve(a, columns, left=left), call.out.shape)
    found, info = linalg_solve_ex(a, columns, left=left)
    return call.shaped(found, call.out.shape), call.shaped(info, call.outs[1].shape)


@facts(devices="together", autocast="float32", out_castable="tensorsolve result")
def linalg_tensorsolve(input, other, dims=None, *, out=None):
    """Solve `tensordot(input, X, X.ndim) == other` for X; `dims` of the input are first moved to its end.

    Raises LinAlgError for a singular matrix, RuntimeError for mismatched sizes.

    >>> import cygrad
    >>> a = cygrad.eye(4).reshape(2, 2, 4) * 2
    >>> cygrad.linalg.tensorsolve(a, cygrad.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    t, b = require(input, "linalg_tensorsolve"), require(other, "linalg_tensorsolve", "other", 2)
    if dims is not None:
        moved = [wrap_dim(d, t.dim()) for d in integers(dims, "linalg_tensorsolve", "dims", 3)]
        t = permute(t, [d for d in range(t.dim()) if d not in moved] + moved) if t.dim() else t
    shape = tuple(t.shape[b.dim() :])
    rows = math.prod(shape)
    if rows != b.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {rows} != {b.numel()}"
        )
    x = linalg_solve(reshape(t, (rows, rows)), reshape(b, (-1,)))
    return given("linalg_tensorsolve", reshape(x, shape), out)


composite = {"inverse": 0, "linalg_inv": LINALG, "linalg_tensorinv": LINALG, "linalg_solve": LINALG}
composite["linalg_tensorsolve"] = LINALG
functions = publish(globals())
