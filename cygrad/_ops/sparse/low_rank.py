"""Leading singular values and eigenvalues of sparse matrices, of which only products with dense ones are taken."""

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._ops.linalg import low_rank as dense
from cygrad._ops.random.random import randn
from cygrad._ops.sparse.entries import entries, with_values
from cygrad._ops.sparse.products import adjoint, matmul, matrix_of
from cygrad._ops.sparse.reductions import sum as total
from cygrad._ops.sparse.tensor import is_sparse


def _product(a, b):
    return matmul(a, b) if is_sparse(a) else a @ b


def _on_pattern(a):
    """Return a matrix whose gradients all have its own coordinates, where those of a leaf and its adjoint differ."""
    return with_values(a, entries(a)) if a.requires_grad else a


def svd_lowrank(A, q=6, niter=2, M=None):
    """Approximate the `q` largest singular values of a sparse matrix, or of `A - M`, with vectors."""
    A = _on_pattern(A)
    if M is None:
        return _svd(A, adjoint(A), q, niter, lambda x: 0, lambda x: 0)
    M = M if is_sparse(M) else M.expand(A.shape)
    turned = adjoint(M) if is_sparse(M) else M.mH
    return _svd(A, adjoint(A), q, niter, lambda x: _product(M, x), lambda x: _product(turned, x))


def _svd(a, turned, q, niter, shift, turned_shift):
    """Decompose `a - shift`, given the adjoints of both."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter

    def times(x):
        return _product(a, x) - shift(x)

    def adjoint_times(x):
        return _product(turned, x) - turned_shift(x)

    return dense.svd_by_products(times, adjoint_times, a.shape, q, niter, {"dtype": a.dtype, "device": a.device})


def pca_lowrank(A, q=None, center=True, niter=2):
    """Approximate the first `q` principal components of the rows of a sparse matrix, which stays as it is."""
    if A.ndim != 2:
        raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
    q = dense.checked_count(A.shape, q, niter)
    if not center:
        return svd_lowrank(A, q, niter)
    A = _on_pattern(A)
    sums = total(A, 0) if A.is_sparse else total(A.to_sparse(), 0)
    means = ((sums.to_dense() if is_sparse(sums) else sums) / A.shape[0]).unsqueeze(0)

    def shift(x):
        return means @ x  # the same for each row

    def turned_shift(x):
        return means.mH @ x.sum(0, keepdim=True)

    return _svd(A, adjoint(A), q, niter, shift, turned_shift)


def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, **ignored
):
    """Find the `k` largest or smallest eigenvalues of a sparse Hermitian matrix, with vectors, without gradients.

    The method, and options of the orthogonalization, have no effect on dense matrices, either.
    """
    for each in (A, B):
        if each is not None and each.requires_grad and is_sparse(each):
            raise ValueError("lobpcg.backward does not support sparse input yet. Note that lobpcg.forward does though.")
    k, n = dense.checked_counts(A, k, X, n)
    start = randn(A.shape[-1], n, dtype=A.dtype, device=A.device) if X is None else X
    matrices = [each if each is None else _matrix(each) for each in (A, B, iK)]
    first = array_of(start)
    options = dense.options_of(niter, tol, largest, first.dtype)
    report = dense.watcher(A, B, tracker)
    values, vectors = dense.lobpcg_array(matrices[0], matrices[1:], first, *options, report)
    return tensor_of(values[:k].copy()), tensor_of(vectors[:, :k].copy())


def _matrix(tensor):
    return matrix_of(tensor) if is_sparse(tensor) else array_of(tensor)


forms = {"svd_lowrank": svd_lowrank, "pca_lowrank": pca_lowrank, "lobpcg": lobpcg}
