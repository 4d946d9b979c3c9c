"""Cholesky factorization of batches of matrices with NumPy's LAPACK function; partial factors where it fails."""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import columns, count_of, integers, laid_by_columns, loops, routine, spread
from cygrad._kernels.cpu.linalg.triangular import has_normal_diagonals, solve_triangular, stack_of
from cygrad._kernels.device.cupy_library import module_of
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.calls import noted

# NumPy's gufunc, called directly: for small matrices, np.linalg.cholesky adds more overhead than this takes
lapack = getattr(loops, "cholesky_lo", None)


@over_stacks(2)
@silent
def factor(a, upper):
    """(L or U, info): info is the order of the first leading minor of each matrix that is not positive, or 0."""
    lower = a.swapaxes(-1, -2).conj() if upper else a
    info = np.zeros(a.shape[:-2], np.int32)
    found = factored_at_once(lower, upper)
    if found is None:
        found = np.tril(lower)
        found = found if upper else laid_by_columns(found)
        stack = found.reshape(-1, *a.shape[-2:])
        info.reshape(-1)[:] = [factor_one(matrix) for matrix in stack]
        found = stack.reshape(a.shape)
    return (found.swapaxes(-1, -2).conj() if upper else found), info


def factored_at_once(lower, by_rows):
    """Factor all matrices, column- or row-major; None if a matrix has no factor."""
    if lapack is None:
        try:
            return np.linalg.cholesky(lower)
        except np.linalg.LinAlgError:
            return None
    kind, signature = lower.dtype, "D->D" if lower.dtype.kind == "c" else "d->d"
    found = lapack(lower, None if by_rows else columns(lower.shape, signature[0]), signature=signature)
    if found.size and has_nan(found):
        return None
    return found if found.dtype is kind else found.astype(kind)


def has_nan(found):
    """Whether some matrix has no factor: then all its elements are NaN, including the last."""
    if found.ndim == 2:  # reading one number costs less than a NumPy call
        last = found.item(-1)
        return last != last
    return bool(np.isnan(found[..., -1, -1]).any())


def factor_one(a):
    """Factor one lower triangle in place, column by column, as far as possible; return its info."""
    for j in range(len(a)):
        a[j:, j] -= a[j:, :j] @ a[j, :j].conj()
        if not a[j, j].real > 0:
            return j + 1
        a[j, j] = np.sqrt(a[j, j].real)
        a[j + 1 :, j] /= a[j, j]
    return 0


@noted
@over_stacks(2, 2)
def solve_factored(b, factor, upper):
    """Compute A^-1 B from the factor of A; batches broadcast. Column-major if LAPACK computes it."""
    potrs = routine("potrs", factor, b)
    if potrs is None or not has_normal_diagonals(factor):
        lower = factor.swapaxes(-1, -2).conj() if upper else factor
        inner = solve_triangular(lower, b, False, False)
        return solve_triangular(lower.swapaxes(-1, -2).conj(), inner, True, False)
    n, width = b.shape[-2:]
    x = laid_by_columns(b, (*stack_of(factor, b), n, width))
    if x.size:
        stack = x.shape[:-2]
        potrs(count_of(x.shape), "LU"[upper], n, width, spread(factor, stack), n, x, n, integers(stack))
    return x


@noted
@over_stacks(2)
def inverse(factor, upper):
    """(A^-1, info) from the factor of A: info is the 1-based index of the first zero on the factor's diagonal, or 0."""
    n = factor.shape[-1]
    potri = routine("potri", factor)
    if potri is None or factor.dtype.kind == "c":  # potri ignores imaginary parts of the diagonal
        zeros = factor.diagonal(0, -2, -1) == 0
        info = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0) if factor.size else zeros.any(-1)
        return solve_factored(module_of(factor).eye(n, dtype=factor.dtype), factor, upper), info
    found, info = laid_by_columns(factor), integers(factor.shape[:-2])
    if found.size:
        potri(count_of(found.shape), "LU"[upper], n, found, n, info)
        is_below = np.tri(n, k=-1, dtype=np.bool_)
        np.copyto(found, found.swapaxes(-1, -2), where=is_below if upper else is_below.T)
    return found, info


dispatching(globals(), "factor")
