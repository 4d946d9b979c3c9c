"""Determinants of square matrices or stacks of matrices.

Values come from NumPy's stacked LAPACK functions. Gradients follow M. B. Giles, "An extended collection of matrix
derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.dual import is_forward, values_of
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import IN0, OUT0, declare, facts, publish
from cygrad._core.graph.record import apply_n
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._core.types import return_types
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg import svd as kernels
from cygrad._kernels.device.cupy_library import as_array, is_meta
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, neg
from cygrad._ops.base.batching.rules import leading
from cygrad._ops.base.pointwise import conjugate, log
from cygrad._ops.base.slicing import stack
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.elementwise.selection import where
from cygrad._ops.linalg.common import (
    LINALG,
    as_matrix,
    check_inexact,
    check_kernel,
    check_precision,
    check_square,
    decomposition,
    several,
)
from cygrad._ops.linalg.solve import linalg_inv_ex

# -- det --


@over_stacks(2)
def det_array(a):
    with np.errstate(all="ignore"):
        found = as_array(np.linalg.det(a))
    return _marked(found, found == 0, a)


def _marked(found, singular, a):
    """Return nan for matrices with nan elements that LAPACK considers singular, because it never pivots on nan."""
    if type(a) is not np.ndarray or not singular.any():
        return found
    return as_array(np.where(singular & np.isnan(a).any((-2, -1)), found.dtype.type(np.nan), found))


@in_parts(grads=0, saved=(2, 2, 2, 0))
def det_rule(n, g):
    """g * det(A) * A^-H; computed from cofactors if the stack contains a singular matrix."""
    a = n.saved(0)
    determinant = n.saved_result()
    if _are_regular(values_of(determinant), values_of(a), bool(get_modes() & NO_GRAD)):
        return mul(as_matrix(mul(g, conjugate(determinant))), adjoint(linalg_inv_ex(a)[0]))
    is_plain = get_modes() and not is_forward()
    return mul(as_matrix(g), conjugate(tensor_of(kernels.cofactors(array_of(a))) if is_plain else cofactors(a)))


@noted
@silent
def _are_regular(determinants, a, is_plain):
    """Whether the inverses can be used. The derivatives of an inverse need more than a determinant that is rounded."""
    if is_meta(determinants):
        return True
    if is_plain:
        return bool(np.all(determinants != 0))
    rows = np.abs(a).max(-1, initial=0)
    rounding = 4 * a.shape[-1] * np.finfo(rows.dtype).eps * np.prod(rows, -1, dtype=np.float64)
    return bool(np.all(np.abs(determinants) > rounding))


def cofactors(a):
    """Return the matrix of cofactors, entry by entry, for derivatives of any order."""
    n = a.shape[-1]
    rows = []
    for i in range(n):
        row = [mul(det(minor(a, i, j)), (-1) ** (i + j)) for j in range(n)]
        rows.append(stack(row, -1))
    return stack(rows, -2)


def minor(a, i, j):
    """Remove row i and column j."""
    n = a.shape[-1]
    keep_rows = [k for k in range(n) if k != i]
    keep_columns = [k for k in range(n) if k != j]
    return a[..., keep_rows, :][..., keep_columns]


DET = declare(
    "det", det_rule, saves=IN0 | OUT0, kernel=det_array, inputs="A", node="LinalgDetBackward0", batching=leading
)


def det(A, *, out=None):
    """Return the determinants of square matrices, of shape (...). Saves A and the result r. Gradient: g * r * A^-H.

    It is the product of the eigenvalues: +-1 times that of the diagonal of U in the LU factors, by which it is
    computed.

    For a singular matrix, the gradient is computed from the cofactors, which come from the singular value
    decomposition. With `create_graph`, cofactors are computed one by one, which is slow for large matrices.

    >>> import cygrad
    >>> cygrad.det(cygrad.tensor([[2.0, 1.0], [0.0, 4.0]]))
    tensor(8.)
    """
    t = require(A, "linalg_det", "A")
    check_square(t, "linalg.det")
    check_inexact(t, "linalg.det")
    check_kernel(t, "lu_cpu")
    return apply_n(DET, (t,), None, out)


@in_parts(grads=0)
def slogdet_rule(n, grads):
    g_sign, g_log = grads
    a = n.saved(0)
    inverse = adjoint(linalg_inv_ex(a)[0])
    grad = None if g_log is None else mul(as_matrix(g_log), inverse)
    if g_sign is not None and a.is_complex():
        sign = sign_of(a)
        turned = mul(conjugate(sign), g_sign)
        turned = div(add(turned, neg(conjugate(turned))), 2)  # i times the imaginary part
        phase = mul(as_matrix(turned), inverse)
        grad = phase if grad is None else add(grad, phase)
    return mul(a, 0.0) if grad is None else grad


def sign_of(a):
    return slogdet(a)[0]


SLOGDET = declare(
    "slogdet",
    slogdet_rule,
    saves=IN0,
    inputs="A",
    node="LinalgSlogdetBackward0",
    out_dtype="same",
    batching=decomposition,
)


def slogdet(A, *, out=None):
    """Return sign and log of the absolute value of the determinant: a tuple (sign, logabsdet), each of shape (...).

    det(A) = sign * exp(logabsdet).

    The result for a singular matrix is 0 and -inf. Saves A. Gradient of the logarithm: g * A^-H.

    >>> import cygrad
    >>> sign, logabsdet = cygrad.slogdet(cygrad.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.6931))
    """
    return signs_and_logarithms(A, return_types.slogdet, out)


def signs_and_logarithms(A, kind, out, title="linalg.slogdet"):
    t = require(A, "linalg_slogdet", "A")
    check_square(t, title)
    check_precision(t, title)
    return several(SLOGDET, kind, slogdet_arrays(array_of(t)), (t,), None, out)


@noted
@over_stacks(2)
def slogdet_arrays(a):
    with np.errstate(all="ignore"):
        sign, logarithm = np.linalg.slogdet(a)
    logarithm = _marked(logarithm, logarithm == -np.inf, a)
    unknown = np.nan * (1 + 1j) if sign.dtype.kind == "c" else 0
    return as_array(np.where(np.isnan(logarithm), unknown, sign).astype(sign.dtype)), as_array(logarithm)


@facts(out_dtype="same")
def linalg_slogdet(A, *, out=None):
    """Return sign and logarithm of the absolute value of the determinant; see `cygrad.slogdet`.

    >>> import cygrad
    >>> cygrad.linalg.slogdet(cygrad.tensor([[2.0, 0.0], [0.0, -3.0]]))
    torch.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(1.7918))
    """
    return signs_and_logarithms(A, return_types.linalg_slogdet, out)


def logdet(input):
    """Return the logarithm of the determinant of square matrices: -inf if it is 0, nan if it is negative.

    The result is log(det(A)).

    >>> import cygrad
    >>> cygrad.logdet(cygrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.0794)
    """
    t = require(input, "logdet")
    sign, logarithm = signs_and_logarithms(t, return_types.slogdet, None, "logdet")
    if t.is_complex():
        return add(logarithm, log(sign))
    return where(sign == -1.0, float("nan"), logarithm)


composite = {"logdet": 0, "linalg_slogdet": LINALG}
functions = publish(globals())
