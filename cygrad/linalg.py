"""Linear algebra over matrices, and stacks of them, under the names of PyTorch's `torch.linalg`."""

from cygrad import det, matrix_power
from cygrad import slogdet as _slogdet
from cygrad._core.return_types import linalg_slogdet as _linalg_slogdet
from cygrad._ops.linear_systems import LinAlgError, cholesky, inv, solve

__all__ = ["LinAlgError", "cholesky", "det", "inv", "matrix_power", "slogdet", "solve"]


def slogdet(A, *, out=None):
    """Sign, and logarithm of the magnitude, of the determinant; see `cygrad.slogdet`."""
    return _linalg_slogdet(_slogdet(A, out=out))
