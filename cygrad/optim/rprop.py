"""Rprop: steps whose size depends only on the signs of the gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import check_learning_rate
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["Rprop"]


class Rprop(FormulaOptimizer):
    """Steps whose size depends only on the signs of the gradients.

    Each element has a step size d, initially `lr`. With g the gradient and h the previous one:

        d = clip(d * etas[1], *step_sizes)            where g * h > 0
        d = clip(d * etas[0], *step_sizes), g = 0     where g * h < 0
        parameter -= sign(g) * d

    See M. Riedmiller and H. Braun, "A Direct Adaptive Method for Faster Backpropagation Learning:
    The RPROP Algorithm", 1993. Meant for full-batch gradients, not minibatches.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -2.9000], requires_grad=True)
    """

    _of_elements = ("prev", "step_size")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        lr = float(group["lr"])
        size = cygrad.full_like(param.detach(), complex(lr, lr) if param.is_complex() else lr)
        return {**zeros(param, "prev"), "step_size": size}

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        (shrink, grow), (least, most) = o["etas"], o["step_sizes"]
        before, size = state["prev"], state["step_size"]
        turn = xp.sign(g * before)
        scaled = xp.where(turn > 0, size * grow, xp.where(turn < 0, size * shrink, size))
        size[...] = xp.clip(scaled, least, most)
        g = xp.where(turn < 0, xp.zeros_like(g), g)
        p -= xp.sign(g) * size
        before[...] = g


rprop = of_lists(
    Rprop,
    "rprop",
    {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"},
    {"foreach": None, "capturable": False, "maximize": False, "differentiable": False, "has_complex": False},
    "step_size_min step_size_max etaminus etaplus".split(),
)
