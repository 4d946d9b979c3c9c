"""Distances and similarities between the vectors of two tensors."""

from __future__ import annotations

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension; `keepdim` keeps that dimension with size 1.

    Computes (sum of |x1 - x2 + eps|^p)^(1/p).

    >>> import cygrad
    >>> cygrad.nn.PairwiseDistance()(cygrad.tensor([[3.0, 4.0]]), cygrad.zeros(1, 2))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compare vectors along the last dimension; shapes are broadcast.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.PairwiseDistance()(cygrad.tensor([[0.0, 0.0]]), cygrad.tensor([[3.0, 4.0]]))
        tensor([5.0000])
        """
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`; norms are clamped to at least `eps`.

    Computes sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps)).

    >>> import cygrad
    >>> cygrad.nn.CosineSimilarity()(cygrad.tensor([[1.0, 1.0]]), cygrad.tensor([[2.0, 0.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compare vectors along `dim`; shapes are broadcast.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.CosineSimilarity(dim=0)(cygrad.tensor([1.0, 0.0]), cygrad.tensor([1.0, 1.0]))
        tensor(0.7071)
        """
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
