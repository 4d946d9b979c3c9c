"""A few extreme eigenpairs of large Hermitian matrices (LOBPCG).

A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient
method" (2001). The three blocks (approximations, residuals, directions) are orthonormalized together in each step, and
linearly dependent columns are dropped, as in J. A. Duersch, M. Shao, C. Yang, M. Gu, "A robust and efficient
implementation of LOBPCG" (2018).
"""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent


@silent
def lobpcg(a, matrices, x, steps, tolerance, largest, report=None):
    """Return (eigenvalues, eigenvectors) of A X = B X diag(E), as many as X has columns.

    `matrices` are B and the preconditioner, each of which may be None. All may be sparse matrices of SciPy or CuPy.

    Stops after `steps` steps, or when the residuals are smaller than `tolerance` times the norms of their terms.
    `report` is called in each step with (step, E, X, R, relative residuals).
    """
    b, preconditioner = matrices
    count = x.shape[1]
    x = orthonormal(x, b)
    values, turn = extremes(x.conj().T @ a @ x, count, largest)
    x, directions = x @ turn, x[:, :0]
    size_a, size_b = norm(a), 1.0 if b is None else norm(b)
    for step in range(steps + 1):
        residuals = a @ x - times(b, x) * values
        sizes = np.linalg.norm(x, axis=0) * (size_a + np.abs(values) * size_b)
        relative = np.linalg.norm(residuals, axis=0) / np.where(sizes == 0, 1, sizes)
        if report is not None:
            report(step, values, x, residuals, relative)
        if step == steps or (relative <= tolerance).all():
            break
        basis = orthonormal(np.hstack([x, times(preconditioner, residuals), directions]), b)
        values, turn = extremes(basis.conj().T @ a @ basis, count, largest)
        new = basis @ turn
        directions = new - x @ (x.conj().T @ times(b, new))
        x = new
    return values, x


def norm(matrix):
    """The Frobenius norm of an array or of a sparse matrix without equal coordinates."""
    return np.linalg.norm(getattr(matrix, "data", matrix) if hasattr(matrix, "nnz") else matrix)


def times(matrix, x):
    return x if matrix is None else matrix @ x


def extremes(matrix, count, largest):
    """The wanted eigenpairs of a small matrix, the most extreme first."""
    values, vectors = np.linalg.eigh((matrix + matrix.conj().T) / 2)
    wanted = slice(None, -count - 1, -1) if largest else slice(count)
    return values[wanted], vectors[:, wanted]


def orthonormal(s, b):
    """A basis of the columns of S that is orthonormal with respect to B; linearly dependent columns are dropped."""
    for _ in range(2):
        lengths = np.sqrt(np.abs((s.conj() * times(b, s)).sum(0)))
        s = s[:, lengths > 0] / lengths[lengths > 0]
        gram = s.conj().T @ times(b, s)
        values, vectors = np.linalg.eigh((gram + gram.conj().T) / 2)
        kept = values > np.maximum(values.max(), 0) * np.finfo(values.dtype).eps * len(values)
        s = s @ (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return s
