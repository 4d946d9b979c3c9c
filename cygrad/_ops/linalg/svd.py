"""Singular value decomposition A = U diag(S) V^H, with batching; pseudoinverses and ranks.

Gradients: of the decomposition, M. B. Giles, "An extended collection of matrix derivative results for forward and
reverse mode algorithmic differentiation" (2008), section 3.2, and for complex matrices Z.-Q. Wan, S.-X. Zhang,
"Automatic differentiation for complex valued SVD" (2019); of the pseudoinverse, G. H. Golub, V. Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_recorded, values_of
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import IN0, OUT0, OUT1, OUT2, declare, facts, publish
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.linalg import svd as kernels
from cygrad._kernels.device.cupy_library import as_array
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import check_constant, typed
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.common.out_argument import given, given_several
from cygrad._ops.linalg.common import (
    LINALG,
    LinAlgError,
    batch_element,
    check_inexact,
    check_kernel,
    check_matrices,
    check_outs,
    constant,
    decomposition,
    delivered,
    several,
)
from cygrad._ops.linalg.eigen import differences
from cygrad._ops.shape.diagonals import diag_embed, diagonal

# -- singular values --


@in_parts(grads=(2, 1, 2), saved=(2, 1, 2, 2))
def svd_rule(n, grads):
    of_u, of_s, of_vh = grads
    u, s, vh = (n.saved_output(i) for i in range(3))
    k, rows, columns = s.shape[-1], u.shape[-2], vh.shape[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    if of_u is None and of_vh is None:
        if rows > columns:  # scale the smaller factor
            return matmul(u, mul(unsqueeze(of_s, -1), vh))
        return matmul(mul(u, unsqueeze(of_s, -2)), vh)
    of_u, of_vh = (None if of_u is None else of_u[..., :, :k]), (None if of_vh is None else of_vh[..., :k, :])
    left = None if of_u is None else skew(matmul(adjoint(u), of_u))
    right = None if of_vh is None else skew(matmul(vh, adjoint(of_vh)))
    if u.is_complex():
        check_phase(left, right)
    core = core_gradient(left, right, of_s, s, u.is_complex())
    core = matmul(u, core)
    if rows > k and of_u is not None:
        core = add(core, div(sub(of_u, matmul(u, matmul(adjoint(u), of_u))), unsqueeze(s, -2)))
    grad = matmul(core, vh)
    if columns > k and of_vh is not None:
        outside = div(sub(of_vh, matmul(matmul(of_vh, adjoint(vh)), vh)), unsqueeze(s, -1))
        grad = add(grad, matmul(u, outside))
    return grad


def core_gradient(left, right, of_s, s, is_complex):
    """Return (left S + S right) / E + diag(gS), E_ij = S_j^2 - S_i^2."""
    total = None if left is None else mul(left, unsqueeze(s, -2))
    if right is not None:
        moved = mul(unsqueeze(s, -1), right)
        total = moved if total is None else add(total, moved)
    core = div(total, differences(mul(s, s)))
    core = sub(core, diag_embed(diagonal(core, 0, -2, -1)))
    if is_complex and left is not None:
        core = add(core, diag_embed(div(diagonal(left, 0, -2, -1), mul(s, 2.0))))
    return core if of_s is None else add(core, diag_embed(of_s))


def skew(t):
    return sub(t, adjoint(t))


def check_phase(left, right):
    """Raise if the loss depends on the phases of the singular vectors, which are arbitrary."""
    turns = sum(values_of(diagonal(part, 0, -2, -1)).imag for part in (left, right) if part is not None)
    if not np.allclose(turns, 0, rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. "
            "The specified loss function depends on this phase term, making it ill-defined."
        )


SVD = declare(
    "linalg_svd",
    svd_rule,
    saves=OUT0 | OUT1 | OUT2,
    flags=LINALG,
    inputs="A",
    outputs="U S Vh",
    attributes="full_matrices",
    derived={"S_sym_argsize_minus_1": lambda n: n._input_metadata[1].shape[-1]},
    autocast="float32",
    out_dtype="same",
    batching=decomposition,
)


def matrices(A, function, good=np.isfinite, shown="linalg.svd"):
    t = require(A, function, "A")
    check_matrices(t, shown)
    check_inexact(t, shown)
    check_kernel(t, "linalg_svd_cpu")
    check_finite(t, good)
    return t


def check_finite(t, good=np.isfinite):
    number = kernels.first_not_finite(array_of(t), good)
    if number is not None:
        raise LinAlgError(
            f"linalg.svd: {batch_element(number, t.dim())}The algorithm failed to converge because the input matrix "
            "contained non-finite values."
        )


def decomposed(t, full_matrices):
    try:
        return kernels.svd(array_of(t), full_matrices)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated singular values (error code: 1)."
        ) from None


@typed(full_matrices=bool)
def linalg_svd(A, full_matrices=True, *, driver=None, out=None):
    """Compute the singular value decomposition of matrices (..., m, n): a tuple (U, S, Vh) with A = U diag(S) Vh.

    S, of shape (..., k), k = min(m, n), is real and descending. U and Vh are square and unitary, or without
    `full_matrices` of shapes (..., m, k) and (..., k, n). Saves all three. Gradient: that of S alone is U diag(gS) Vh;
    those of U and Vh involve division by differences of squared singular values, and by the singular values if m and n
    differ, so they are NaN or inf if two values are equal or one is 0. The part of U and Vh beyond k is arbitrary, and
    its gradient is ignored. Raises LinAlgError for inf and NaN, and RuntimeError in backward if the loss depends on the
    phases of complex singular vectors.

    >>> import cygrad
    >>> cygrad.linalg.svd(cygrad.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    t = matrices(A, "linalg_svd")
    check_driver(driver)
    full = bool(full_matrices)
    return several(SVD, return_types.linalg_svd, decomposed(t, full), (t,), (full,), out)


def check_driver(driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@facts(autocast="float32", out_dtype="same")
def linalg_svdvals(A, *, driver=None, out=None):
    """Compute the singular values of matrices (..., m, n), descending, of shape (..., min(m, n)); see `linalg.svd`.

    They are the S of A = U diag(S) Vh, and the roots of the eigenvalues of A^H A; NaN for a matrix with infinite
    elements, unless A requires grad. Raises LinAlgError for NaN.

    Gradient: U diag(g) Vh, whose factors are computed if A requires grad.

    >>> import cygrad
    >>> cygrad.linalg.svdvals(cygrad.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    t = matrices(A, "linalg_svdvals", kernels.is_number)
    check_driver(driver)
    if is_recorded(t) and out is None:
        return linalg_svd(t, False)[1]
    is_finite = kernels.first_not_finite(array_of(t)) is None
    array = (kernels.values if is_finite else kernels.values_beside_infinite)(array_of(t))
    if out is None:
        return constant("linalg_svdvals", array, t)
    return delivered("linalg_svdvals", array, out, t)


@facts(
    autocast="float32",
    out_dtype=(
        "torch.svd: Expected out tensor to have dtype {result} but got {out} instead",
        "same",
        "torch.svd: Expected out tensor to have dtype {result} but got {out} instead",
    ),
)
def svd(input, some=True, compute_uv=True, *, out=None):
    """Compute the singular value decomposition: a tuple (U, S, V); an older form of `linalg.svd`.

    It returns V, not V^H. Without `compute_uv`, U and V are square and filled with zeros.

    >>> import cygrad
    >>> cygrad.svd(cygrad.ones(3, 2)).V.shape
    torch.Size([2, 2])
    """
    t = require(input, "svd")
    messages.check_flag("svd", "some", 2, some)
    messages.check_flag("svd", "compute_uv", 3, compute_uv)
    if t.dim() < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {t.dim()} dimensions instead")
    if compute_uv:
        u, s, vh = linalg_svd(t, not some)
        results = u, s, adjoint(vh)
    else:
        batch = tuple(t.shape[:-2])
        rows, columns = t.shape[-2:]
        results = t.new_zeros((*batch, rows, rows)), linalg_svdvals(t), t.new_zeros((*batch, columns, columns))
    if out is not None:
        check_outs("svd", out, 3)
        results = given_several("svd", map(array_of, results), out, t)
    return return_types.svd(results)


# -- pseudoinverse and rank --


@in_parts()
def pinv_rule(n, g):
    return pinv_gradient(g, n.saved(0), n.saved_result())


def pinv_gradient(g, a, p):
    """Return -P^H g P^H + (1 - A P) g^H P P^H + P^H P g^H (1 - P A)."""
    if are_moderate(values_of(p)):
        return _pinv_gradient(g, a, p)
    largest = p.detach().abs().amax((-2, -1), keepdim=True)
    scale = largest.new_ones(()).ldexp(largest.frexp()[1])
    scale = scale.where((largest > 0) & (scale < np.inf), 1.0)
    return mul(_pinv_gradient(mul(g, scale), mul(a, scale), div(p, scale)), scale)


def are_moderate(values):
    """Whether the products of a few matrices like these stay in the range, as far as that is known without waiting."""
    if not isinstance(values, np.ndarray) or not values.size:
        return True
    largest, bound = np.abs(values).max(), float(np.finfo(values.dtype).max) ** 0.25
    return not np.isfinite(largest) or largest == 0 or 1 / bound < largest < bound


def _pinv_gradient(g, a, p):
    g, p_h = adjoint(g), adjoint(p)
    if a.shape[-2] <= a.shape[-1]:
        k = matmul(g, p)
        moved = matmul(k, p_h)
        total = sub(moved, adjoint(matmul(p, k)))
        total = sub(total, matmul(matmul(a, p), moved))
        return add(total, matmul(matmul(p_h, p), sub(g, matmul(k, a))))
    k = matmul(p, g)
    moved = matmul(p_h, k)
    total = sub(moved, adjoint(matmul(k, p)))
    total = sub(total, matmul(matmul(moved, p), a))
    return add(total, matmul(sub(g, matmul(a, k)), matmul(p, p_h)))


PINV = declare(
    "linalg_pinv",
    pinv_rule,
    saves=IN0 | OUT0,
    flags=LINALG,
    kernel=kernels.pinv,
    inputs="self",
    attributes="_ _ _",
    devices=(1, "rcond", "atol", "rtol"),
    out_castable="linalg.pinv result",
    overloads="",
)


def bound(value, function, name):
    """Check a tolerance, a tensor, a number, or None, and return it."""
    if value is None or isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    t = require(value, function, name)
    if t.is_complex():
        raise RuntimeError(
            f"torch.{function.replace('_', '.')}: {name} tensor of complex type is not supported. "
            f"Got {t.dtype.type_name}"
        )
    return t


def values_of_bounds(bounds):
    """Return tolerances as arrays, numbers, or None."""
    return [array_of(value) if isinstance(value, Tensor) else value for value in bounds]


def linalg_pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Compute the Moore-Penrose pseudoinverse, of shape (..., n, m), of matrices (..., m, n).

    With A = U diag(S) V^H, it is V diag(1 / S) U^H, where the reciprocals of singular values that count as 0 are 0.

    Singular values up to max(atol, rtol * the largest) count as 0. atol defaults to 0; rtol (`rcond` is an older name)
    defaults to eps * max(m, n) if atol is 0, else to 0. For `hermitian` matrices, eigenvalues of the lower triangle are
    computed instead. Saves A and the result P. Gradient, for a rank that is locally constant:
    -P^H g P^H + (1 - A P) g^H P P^H + P^H P g^H (1 - P A). Raises LinAlgError for inf and NaN.

    >>> import cygrad
    >>> cygrad.linalg.pinv(cygrad.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    t = require(input, "linalg_pinv")
    if t.dim() < 2 or array_of(t).dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({t.dtype.type_name}{{{list(t.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    rtol = bound(rcond, "linalg_pinv", "rcond") if rtol is None else bound(rtol, "linalg_pinv", "rtol")
    bounds, is_hermitian = (bound(atol, "linalg_pinv", "atol"), rtol), bool(hermitian)
    for name, value in zip(("atol", "rtol"), bounds, strict=True):
        if isinstance(value, Tensor):
            check_constant(value, "linalg_pinv", name)
    if not hermitian:
        check_finite(t)
    array = kernels.pinv(array_of(t), *values_of_bounds(bounds), is_hermitian)
    result = record_n(PINV, array, (t,), (*bounds, is_hermitian))
    return given("linalg_pinv", result, out, t)


@facts(autocast="float32")
def pinverse(input, rcond=1e-15):
    """Compute the pseudoinverse; see `linalg.pinv`.

    >>> import cygrad
    >>> cygrad.pinverse(cygrad.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return linalg_pinv(require(input, "pinverse"), rcond)


@facts(
    devices=(1, "tol", "atol", "rtol"),
    autocast="float32",
    out_castable="torch.linalg.matrix_rank result",
    overloads="",
    engine="the count of singular values above a bound: PyTorch shows how it computes the bound, too",
)
def linalg_matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """Compute the rank of matrices, int64 of shape (...): the number of singular values above a tolerance.

    The tolerance is max(atol, rtol * the largest), with defaults as in `linalg.pinv`; `tol` is an older name of atol.
    Not differentiable.

    >>> import cygrad
    >>> cygrad.linalg.matrix_rank(cygrad.ones(2, 2))
    tensor(1)
    """
    t = require(input, "linalg_matrix_rank")
    if t.dim() < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if array_of(t).dtype.char not in "fdFD":
        raise RuntimeError("This function doesn't handle types other than float and double")
    if tol is not None:
        atol, rtol = tol, 0.0
    bounds = bound(atol, "linalg_matrix_rank", "atol"), bound(rtol, "linalg_matrix_rank", "rtol")
    if not hermitian:
        check_finite(t)
    args = *bounds, bool(hermitian)
    ranks = in_dtype(as_array(kernels.rank(array_of(t), *values_of_bounds(bounds), args[2])), np.int64)
    return given("linalg_matrix_rank", constant("linalg_matrix_rank", ranks, t, args=args), out, t)


@rule("linalg_pinv linalg_matrix_rank")
def _of_bounds(call):
    t, (atol, rtol, hermitian) = call.inputs[0], call.args
    ndim = max([t.ndim - 2, *[bound.ndim for bound in (atol, rtol) if isinstance(bound, Tensor)]])
    atol, rtol = (call.aligned(bound, ndim) if isinstance(bound, Tensor) else bound for bound in (atol, rtol))
    x = call.aligned(t, ndim + 2)
    function = linalg_pinv if call.key == "linalg_pinv" else linalg_matrix_rank
    found = function(x, atol=atol, rtol=rtol, hermitian=hermitian)
    return call.shaped(found, call.out.shape)


composite = {
    "linalg_svdvals": LINALG,
    "svd": 0,
    "pinverse": 0,
    "linalg_matrix_rank": LINALG,
}
functions = publish(globals())
