"""ASGD: averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["ASGD"]


class ASGD(FormulaOptimizer):
    """Averaged stochastic gradient descent: the running mean of the parameters is kept in the state.

    With g the gradient plus `weight_decay` times the parameter, and eta initially `lr`, in step t:

        parameter = parameter * (1 - lambd * eta) - eta * g
        ax = ax + mu * (parameter - ax)               (the average, `state[parameter]["ax"]`)
        eta = lr / (1 + lambd * lr * t)**alpha
        mu = 1 / max(1, t - t0)

    See B. Polyak and A. Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8000, -2.4000], requires_grad=True)
    """

    _of_elements = ("ax",)
    _of_scalars = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(weight_decay, "weight_decay")
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        average = zeros(param, "ax")
        eta = cygrad.tensor(float(group["lr"]))
        return {"step": average.pop("step"), "eta": eta, "mu": cygrad.tensor(1.0, device="cpu"), **average}

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        average, eta, mu, lr = state["ax"], state["eta"], state["mu"], o["lr"]
        if isinstance(eta, np.ndarray):  # neither recorded nor on a GPU
            eta, mu, lr = float(eta.item()), float(mu.item()), float(lr)
        elif isinstance(eta, Tensor):
            wide = cygrad.promote_types(p.dtype, eta.dtype)  # in float32, `1 - lambd * eta` would lose digits
            eta, mu = eta.to(wide), mu.to(wide)
        p *= 1 - o["lambd"] * eta
        p -= eta * g
        average += mu * (p - average)
        state["eta"][...] = lr / (1 + o["lambd"] * lr * t) ** o["alpha"]
        state["mu"][...] = 1 / (max(1, t - o["t0"]) if isinstance(t, float) else xp.maximum(1, t - o["t0"]))


asgd = of_lists(
    ASGD,
    "asgd",
    {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"},
    {"foreach": None, "maximize": False, "differentiable": False, "capturable": False, "has_complex": False},
    "lambd lr t0 alpha weight_decay".split(),
)
