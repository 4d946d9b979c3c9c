"""Vandermonde matrices."""

import numpy as np

from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, publish, registry
from cygrad._core.graph.record import record_n
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.types.dtypes import dtype_of_number
from cygrad._kernels.cpu.base.half_sums import is_half
from cygrad._kernels.cpu.indexing.axis_ops import put_powers
from cygrad._ops.base.arguments import integer, require
from cygrad._ops.base.creation import ones
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import reshape, unsqueeze
from cygrad._ops.common.blocked_composites import in_steps
from cygrad._ops.linalg.common import LINALG
from cygrad._ops.reduction.scans import CUMPROD, cumprod
from cygrad._ops.shape.flip_roll import FLIP, flip


def powers(vectors, count, falling=False):
    """Return 1, x, x^2, ..., or reversed if `falling`, in a new last dimension; differentiable also at 0."""
    kind = vectors.dtype if vectors.dtype.is_floating_point or vectors.dtype.is_complex else dtype_of_number(0)
    if count <= 1:
        return ones((*vectors.shape, count), dtype=kind, device=vectors.device)
    repeated, array = unsqueeze(vectors, -1).expand(*vectors.shape, count - 1), memory_of(vectors)
    if array.dtype != kind.numpy or not isinstance(array, np.ndarray) or is_half(array):
        first = ones((*vectors.shape, 1), dtype=kind, device=vectors.device)
        rows = cat((first, cumprod(repeated, -1)), -1)
        return flip(rows, (-1,)) if falling else rows
    # each op writes into the memory of the previous one
    out, last = np.empty((*array.shape, count), array.dtype), array.ndim
    rising = out[..., ::-1] if falling else out
    first = rising[..., :1]
    first[...] = 1
    put_powers(array, rising[..., 1:])
    products = record_n(CUMPROD, rising[..., 1:], (repeated,), (last,))
    rows = record_n(registry["cat"], rising[...], (tensor_of(first), products), (last, [1, count - 1]))
    return record_n(FLIP, out, (rows,), ((last,),)) if falling else rows


@in_steps(0, last=1, node="FlipBackward0")
def falling_powers(vectors, count):
    return powers(vectors, count, True)


def vander(x, N=None, increasing=False):
    """Return the powers of each element in a row: `x` (n), result (n, N); N defaults to n.

    They fall from x^(N - 1) to 1, or rise with `increasing`. Integers give int64. Saved tensors and gradient are those
    of `cumprod`. Raises RuntimeError for a tensor that is not a vector, and for a negative `N`.

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
    checked_lengths((len(t), count))
    return powers(t, count) if increasing else falling_powers(t, count)


def linalg_vander(x, *, N=None):
    """Return the powers of each element in a row, rising from 1: x (..., n), result (..., n, N); N defaults to n.

    out[..., i, j] = x[..., i]^j.

    A 0-dim tensor counts as a vector of one element. Integers give int64. Raises RuntimeError for N < 2.

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
    return powers(t if t.ndim else reshape(t, (1,)), count)


composite = {"vander": FUNCTION_ONLY, "linalg_vander": LINALG}
functions = publish(globals())
