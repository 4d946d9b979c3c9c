"""A classifier's output layer fused with its loss."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules._loss import WeightedLoss
from cygrad.nn.modules.linear import Linear

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's memory-saving options of `LinearCrossEntropyLoss`; accepted for compatibility, without effect here.

    Raises ValueError for values that PyTorch does not support.

    >>> import cygrad
    >>> cygrad.nn.LinearCrossEntropyOptions(batch_chunk_size=64).acc_policy
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: cygrad.dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if not re.fullmatch("auto|aspect_ratio:0*[1-9][0-9]*", self.chunking_method or "auto"):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and not self.batch_chunk_size > 0:
            raise ValueError(f"batch_chunk_size must be positive int or None, got {self.batch_chunk_size}")


class LinearCrossEntropyLoss(WeightedLoss):
    """A linear layer to `num_classes` scores, stored as `linear`, followed by `CrossEntropyLoss`.

    With scores s = weight x + bias, the loss is log(sum over classes of exp(s)) - s[target], then reduced.

    Input (in_features) or (N, in_features); target as for `CrossEntropyLoss`, with `out_features` as the dimensions
    after the class dimension. `ignore_index` applies to targets that are class indices. `options` has no effect. Raises
    RuntimeError for invalid weights or label smoothing.

    >>> import cygrad
    >>> loss = cygrad.nn.LinearCrossEntropyLoss(4, 10)
    >>> _ = cygrad.nn.init.zeros_(loss.linear.weight)
    >>> loss(cygrad.ones(3, 4), cygrad.tensor([1, 2, 3]))
    tensor(2.3026, grad_fn=<NllLossBackward0>)
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, math.prod((num_classes, *out_features)), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare the scores of `input` with `target`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.LinearCrossEntropyLoss(4, 10)
        >>> m(cygrad.ones(3, 4), cygrad.tensor([0, 3, 9])).shape
        torch.Size([])
        """
        shape = self.num_classes, *self.out_features
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """Return the sizes of the layer and the settings of the loss.

        >>> from cygrad import nn
        >>> nn.LinearCrossEntropyLoss(4, 10).extra_repr().split(", ")[:2]
        ['in_features=4', 'num_classes=10']
        """
        shown = ("num_classes", "out_features", "reduction", "ignore_index", "label_smoothing", "options")
        settings = {name: getattr(self, name) for name in shown}
        settings = {"in_features": self.linear.in_features, **settings}
        items = [f"{name}={value}" for name, value in settings.items()]
        return ", ".join([*items[:3], f"bias={self.linear.bias is not None}", *items[3:]])
