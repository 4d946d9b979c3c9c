"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import check_betas, check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["NAdam"]


class NAdam(FormulaOptimizer):
    """Adam with Nesterov momentum.

    With g the gradient, and m and v running averages of g and g*g, initially zero, in step t:

        mu(t) = beta1 * (1 - 0.96**(t * momentum_decay) / 2)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        n = mu(t + 1) * m / (1 - mu(1) ... mu(t + 1)) + (1 - mu(t)) * g / (1 - mu(1) ... mu(t))
        parameter -= lr * n / (sqrt(v / (1 - beta2**t)) + eps)

    `weight_decay` times the parameter is added to g, or with `decoupled_weight_decay` the
    parameter is first multiplied by 1 - lr * weight_decay.

    See T. Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8944, -2.8944], requires_grad=True)
    """

    _of_elements = ("exp_avg", "exp_avg_sq")
    _of_scalars = ("step", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(eps, "epsilon")
        check_betas(betas)
        check_not_negative(weight_decay, "weight_decay")
        check_not_negative(momentum_decay, "momentum_decay")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        averages = zeros(param, "exp_avg", "exp_avg_sq")
        return {"step": averages.pop("step"), "mu_product": cygrad.tensor(1.0, device="cpu"), **averages}

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        (beta1, beta2), mean, square = o["betas"], state["exp_avg"], state["exp_avg_sq"]
        mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (s * o["momentum_decay"])) for s in (t, t + 1))
        product = state["mu_product"]
        product *= mu
        done = float(product.item()) if isinstance(product, np.ndarray) else product  # recorded, or on a GPU
        mean += (1 - beta1) * (g - mean)
        square *= beta2
        square += (1 - beta2) * g * g
        root = xp.sqrt(square / (1 - beta2**t)) + o["eps"]
        ahead = next_mu / (1 - done * next_mu) * mean + (1 - mu) / (1 - done) * g
        p -= o["lr"] * ahead / root


nadam = of_lists(
    NAdam,
    "nadam",
    {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "mu_products": "mu_product", "state_steps": "step"},
    {
        "decoupled_weight_decay": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "has_complex": False,
        "maximize": False,
    },
    "beta1 beta2 lr weight_decay momentum_decay eps".split(),
)
