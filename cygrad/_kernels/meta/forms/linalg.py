"""Forms of the kernels in `cpu/linalg`: factorizations, solutions, eigenvalues."""

import numpy as np

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.forms.describing import complex_type, like_first, real_type, stack_of


def by_columns(shape, dtype):
    """Return a stack of matrices that is stored by columns, as LAPACK leaves its results."""
    if 0 in shape:
        return ndarray(shape, dtype)
    return ndarray((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def _info(a):
    return ndarray(a.shape[:-2], np.int32)


def factor(kernel, a, upper):
    return by_columns(a.shape, a.dtype), _info(a)


def inverse(kernel, a, upper):
    return by_columns(a.shape, a.dtype), _info(a)


def ldl_factor(kernel, a, hermitian):
    return by_columns(a.shape, a.dtype), ndarray(a.shape[:-1], np.int32), _info(a)


def ldl_solve(kernel, ld, pivots, b, hermitian):
    return by_columns((*stack_of(ld, b), *b.shape[-2:]), b.dtype)


def lu_factor(kernel, a):
    return by_columns(a.shape, a.dtype), ndarray((*a.shape[:-2], min(a.shape[-2:])), np.int32), _info(a)


def order_of_rows(kernel, pivots, m):
    return ndarray((*pivots.shape[:-1], m), np.int64)


def permutation(kernel, pivots, m, dtype):
    return ndarray((*pivots.shape[:-1], m, m), dtype)


def lu_solve(kernel, lu, pivots, b, left=True, turned=False):
    return by_columns((*stack_of(lu, b), *b.shape[-2:]), b.dtype)


def solve_factored(kernel, b, *args):
    return by_columns(
        (*stack_of(b, next(a for a in args if isinstance(a, ndarray) and a.ndim > 1)), *b.shape[-2:]), b.dtype
    )


def solve_triangular(kernel, a, b, *how, **options):
    return by_columns((*stack_of(a, b), *b.shape[-2:]), b.dtype)


matrix_exp = pade = cofactors = like_first


def solve_block(kernel, a, b, upper, unit):
    return ndarray((*stack_of(a, b), *b.shape[-2:]), b.dtype)


def svd(kernel, a, full_matrices):
    *stack, m, n = a.shape
    k = min(m, n)
    u, vh = ((*stack, m, m), (*stack, n, n)) if full_matrices else ((*stack, m, k), (*stack, k, n))
    return by_columns(u, a.dtype), ndarray((*stack, k), real_type(a.dtype)), ndarray(vh, a.dtype)  # as in PyTorch


def values(kernel, a, hermitian=False):
    return ndarray((*a.shape[:-2], min(a.shape[-2:])), real_type(a.dtype))


def pinv(kernel, a, atol, rtol, hermitian):
    return ndarray((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


def rank(kernel, a, atol, rtol, hermitian):
    return ndarray(a.shape[:-2], np.int64)


def eigh(kernel, a, uplo):
    return ndarray(a.shape[:-1], real_type(a.dtype)), by_columns(a.shape, a.dtype)


def eigvalsh(kernel, a, uplo):
    return ndarray(a.shape[:-1], real_type(a.dtype))


def eig(kernel, a):
    return ndarray(a.shape[:-1], complex_type(a.dtype)), by_columns(a.shape, complex_type(a.dtype))


def eigvals(kernel, a):
    return ndarray(a.shape[:-1], complex_type(a.dtype))


def lstsq(kernel, a, b, rcond, with_values):
    stack, (m, n) = stack_of(a, b), a.shape[-2:]
    singular = ndarray((*stack, min(m, n)) if with_values else (0,), real_type(a.dtype))
    return by_columns((*stack, n, b.shape[-1]), a.dtype), ndarray(stack, np.int64), singular, ndarray(stack, np.int32)


def factors(kernel, a, *args):
    *stack, m, n = a.shape
    if not args:  # of the LU factorization
        k = min(m, n)
        return by_columns((*stack, m, k), a.dtype), by_columns((*stack, k, n), a.dtype)
    k = m if args[0] else min(m, n)
    return by_columns((*stack, m, k), a.dtype), by_columns((*stack, k, n), a.dtype)


def triangles(kernel, lu):
    return factors(kernel, lu)


def geqrf(kernel, a):
    return by_columns(a.shape, a.dtype), ndarray((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
