"""Inverses, linear systems, determinants and Cholesky factors of square matrices, or of stacks of them.

A is of shape (..., n, n), of float32, float64 or a complex type. Singular matrices raise `LinAlgError`, a RuntimeError.
The values come from NumPy's LAPACK functions over stacks; gradients follow M. B. Giles, "An extended collection of
matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

import numpy as np

from cygrad._core import return_types
from cygrad._core.access import array_of
from cygrad._core.opdef import FUNCTION_ONLY, IN0, METHOD_ONLY, OUT0, declare, publish
from cygrad._core.record import apply_n, record_outputs, write_into
from cygrad._ops.arguments import require
from cygrad._ops.arithmetic import add, div, mul, neg
from cygrad._ops.diagonals import tril
from cygrad._ops.parts import stack
from cygrad._ops.pointwise import conjugate, log
from cygrad._ops.products import matmul
from cygrad._ops.selection import where
from cygrad._ops.views import transpose, unsqueeze

LINALG = FUNCTION_ONLY | METHOD_ONLY  # neither: found in cygrad.linalg


class LinAlgError(RuntimeError):
    """A matrix without the property that a function needs: invertible, positive-definite."""

    __module__ = "cygrad.linalg"


# -- checks ---------------------------------------------------------------------------------------


def matrices(input, function, name="A", square=True):
    """The argument as a tensor of floating-point matrices, or PyTorch's errors."""
    t = require(input, function, name)
    function = function.replace("linalg_", "linalg.")
    if t.dim() < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")
    if square and t.shape[-1] != t.shape[-2]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, "
            f"but they are {t.shape[-2]} by {t.shape[-1]} matrices"
        )
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {t.dtype.type_name}")
    if str(t.dtype) in ("torch.float16", "torch.bfloat16"):
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {t.dtype.type_name}")
    return t


def adjoint(t):
    return conjugate(transpose(t, -2, -1))


# -- inverse --------------------------------------------------------------------------------------


def inv_array(a):
    try:
        with np.errstate(all="ignore"):
            return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise singular(a) from None


def singular(a):
    """The error for a stack in which a matrix is singular: it names the first, and its first zero pivot."""
    stack = a.reshape(-1, *a.shape[-2:])
    number = next(i for i, matrix in enumerate(stack) if not is_invertible(matrix))
    batch = f"(Batch element {number}): " if a.ndim > 2 else ""
    return LinAlgError(
        f"linalg.inv: {batch}The diagonal element {zero_pivot(stack[number])} is zero, "
        "the inversion could not be completed because the input matrix is singular."
    )


def is_invertible(matrix):
    try:
        np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def zero_pivot(matrix):
    """The number, from 1, of the first zero on the diagonal of U in LU with partial pivoting."""
    u = matrix.copy()
    for k in range(len(u)):
        pivot = k + int(np.argmax(np.abs(u[k:, k])))
        if u[pivot, k] == 0:
            return k + 1
        u[[k, pivot]] = u[[pivot, k]]
        u[k + 1 :] -= np.outer(u[k + 1 :, k] / u[k, k], u[k])
    return len(u)


def inv_rule(n, g):
    inverse = adjoint(n.saved_result())
    return neg(matmul(inverse, matmul(g, inverse)))


INV = declare("inv", inv_rule, saves=OUT0, flags=LINALG, kernel=inv_array, inputs="A", node="LinalgInvExBackward0")


def inv(A, *, out=None):
    """The inverse of square matrices A of shape (..., n, n). Saves the result r. Gradient: -r^H g r^H.

    Raises LinAlgError for a singular matrix.

    >>> import cygrad
    >>> cygrad.linalg.inv(cygrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return apply_n(INV, (matrices(A, "linalg_inv"),), None, out)


def inverse(input, *, out=None):
    """The inverse of square matrices; see `cygrad.linalg.inv`.

    >>> import cygrad
    >>> cygrad.inverse(cygrad.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(require(input, "inverse"), out=out)


# -- linear systems -------------------------------------------------------------------------------


def solve_array(a, b, left, is_vector):
    try:
        with np.errstate(all="ignore"):
            if is_vector:
                return np.linalg.solve(a, b[..., None])[..., 0]
            if left:
                return np.linalg.solve(a, b)
            return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    except np.linalg.LinAlgError:
        raise unsolvable(a) from None


def unsolvable(a):
    marks = [not is_invertible(matrix) for matrix in a.reshape(-1, *a.shape[-2:])]
    batch = f"(Batch element {marks.index(True)}): " if a.ndim > 2 else ""
    return LinAlgError(f"torch.linalg.solve: {batch}The solver failed because the input matrix is singular.")


def solve_rule(n, g):
    left, is_vector = n.args
    a = n.saved(0)
    of_b = apply_n(SOLVE, (adjoint(a), g), n.args)
    if not n.needs(0):
        return None, of_b
    x, columns = n.saved_result(), of_b
    if is_vector:
        x, columns = unsqueeze(x, -1), unsqueeze(of_b, -1)
    of_a = neg(matmul(columns, adjoint(x)) if left else matmul(adjoint(x), columns))
    return of_a, of_b if n.needs(1) else None


SOLVE = declare(
    "solve",
    solve_rule,
    saves=(IN0 | OUT0, IN0),
    flags=LINALG,
    kernel=solve_array,
    inputs="A B",
    attributes="left is_vector",
    node="LinalgSolveExBackward0",
)


def solve_matrices(a, b, left):
    return apply_n(SOLVE, (a, b), (left, False))


def solve(A, B, *, left=True, out=None):
    """X with A X = B, or X A = B if not `left`. A is (..., n, n); B is (..., n, k), or of vectors: (..., n).

    B holds vectors if it has one dimension, or the shape of A without its last one. Saves A and the result X.
    Gradients: that of B is A^-H g, that of A is -A^-H g X^H. Raises LinAlgError for a singular A.

    >>> import cygrad
    >>> A = cygrad.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> cygrad.linalg.solve(A, cygrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    a = matrices(A, "linalg_solve")
    b = require(B, "linalg_solve", "B", 2)
    if a.dtype is not b.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, "
            f"but found A of type {a.dtype.type_name} and B of type {b.dtype.type_name} instead"
        )
    is_vector = b.dim() == 1 or (b.dim() + 1 == a.dim() and tuple(b.shape) == tuple(a.shape[:-1]))
    if b.dim() < 2 - is_vector:
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    if is_vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    rows, columns = (b.shape[-1], 1) if is_vector else b.shape[-2:]
    if (rows if left else columns) != a.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{a.shape[-1]} and {rows}x{columns})"
        )
    return apply_n(SOLVE, (a, b), (bool(left), is_vector), out)


# -- determinants ---------------------------------------------------------------------------------


def det_rule(n, g):
    """g * det(A) * A^-H; with a singular matrix in the stack, by cofactors from the singular values."""
    a = n.saved(0)
    determinant = n.saved_result()
    if np.all(array_of(determinant) != 0):
        return mul(as_matrix(mul(g, conjugate(determinant))), adjoint(inv(a)))
    return mul(as_matrix(g), conjugate(cofactors(a)))


def as_matrix(t):
    return unsqueeze(unsqueeze(t, -1), -1)


def cofactors(a):
    """The matrix of cofactors, entry by entry: right for singular matrices, and to any order."""
    n = a.shape[-1]
    rows = []
    for i in range(n):
        row = [mul(det(minor(a, i, j)), (-1) ** (i + j)) for j in range(n)]
        rows.append(stack(row, -1))
    return stack(rows, -2)


def minor(a, i, j):
    """Without row i and column j."""
    n = a.shape[-1]
    keep_rows = [k for k in range(n) if k != i]
    keep_columns = [k for k in range(n) if k != j]
    return a[..., keep_rows, :][..., keep_columns]


DET = declare(
    "det",
    det_rule,
    saves=IN0 | OUT0,
    kernel=np.linalg.det,
    inputs="A",
    node="LinalgDetBackward0",
)


def det(A, *, out=None):
    """The determinant of square matrices, of shape (...). Saves A and the result r. Gradient: g * r * A^-H.

    For a singular matrix the gradient is computed from the cofactors.

    >>> import cygrad
    >>> cygrad.det(cygrad.tensor([[2.0, 1.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return apply_n(DET, (matrices(A, "linalg_det"),), None, out)


def slogdet_rule(n, grads):
    g_sign, g_log = grads
    a = n.saved(0)
    inverse = adjoint(inv(a))
    grad = None if g_log is None else mul(as_matrix(g_log), inverse)
    if g_sign is not None and a.is_complex():
        sign = sign_of(a)
        turned = mul(conjugate(sign), g_sign)
        turned = div(add(turned, neg(conjugate(turned))), 2)  # i times its imaginary part
        phase = mul(as_matrix(turned), inverse)
        grad = phase if grad is None else add(grad, phase)
    return mul(a, 0.0) if grad is None else grad


def sign_of(a):
    return slogdet(a)[0]


SLOGDET = declare("slogdet", slogdet_rule, saves=IN0, inputs="A", node="LinalgSlogdetBackward0")


def slogdet(A, *, out=None):
    """Sign, and logarithm of the magnitude, of the determinant: a tuple (sign, logabsdet), both of shape (...).

    Of a singular matrix 0 and -inf. Saves A. Gradient of the logarithm: g * A^-H.

    >>> import cygrad
    >>> sign, logabsdet = cygrad.slogdet(cygrad.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.6931))
    """
    t = matrices(A, "linalg_slogdet")
    with np.errstate(all="ignore"):
        arrays = tuple(map(np.asarray, np.linalg.slogdet(array_of(t))))
    if out is not None:
        return return_types.slogdet(tuple(write_into(SLOGDET, o, a, (t,), None) for o, a in zip(out, arrays)))
    return return_types.slogdet(record_outputs(SLOGDET, arrays, (t,), None, 2))


def logdet(input):
    """The logarithm of the determinant of square matrices: -inf if it is 0, nan if it is negative.

    >>> import cygrad
    >>> cygrad.logdet(cygrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.0794)
    """
    t = matrices(input, "linalg_slogdet")
    sign, logarithm = slogdet(t)
    if t.is_complex():
        return add(logarithm, log(sign))
    return where(sign == -1.0, float("nan"), logarithm)


# -- Cholesky -------------------------------------------------------------------------------------


def cholesky_array(a, upper):
    try:
        with np.errstate(all="ignore"):
            factor = np.linalg.cholesky(np.swapaxes(a, -1, -2).conj() if upper else a)
    except np.linalg.LinAlgError:
        raise not_positive(a) from None
    return np.swapaxes(factor, -1, -2).conj() if upper else factor


def not_positive(a):
    """The error for a stack in which a matrix is not positive-definite: it names the first, and its first bad minor."""
    for number, matrix in enumerate(a.reshape(-1, *a.shape[-2:])):
        for order in range(1, len(matrix) + 1):
            try:
                np.linalg.cholesky(matrix[:order, :order])
            except np.linalg.LinAlgError:
                batch = f"(Batch element {number}): " if a.ndim > 2 else ""
                return LinAlgError(
                    f"linalg.cholesky: {batch}The factorization could not be completed because the input is not "
                    f"positive-definite (the leading minor of order {order} is not positive-definite)."
                )
    raise AssertionError("a factorisation failed, but not for any matrix alone")


def cholesky_rule(n, g):
    (upper,) = n.args
    factor = n.saved_result()
    lower, g = (adjoint(factor), adjoint(g)) if upper else (factor, g)
    inner = tril(matmul(adjoint(lower), g))
    inner = add(inner, adjoint(tril(inner, -1)))
    return mul(solve_matrices(adjoint(lower), solve_matrices(lower, inner, False), True), 0.5)


CHOLESKY = declare(
    "cholesky",
    cholesky_rule,
    saves=OUT0,
    flags=LINALG,
    kernel=cholesky_array,
    inputs="A",
    attributes="upper",
    node="LinalgCholeskyExBackward0",
)


def cholesky(A, *, upper=False, out=None):
    """The lower triangular L with A = L L^H, for Hermitian positive-definite A; or the `upper` U with A = U^H U.

    Saves the result. Gradient: I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10.
    Raises LinAlgError for a matrix that is not positive-definite. Only one triangle of A is read.

    >>> import cygrad
    >>> cygrad.linalg.cholesky(cygrad.tensor([[4.0, 2.0], [2.0, 10.0]]))
    tensor([[2., 0.],
            [1., 3.]])
    """
    return apply_n(CHOLESKY, (matrices(A, "linalg_cholesky"),), (bool(upper),), out)


composite = {"inverse": 0, "logdet": 0}
functions = publish(globals())
