"""Eigenvalues and eigenvectors by NumPy's LAPACK functions; NaN where they do not converge."""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.stack_chunks import over_stacks
from cygrad._kernels.cpu.linalg.lapack import by_columns
from cygrad._kernels.tape.calls import noted


@noted
@over_stacks(2)
@silent
def eigh(a, uplo):
    """Return (ascending eigenvalues, eigenvectors) of Hermitian matrices; only one triangle is read."""
    try:
        found = by_columns("eigh_lo" if uplo == "L" else "eigh_up", "x->dx", (a,), None, a.shape)
        return found or tuple(np.linalg.eigh(a, uplo))
    except np.linalg.LinAlgError:
        return hermitian_one_by_one(a, uplo)


def hermitian_one_by_one(a, uplo):
    values, vectors = np.full(a.shape[:-1], np.nan, a.real.dtype), np.full(a.shape, np.nan, a.dtype)
    for i in np.ndindex(a.shape[:-2]):
        try:
            values[i], vectors[i] = np.linalg.eigh(a[i], uplo)
        except np.linalg.LinAlgError:
            continue
    return values, vectors


@noted
@over_stacks(2)
@silent
def eigvalsh(a, uplo):
    if 0 in a.shape:
        return np.zeros(a.shape[:-1], a.real.dtype, like=a)
    try:
        return np.linalg.eigvalsh(a, uplo)
    except np.linalg.LinAlgError:
        return hermitian_one_by_one(a, uplo)[0]


@noted
@over_stacks(2)
def eig(a):
    """Return (eigenvalues, eigenvectors), always complex."""
    found = by_columns("eig", "x->DD", (a,), None, a.shape)
    return found or tuple(as_complex(part, a.dtype) for part in np.linalg.eig(a))


@noted
@over_stacks(2)
def eigvals(a):
    if 0 in a.shape:
        return np.zeros(a.shape[:-1], np.result_type(a.dtype, np.complex64), like=a)
    return as_complex(np.linalg.eigvals(a), a.dtype)


def as_complex(array, dtype):
    return array.astype(np.result_type(dtype, np.complex64), copy=False)
