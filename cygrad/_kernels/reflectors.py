"""Products of Householder reflectors H = 1 - tau v v^H, as QR leaves them, over stacks.

Vector i has zeros above row i, a one there (not stored), and the rest below the diagonal of column i. Of k reflectors
the product is 1 - V T V^H with T = D (1 + triu(V^H V, 1) D)^-1, D = diag(tau): R. Schreiber, C. Van Loan, "A
storage-efficient WY representation for products of Householder transformations" (1989).
"""

import numpy as np

from cygrad._kernels.gpu.library import dense, module_of
from cygrad._kernels.stacks import over_stacks
from cygrad._kernels.triangular import solve_triangular


def vectors(a, k):
    """V, of shape (..., m, k)."""
    v = np.tril(a[..., :, :k], -1)
    v += module_of(v).eye(v.shape[-2], k, dtype=v.dtype)
    return v


def inner(v, tau):
    """1 + triu(V^H V, 1) D."""
    m = np.triu(v.conj().swapaxes(-1, -2) @ v, 1) * tau[..., None, :]
    m += module_of(m).eye(m.shape[-1], dtype=m.dtype)
    return m


@over_stacks(2, 1)
@np.errstate(all="ignore")
def product(a, tau):
    """The first n columns of the product, for A of shape (..., m, n)."""
    v = vectors(a, tau.shape[-1])
    w = solve_triangular(inner(v, tau), v[..., : a.shape[-1], :].conj().swapaxes(-1, -2), True, True)
    w *= tau[..., :, None]
    found = v @ w
    return np.subtract(module_of(a).eye(*a.shape[-2:], dtype=a.dtype), found, out=found)


@over_stacks(2)
def geqrf(a):
    """R above and on the diagonal, the reflectors below it, and tau."""
    if not a.size:
        return a.copy(), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype, like=a)
    with np.errstate(all="ignore"):
        packed, tau = np.linalg.qr(a, mode="raw")
    return dense(packed.swapaxes(-1, -2)), tau
