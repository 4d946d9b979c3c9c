"""Margin losses, which require scores or distances to differ by a given amount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad import Tensor
from cygrad.nn.modules._loss import Loss, TargetLoss, WeightedLoss
from cygrad.nn.modules.distance import PairwiseDistance

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class HingeEmbeddingLoss(TargetLoss):
    """input where target is 1, max(0, margin - input) where it is -1.

    >>> import cygrad
    >>> cygrad.nn.HingeEmbeddingLoss()(cygrad.tensor([0.5, 0.25]), cygrad.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    _function = "hinge_embedding_loss"
    _settings = ("margin",)

    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class SoftMarginLoss(TargetLoss):
    """log(1 + exp(-target * input)), for targets of 1 and -1.

    >>> import cygrad
    >>> cygrad.nn.SoftMarginLoss()(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, -1.0]))
    tensor(1.0032)
    """

    _function = "soft_margin_loss"


class MultiMarginLoss(WeightedLoss):
    """The sum of max(0, margin - x[y] + x[i])**p over the classes i != y, divided by the number of classes C.

    Input of shape (N, C) or (C) holds scores, target (N) or () the class y. `p` is 1 or 2;
    `weight` (C) scales the terms of class y, before the power.

    >>> import cygrad
    >>> cygrad.nn.MultiMarginLoss()(cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([3]))
    tensor(0.3250)
    """

    _function = "multi_margin_loss"
    _settings = ("p", "margin", "weight")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p != 1 and p != 2:
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin


class MultiLabelMarginLoss(TargetLoss):
    """The sum of max(0, 1 - (x[y] - x[i])) over the labels y and the non-label classes i, divided by C.

    Target has the shape of input, (N, C) or (C), and lists a sample's labels up to the first -1.

    >>> import cygrad
    >>> scores, labels = cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([[3, 0, -1, 1]])
    >>> cygrad.nn.MultiLabelMarginLoss()(scores, labels)
    tensor(0.8500)
    """

    _function = "multilabel_margin_loss"


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The binary cross-entropy of each class's sigmoid, averaged over the classes.

    The mean over classes of -weight (target log(sigmoid(input)) + (1 - target) log(sigmoid(-input))), then reduced.

    Target has the shape of input, (N, C) or (C), with 1 for a label. `weight` (C) scales classes.

    >>> import cygrad
    >>> cygrad.nn.MultiLabelSoftMarginLoss()(cygrad.zeros(1, 2), cygrad.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    _function = "multilabel_soft_margin_loss"


class _PairLoss(Loss):
    """A loss of two inputs, with a target of 1 or -1 for the desired relation between them."""

    _settings = ("margin",)

    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compare two inputs according to `target`."""
        return self._call(input1, input2, target)


class MarginRankingLoss(_PairLoss):
    """max(0, margin - target * (input1 - input2)): with target 1 the first input should rank higher.

    >>> import cygrad
    >>> cygrad.nn.MarginRankingLoss()(cygrad.tensor([1.0]), cygrad.tensor([3.0]), cygrad.tensor([1.0]))
    tensor(2.)
    """

    _function = "margin_ranking_loss"


class CosineEmbeddingLoss(_PairLoss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, where cos is the cosine similarity of the inputs.

    Inputs of shape (N, D) or (D), target (N) or ().

    >>> import cygrad
    >>> first, second = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[1.0, 1.0]])
    >>> cygrad.nn.CosineEmbeddingLoss()(first, second, cygrad.tensor([1.0]))
    tensor(0.2929)
    """

    _function = "cosine_embedding_loss"


class _TripletLoss(Loss):
    """A loss that pulls an anchor closer to `positive` than to `negative`."""

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compare distances from `anchor`; all inputs of shape (N, D) or (D)."""
        return self._call(anchor, positive, negative)


class TripletMarginLoss(_TripletLoss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with the p-norm as distance d.

    `eps` is added to the differences. With `swap`, the distance from positive to negative replaces
    d(anchor, negative) where it is smaller.

    >>> import cygrad
    >>> anchor, far = cygrad.zeros(1, 2), cygrad.tensor([[3.0, 4.0]])
    >>> cygrad.nn.TripletMarginLoss()(anchor, far, anchor)
    tensor(6.0000)
    """

    _function = "triplet_margin_loss"
    _settings = ("margin", "p", "eps", "swap")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap


class TripletMarginWithDistanceLoss(_TripletLoss):
    """`TripletMarginLoss` with an arbitrary distance function of two tensors; by default `PairwiseDistance()`.

    max(0, d(anchor, positive) - d(anchor, negative) + margin) with that distance d.

    >>> import cygrad
    >>> anchor, far = cygrad.zeros(1, 2), cygrad.tensor([[3.0, 4.0]])
    >>> loss = cygrad.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().amax(-1))
    >>> loss(anchor, far, anchor)
    tensor(5.)
    """

    _function = "triplet_margin_with_distance_loss"
    _settings = ("distance_function", "margin", "swap")

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap
