"""Base classes of losses."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn._reduction import legacy_get_string
from cygrad.nn.modules._function_module import FunctionModule


class Loss(FunctionModule):
    """A function with a `reduction` of `"mean"`, `"sum"` or `"none"`."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_get_string(size_average, reduce)
        self.reduction = reduction

    def _call(self, *tensors: Any, **more: Any) -> Tensor:
        return super()._call(*tensors, reduction=self.reduction, **more)


class TargetLoss(Loss):
    """A loss that compares an input with its target."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compare `input` with `target`."""
        return self._call(input, target)


class WeightedLoss(TargetLoss):
    """A loss with weights per class or per element, stored as a buffer."""

    weight: Tensor | None
    _settings: tuple[str, ...] = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
