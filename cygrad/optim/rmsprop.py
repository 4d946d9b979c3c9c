"""RMSprop: steps divided by the root of a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cygrad import Tensor
from cygrad.optim._checks import check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["RMSprop"]


class RMSprop(FormulaOptimizer):
    """Steps divided by the root of a running mean of the squared gradient.

    With g the gradient plus `weight_decay` times the parameter, and v, a and b initially zero:

        v = alpha * v + (1 - alpha) * g**2
        a = alpha * a + (1 - alpha) * g               (only if `centered`, else a = 0)
        b = momentum * b + g / (sqrt(v - a**2) + eps)
        parameter -= lr * b

    See T. Tieleman and G. Hinton, Lecture 6.5 of "Neural Networks for Machine Learning", 2012;
    centered: A. Graves, "Generating Sequences With Recurrent Neural Networks", 2013.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.RMSprop([w], lr=0.05)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -2.5000], requires_grad=True)
    """

    _of_elements = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(eps, "epsilon")
        check_not_negative(momentum, "momentum")
        check_not_negative(weight_decay, "weight_decay")
        check_not_negative(alpha, "alpha")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return zeros(param, *names)

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        alpha, square = o["alpha"], state["square_avg"]
        square *= alpha
        square += (1 - alpha) * g * g
        if o["centered"]:
            mean = state["grad_avg"]
            mean += (1 - alpha) * (g - mean)
            square = square - mean * mean
        update = g / (xp.sqrt(square) + o["eps"])
        if o["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer *= o["momentum"]
            buffer += update
            update = buffer
        p -= o["lr"] * update

    def _parts(self, state: dict[str, Any], group: dict[str, Any]) -> list[Any] | None:
        if self._owner() is not RMSprop:
            return None
        buffer = state["momentum_buffer"] if group["momentum"] > 0 else None
        return [state["square_avg"], buffer, state["grad_avg"] if group["centered"] else None]


rmsprop = of_lists(
    RMSprop,
    "rmsprop",
    {
        "square_avgs": "square_avg",
        "grad_avgs": "grad_avg",
        "momentum_buffer_list": "momentum_buffer",
        "state_steps": "step",
    },
    {"foreach": None, "maximize": False, "differentiable": False, "capturable": False, "has_complex": False},
    "lr alpha eps weight_decay momentum centered".split(),
)
