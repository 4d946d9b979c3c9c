"""Building blocks for custom distributions, under PyTorch's module path."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.distributions.discrete import clamp_probs
from cygrad.distributions.distribution import broadcast, lazy_property

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # the Euler-Mascheroni constant


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers to tensors of one shape.

    >>> import cygrad
    >>> cygrad.distributions.utils.broadcast_all(cygrad.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    return tuple(broadcast(*values))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert logits to probabilities: sigmoid, or softmax along the last dimension.

    >>> import cygrad
    >>> from cygrad.distributions.utils import logits_to_probs
    >>> logits_to_probs(cygrad.tensor([0.0, 0.0])), logits_to_probs(cygrad.tensor(0.0), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor(0.5000))
    """
    return cygrad.sigmoid(logits) if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert probabilities to finite logits: log(p / (1 - p)), or log(p).

    >>> import cygrad
    >>> from cygrad.distributions.utils import probs_to_logits
    >>> probs_to_logits(cygrad.tensor([0.5, 0.25])), probs_to_logits(cygrad.tensor(0.75), is_binary=True)
    (tensor([-0.6931, -1.3863]), tensor(1.0986))
    """
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of lower triangular matrices, up to the diagonal number `diag`, as vectors, row by row.

    Raises ValueError unless `diag` is one of the diagonals.

    >>> import cygrad
    >>> cygrad.distributions.utils.tril_matrix_to_vec(cygrad.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = cygrad.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangular matrices with these elements, up to the diagonal number `diag`: the inverse.

    Raises ValueError if no matrix has that many.

    >>> import cygrad
    >>> cygrad.distributions.utils.vec_to_tril_matrix(cygrad.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    root = (1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)
    n = round((root**0.5 - 1 - 2 * diag) / 2)
    rows, columns = cygrad.tril_indices(n, n, diag, device=vec.device)
    if len(rows) != vec.shape[-1]:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
                         "triangular part of a square D x D matrix.")  # fmt: skip
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix


def _standard_normal(shape, dtype, device):
    return cygrad.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value, dim):
    """Sum over the last `dim` dimensions."""
    return value.flatten(value.ndim - dim).sum(-1) if dim > 0 else value
