"""Losses: how far an output is from its target, as one number to minimise."""

from __future__ import annotations

import warnings
from typing import Any

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module

__all__ = ["CrossEntropyLoss", "MSELoss", "NLLLoss"]


class _Loss(Module):
    """What losses have in common: `reduction` is `"mean"`, `"sum"` or `"none"`."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with one weight for each class, kept as a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The squared difference (input - target)**2, elementwise, then the mean, sum or none.

    >>> import cygrad
    >>> cygrad.nn.MSELoss()(cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 0.0]))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare two tensors of the same shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Minus the log-probability that `input` gives to each sample's class.

    Input of shape (C) or (N, C, d1, ...) holds log-probabilities, target () or (N, d1, ...) class
    indices. `weight` (C) weighs classes; samples of class `ignore_index` do not count.

    >>> import cygrad
    >>> log_probabilities = cygrad.tensor([[0.5, 0.5], [0.9, 0.1]]).log()
    >>> cygrad.nn.NLLLoss()(log_probabilities, cygrad.tensor([0, 0]))
    tensor(0.3993)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare log-probabilities with classes."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """Log-softmax and `NLLLoss` in one: the usual loss of a classifier.

    Input of shape (C) or (N, C, d1, ...) holds any numbers (logits); target either () or
    (N, d1, ...) class indices, or probabilities of input's shape. `label_smoothing` mixes the
    target with the uniform distribution.

    >>> import cygrad
    >>> cygrad.nn.CrossEntropyLoss()(cygrad.zeros(3, 10), cygrad.tensor([1, 2, 3]))
    tensor(2.3026)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare logits with classes or probabilities."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The `reduction` that the two old flags mean, if either is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        meant = "none"
    else:
        meant = "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.",
        stacklevel=4,
    )
    return meant
