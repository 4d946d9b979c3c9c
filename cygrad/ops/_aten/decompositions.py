"""Decompositions that return what their gradients need besides the results."""

import cygrad
from cygrad.ops._aten.table import aten


@aten
def _linalg_svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    """Return (U, S, Vh); the first and the last are empty without `compute_uv`."""
    if compute_uv:
        return cygrad.linalg.svd(A, full_matrices)
    return A.new_empty(0), cygrad.linalg.svdvals(A), A.new_empty(0)


@aten
def _linalg_eigh(A, UPLO="L", compute_v=True):
    """Return the eigenvalues and eigenvectors of Hermitian matrices; the latter are empty without `compute_v`."""
    return cygrad.linalg.eigh(A, UPLO) if compute_v else (cygrad.linalg.eigvalsh(A, UPLO), A.new_empty(0))


@aten
def _linalg_solve_ex(A, B, *, left=True, check_errors=False):
    """Return (X, LU, pivots, info) for A X = B."""
    x, info = cygrad.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return (x, *cygrad.linalg.lu_factor_ex(A)[:2], info)


@aten
def _linalg_det(A):
    """Return (determinant, LU, pivots)."""
    return (cygrad.linalg.det(A), *cygrad.linalg.lu_factor_ex(A)[:2])


@aten
def _linalg_slogdet(A):
    """Return (sign, logarithm of the absolute value, LU, pivots) of the determinant."""
    return (*cygrad.linalg.slogdet(A), *cygrad.linalg.lu_factor_ex(A)[:2])


@aten
def _linalg_check_errors(info, api_name, *, is_matrix):
    """Raise LinAlgError unless all of `info` is 0, which says how matrices fared."""
    if info.is_meta or not (info != 0).any():
        return
    first = info.reshape(-1).nonzero()[0].item()
    where = "" if is_matrix else f"(Batch element {first}): "
    raise cygrad.linalg.LinAlgError(f"{api_name}: {where}The computation could not be completed")


@aten
def _histogramdd_bin_edges(self, bins, *, range=None, weight=None, density=False):
    """Return the edges along each dimension."""
    return list(cygrad.histogramdd(self, list(bins), range, weight, density).bin_edges)


@aten
def _histogramdd_from_bin_cts(self, bins, *, range=None, weight=None, density=False):
    """Return the counts in equal bins."""
    return cygrad.histogramdd(self, list(bins), range, weight, density).hist


@aten
def _histogramdd_from_bin_tensors(self, bins, *, weight=None, density=False):
    """Return the counts between edges."""
    return cygrad.histogramdd(self, list(bins), None, weight, density).hist
