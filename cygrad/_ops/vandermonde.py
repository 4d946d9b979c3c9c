"""Matrices of powers."""

from cygrad._core.dtypes import dtype_of_number
from cygrad._core.opdef import FUNCTION_ONLY, publish
from cygrad._ops.arguments import integer, require
from cygrad._ops.creation import ones
from cygrad._ops.matrices import LINALG
from cygrad._ops.moving import flip
from cygrad._ops.parts import cat
from cygrad._ops.scans import cumprod
from cygrad._ops.views import unsqueeze


def powers(vectors, count):
    """1, x, x^2, ... in a new last dimension of `count` elements; the gradient is right at 0, too."""
    kind = vectors.dtype if vectors.dtype.is_floating_point or vectors.dtype.is_complex else dtype_of_number(0)
    first = ones((*vectors.shape, min(count, 1)), dtype=kind, device=vectors.device)
    if count <= 1:
        return first
    repeated = unsqueeze(vectors, -1).expand(*vectors.shape, count - 1)
    return cat((first, cumprod(repeated, -1)), -1)


def vander(x, N=None, increasing=False):
    """The powers of each element in a row: `x` (n), result (n, N), where N is n if left out.

    They fall from x^(N - 1) to 1, or with `increasing` rise. Integers give int64. Saves what `cumprod` saves; the
    gradient is its gradient. Raises RuntimeError for a tensor that is no vector, and for a negative `N`.

    >>> import cygrad
    >>> cygrad.vander(cygrad.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    t = require(x, "vander", "x")
    if t.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = len(t) if N is None else integer(N, "vander", "N", 2)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    rows = powers(t, count)
    return rows if increasing else flip(rows, (-1,))


def linalg_vander(x, *, N=None):
    """The powers of each element in a row, rising from 1: x (..., n), result (..., n, N), where N is n if left out.

    Integers give int64. Raises RuntimeError for N < 2.

    >>> import cygrad
    >>> cygrad.linalg.vander(cygrad.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    t = require(x, "linalg_vander", "x")
    if t.dtype.name == "bool":
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {t.dtype.type_name}"
        )
    count = (t.shape[-1] if t.ndim else 1) if N is None else integer(N, "linalg_vander", "N", 2)
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return powers(t, count)


composite = {"vander": FUNCTION_ONLY, "linalg_vander": LINALG}
functions = publish(globals())
