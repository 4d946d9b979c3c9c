"""Eigenvalues and eigenvectors of square matrices or stacks of matrices.

Gradients follow M. B. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), section 3.1. Complex eigenvectors are determined only up to a factor of magnitude
1; the part of the gradient that depends on this factor is removed. For equal eigenvalues, eigenvectors have no
derivative: the gradient is nan or inf there, also for the elements of the matrix if the eigenvectors are used.
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts
from cygrad._core.graph.dual import is_recorded, values_of
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import OUT0, OUT1, declare, facts, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types import return_types
from cygrad._kernels.cpu.linalg.eigen import eig, eigh, eigvals, eigvalsh
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add, div, mul, sub
from cygrad._ops.base.pointwise import conjugate
from cygrad._ops.base.products import matmul
from cygrad._ops.base.views import unsqueeze
from cygrad._ops.common.gradients import adjoint
from cygrad._ops.elementwise.complex import real
from cygrad._ops.linalg.common import (
    LINALG,
    check_kernel,
    check_outs,
    check_square,
    constant,
    decomposition,
    delivered,
    several,
)
from cygrad._ops.linalg.solve import linalg_solve_ex
from cygrad._ops.shape.diagonals import diag_embed, diagonal

# -- gradients --


def differences(values):
    """Return E with E_ij = values_j - values_i, and ones on the diagonal."""
    apart = sub(unsqueeze(values, -2), unsqueeze(values, -1))
    return add(apart, ones_on_diagonal(values))


def ones_on_diagonal(values):
    return diag_embed(values.new_ones(values.shape))


def without_diagonal(t):
    return sub(t, diag_embed(diagonal(t, 0, -2, -1)))


def check_phase(diagonal, function):
    """Raise for a loss that depends on the arbitrary phases of the eigenvectors."""
    turned = values_of(diagonal).imag
    if not np.allclose(turned, 0, rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            f"{function}_backward: The eigenvectors in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


@in_parts(grads=(1, 2), saved=(2, 2, 2, 1))
def eigh_rule(n, grads):
    """V (diag(gL) + (V^H gV) / E) V^H."""
    of_values, of_vectors = grads
    values, vectors = n.saved_output(0), n.saved_output(1)
    if of_vectors is None:
        return matmul(mul(vectors, unsqueeze(of_values, -2)), adjoint(vectors))
    inner = matmul(adjoint(vectors), of_vectors)
    if vectors.is_complex():
        check_phase(diagonal(inner, 0, -2, -1), "linalg_eigh")
    # Only the Hermitian part of inner / E affects the eigenvectors; as E is antisymmetric, it is (inner - inner^H) / (2
    # E).
    inner = div(sub(inner, adjoint(inner)), mul(differences(values), 2.0))
    inner = without_diagonal(inner)
    if of_values is not None:
        inner = add(inner, diag_embed(of_values))
    return matmul(vectors, matmul(inner, adjoint(vectors)))


@in_parts(grads=(1, 2), saved=(2, 2, 2, 1), smaller=4)
def eig_rule(n, grads):
    """V^-H (diag(gL) + (V^H gV - V^H V diag(V^H gV)) / E^*) V^H."""
    of_values, of_vectors = grads
    values, vectors = n.saved_output(0), n.saved_output(1)
    if of_vectors is None:
        inner = diag_embed(of_values)
    else:
        inner = matmul(adjoint(vectors), of_vectors)
        along = diagonal(inner, 0, -2, -1)
        check_phase(along, "linalg_eig")
        kept = mul(matmul(adjoint(vectors), vectors), unsqueeze(real(along), -2))
        inner = without_diagonal(div(sub(inner, kept), conjugate(differences(values))))
        if of_values is not None:
            inner = add(inner, diag_embed(of_values))
    return linalg_solve_ex(adjoint(vectors), matmul(inner, adjoint(vectors)))[0]


# -- Hermitian --

EIGH = declare(
    "linalg_eigh",
    eigh_rule,
    saves=OUT0 | OUT1,
    flags=LINALG,
    inputs="A",
    outputs="eigenvalues eigenvectors",
    attributes="UPLO",
    autocast="float32",
    out_dtype="same",
    batching=decomposition,
)


def hermitian(A, UPLO, function):
    """Check the arguments and return (tensor, 'L' or 'U' for the triangle that is read)."""
    t = require(A, function)
    check_square(t, "linalg.eigh")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel(t, "linalg_eigh_cpu")
    return t, UPLO.upper()


def linalg_eigh(A, UPLO="L", *, out=None):
    """Return the eigenvalues and eigenvectors of Hermitian matrices (..., n, n): a tuple (eigenvalues, eigenvectors).

    The eigenvalues L, of shape (..., n), are real and ascending; the columns of V are orthonormal eigenvectors: A = V
    diag(L) V^H. Only the lower triangle of A is read, or the upper one with UPLO="U"; the gradient treats A as if both
    were. Saves both results. Gradient: V (diag(gL) + X) V^H with X_ij = (V^H gV)_ij / (L_j - L_i), 0 on the diagonal;
    hence nan or inf where eigenvalues are equal and the eigenvectors are used. Raises RuntimeError in backward if the
    loss depends on the phases of complex eigenvectors.

    >>> import cygrad
    >>> cygrad.linalg.eigh(cygrad.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    t, uplo = hermitian(A, UPLO, "linalg_eigh")
    return several(EIGH, return_types.linalg_eigh, eigh(array_of(t), uplo), (t,), (uplo,), out)


@facts(autocast="float32", out_dtype="same")
def linalg_eigvalsh(A, UPLO="L", *, out=None):
    """Return the eigenvalues of Hermitian matrices in ascending order; the gradient is that of `linalg.eigh`.

    A = V diag(L) V^H, where L are the eigenvalues.

    >>> import cygrad
    >>> cygrad.linalg.eigvalsh(cygrad.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    t, uplo = hermitian(A, UPLO, "linalg_eigvalsh")
    if is_recorded(t) and out is None:
        return linalg_eigh(t, uplo)[0]
    return only_values("linalg_eigvalsh", eigvalsh(array_of(t), uplo), t, out, (uplo,))


# -- general --

EIG = declare(
    "linalg_eig",
    eig_rule,
    saves=OUT0 | OUT1,
    flags=LINALG,
    inputs="self",
    outputs="eigenvalues eigenvectors",
    autocast="float32",
    out_castable=("torch.linalg.eig eigenvalues", "torch.linalg.eig eigenvectors"),
    batching=decomposition,
)


def general(A, function):
    t = require(A, function)
    check_square(t, function.replace("_", "."))
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"Unknown Complex ScalarType for {t.dtype.type_name}")
    check_kernel(t, "linalg_eig_out_cpu")
    if not is_meta(array_of(t)) and not np.isfinite(array_of(t)).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return t


def linalg_eig(input, *, out=None):
    """Return the eigenvalues and eigenvectors of square matrices (..., n, n): a tuple (eigenvalues, eigenvectors).

    Both are complex. The eigenvalues L, of shape (..., n), are in no particular order; the columns of V are
    eigenvectors of norm 1: A V = V diag(L). Saves both results. Gradient: V^-H (diag(gL) + X) V^H with X_ij = (V^H gV -
    V^H V diag(V^H gV))_ij / conj(L_j - L_i), 0 on the diagonal; hence nan or inf where eigenvalues are equal and the
    eigenvectors are used. Raises RuntimeError for inf and nan, and in backward if the loss depends on the phases of the
    eigenvectors.

    >>> import cygrad
    >>> cygrad.linalg.eig(cygrad.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    t = general(input, "linalg_eig")
    if out is not None:
        check_outs("linalg_eig", out, 2)
        check_castable(t, out, "linalg.eig", ("eigenvalues", "eigenvectors"))
    return several(EIG, return_types.linalg_eig, eig(array_of(t)), (t,), None, out)


@facts(autocast="float32", out_castable="torch.linalg.eigvals eigenvalues")
def linalg_eigvals(input, *, out=None):
    """Return the eigenvalues of square matrices, which are complex; the gradient is that of `linalg.eig`.

    A V = V diag(L), where L are the eigenvalues.

    >>> import cygrad
    >>> cygrad.linalg.eigvals(cygrad.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    t = general(input, "linalg_eigvals")
    if is_recorded(t) and out is None:
        return linalg_eig(t)[0]
    if out is not None:
        check_castable(t, (out,), "linalg.eigvals", ("eigenvalues",))
    return only_values("linalg_eigvals", eigvals(array_of(t)), t, out)


def check_castable(t, outs, shown, names):
    """Raise unless the outputs can hold complex results."""
    for out, name in zip(outs, names):
        if isinstance(out, Tensor) and not out.is_complex():
            kind = "ComplexDouble" if array_of(t).dtype.char in "dD" else "ComplexFloat"
            raise RuntimeError(
                f"torch.{shown}: Expected {name} to be safely castable from {kind} dtype, but got {name} with dtype "
                f"{out.dtype.type_name}"
            )


def only_values(name, array, t, out, hint=None):
    if out is None:
        return constant(name, array, t, hint=hint)
    return delivered(name, array, out, t)


composite = {"linalg_eigvalsh": LINALG, "linalg_eigvals": LINALG}
functions = publish(globals())
