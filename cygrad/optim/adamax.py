"""Adamax: Adam with a running maximum in place of the mean square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cygrad import Tensor
from cygrad.optim._checks import check_betas, check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["Adamax"]


class Adamax(FormulaOptimizer):
    """Adam with a running maximum of the gradient's magnitude in place of the mean square.

    With g the gradient plus `weight_decay` times the parameter, and m and u initially zero, in step t:

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        parameter -= lr / (1 - beta1**t) * m / u

    See D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2014, section 7.1.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -2.9000], requires_grad=True)
    """

    _of_elements = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(eps, "epsilon")
        check_betas(betas)
        check_not_negative(weight_decay, "weight_decay")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return zeros(param, "exp_avg", "exp_inf")

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        (beta1, beta2), mean, largest = o["betas"], state["exp_avg"], state["exp_inf"]
        mean += (1 - beta1) * (g - mean)
        largest[...] = xp.maximum(beta2 * largest, xp.abs(g) + o["eps"])
        p -= o["lr"] / (1 - beta1**t) * mean / largest


adamax = of_lists(
    Adamax,
    "adamax",
    {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"},
    {"foreach": None, "maximize": False, "differentiable": False, "capturable": False, "has_complex": False},
    "eps beta1 beta2 lr weight_decay".split(),
)
