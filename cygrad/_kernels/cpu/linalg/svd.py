"""Singular values and functions of them, for batches, by NumPy's LAPACK functions."""

import numpy as np

from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import by_columns, loops
from cygrad._kernels.device.cupy_library import as_array, is_meta
from cygrad._kernels.tape.calls import noted


@noted
@over_stacks(2)
def svd(a, full_matrices):
    """Return (U, S, Vh), or raise numpy.linalg.LinAlgError."""
    *stack, m, n = a.shape
    k = min(m, n)
    shapes = (*stack, m, m if full_matrices else k), None, (*stack, n if full_matrices else k, n)
    if k == 0 and not full_matrices:  # LAPACK's loops would go through the columns
        return tuple(
            np.zeros(s, d, like=a)
            for s, d in zip((shapes[0], (*stack, 0), shapes[2]), (a.dtype, a.real.dtype, a.dtype))
        )
    name = "svd_f" if full_matrices else "svd_s"
    if hasattr(loops, "svd_m_f"):  # up to NumPy 2.0, wide matrices have their own loop
        name = name.replace("_", "_m_" if m < n else "_n_")
    found = by_columns(name, "x->xdx", (a,), *shapes)
    return found or tuple(np.linalg.svd(a, full_matrices=full_matrices))


@noted
@over_stacks(2)
def values(a, hermitian=False):
    """S alone, descending; for `hermitian` matrices the absolute eigenvalues, in no particular order."""
    if 0 in a.shape[-2:]:
        return np.zeros((*a.shape[:-2], 0), a.real.dtype, like=a)
    if hermitian:
        return np.abs(np.linalg.eigvalsh(a))
    return np.linalg.svd(a, compute_uv=False)


def values_beside_infinite(a):
    """The same; NaN for matrices with infinite elements, as LAPACK computes them."""
    is_infinite = ~np.isfinite(a).all((-2, -1), keepdims=True)
    return np.where(is_infinite[..., 0], np.nan, values(np.where(is_infinite, 0, a))).astype(a.real.dtype)


@noted
def first_not_finite(a, good=np.isfinite):
    """The index of the first matrix whose elements are not all good, or None."""
    if is_meta(a):
        return None
    found = good(a)
    if np.count_nonzero(found) == a.size:
        return None
    return int((~found.all((-2, -1)).reshape(-1)).argmax())


def is_number(a):
    """Which elements are numbers: finite or infinite, not NaN."""
    return ~np.isnan(a)


def tolerance(s, shape, atol, rtol):
    """The threshold (...) up to which singular values count as 0. atol and rtol are None, arrays or numbers."""
    if rtol is None:
        rtol = np.finfo(s.dtype).eps * max(shape[-2:])
        if isinstance(atol, (int, float)):
            rtol = 0.0 if atol else rtol
        elif atol is not None:
            rtol = np.where(atol > 0, 0.0, rtol)
    largest = s.max(-1) if s.shape[-1] else np.zeros(s.shape[:-1], s.dtype, like=s)
    return np.maximum(0.0 if atol is None else atol, rtol * largest)


@noted
@over_stacks(2, 0, 0)
@np.errstate(all="ignore")
def rank(a, atol, rtol, hermitian):
    """The number of singular values above the tolerance."""
    s = values(a, hermitian)
    return np.count_nonzero(s > as_array(tolerance(s, a.shape, atol, rtol))[..., None], -1)


@noted
@over_stacks(2, 0, 0)
@np.errstate(all="ignore")
def pinv(a, atol, rtol, hermitian):
    """The Moore-Penrose pseudoinverse."""
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype, like=a)
    if hermitian:
        s, u = np.linalg.eigh(a)
        vh = u.conj().swapaxes(-1, -2)
        small = np.abs(s) <= as_array(tolerance(np.abs(s), a.shape, atol, rtol))[..., None]
    else:
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        small = s <= as_array(tolerance(s, a.shape, atol, rtol))[..., None]
    inverse = np.where(small, 0, 1 / np.where(small, 1, s)).astype(s.dtype)
    return (vh.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ u.conj().swapaxes(-1, -2)


@noted
@over_stacks(2)
@np.errstate(all="ignore")
def cofactors(a):
    """det(A) A^-T, also for singular matrices: from the products of all singular values but one.

    NaN for matrices that are not finite, on which LAPACK may not terminate.
    """
    finite = np.isfinite(a).all((-2, -1))
    if not finite.all():
        out = np.full(a.shape, np.nan, a.dtype)
        out[finite] = cofactors(a[finite])
        return out
    u, s, vh = np.linalg.svd(a)
    below = np.cumprod(np.concatenate([np.ones_like(s[..., :1]), s[..., :-1]], -1), -1)
    above = np.cumprod(np.concatenate([np.ones_like(s[..., :1]), s[..., :0:-1]], -1), -1)[..., ::-1]
    phases = np.linalg.det(u) * np.linalg.det(vh)
    return phases[..., None, None] * ((u.conj() * (below * above)[..., None, :]) @ vh.conj())
