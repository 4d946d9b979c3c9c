"""Adadelta: steps in the units of the parameter, without a learning rate to tune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cygrad import Tensor
from cygrad.optim._checks import check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["Adadelta"]


class Adadelta(FormulaOptimizer):
    """Steps scaled by the ratio of the RMS of past updates to the RMS of past gradients.

    With g the gradient plus `weight_decay` times the parameter, and v and d initially zero:

        v = rho * v + (1 - rho) * g**2
        u = sqrt(d + eps) / sqrt(v + eps) * g
        d = rho * d + (1 - rho) * u**2
        parameter -= lr * u

    See M. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adadelta([w], lr=1.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9968, -2.9968], requires_grad=True)
    """

    _of_elements = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps, "epsilon")
        check_not_negative(weight_decay, "weight_decay")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return zeros(param, "square_avg", "acc_delta")

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        rho, eps, square, moved = o["rho"], o["eps"], state["square_avg"], state["acc_delta"]
        square *= rho
        square += (1 - rho) * g * g
        update = xp.sqrt(moved + eps) / xp.sqrt(square + eps) * g
        moved *= rho
        moved += (1 - rho) * update * update
        p -= o["lr"] * update


adadelta = of_lists(
    Adadelta,
    "adadelta",
    {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"},
    {"capturable": False, "foreach": None, "differentiable": False, "has_complex": False},
    "lr rho eps weight_decay maximize".split(),
)
