"""Products of sparse matrices by the compiled kernels of SciPy, or of CuPy (cupyx.scipy.sparse) on GPUs."""

from importlib import import_module

import numpy as np

from cygrad._kernels.device.cupy_library import is_array


def library(array):
    """Return the module of sparse matrices for an array: SciPy's, or CuPy's on a GPU."""
    if is_array(array):
        return import_module("cupyx.scipy.sparse")
    try:
        from scipy import sparse  # optional
    except ImportError:
        raise ImportError(
            "products of sparse tensors need SciPy, which is not installed\n"
            "  pip install scipy, or convert the operands first, as in x.to_dense()"
        ) from None
    return sparse


_HALF = ("float16", "bfloat16")  # neither library computes in these: products are computed in float32


def _wide(values):
    return values.astype(np.float32) if values.dtype.name in _HALF else values


def matrix(bounds, plain, values, shape, is_by_row=True):
    """Return the library's matrix of compressed rows, or columns. Indices may repeat and be in any order."""
    kind = library(values)
    make = kind.csr_matrix if is_by_row else kind.csc_matrix
    return make((_wide(values), plain, bounds), shape=shape)


def from_coordinates(indices, values, shape):
    """Return the library's matrix of these elements; equal coordinates are added."""
    return library(values).coo_matrix((_wide(values), (indices[0], indices[1])), shape=shape).tocsr()


def times(a, b, dtype):
    """Return `a @ b` as an array of this dtype, where one of the two is a sparse matrix of the library."""
    if isinstance(a, np.ndarray) or is_array(a):  # (b^T a^T)^T: a dense matrix comes second
        return np.ascontiguousarray((b.T.tocsr() @ _wide(a).T).T).astype(dtype, copy=False)
    return np.ascontiguousarray(a @ _wide(b)).astype(dtype, copy=False)


def product(a, b):
    """Return the product of two sparse matrices as (row bounds, columns, values), ordered and merged."""
    found = (a @ b).tocsr()
    found.sum_duplicates()
    found.sort_indices()
    return found.indptr.astype(np.int64), found.indices.astype(np.int64), found.data
