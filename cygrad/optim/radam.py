"""RAdam: Adam with a warm-up derived from the variance of its step size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cygrad import Tensor
from cygrad.optim._checks import check_betas, check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim.formula import FormulaOptimizer, zeros

__all__ = ["RAdam"]


class RAdam(FormulaOptimizer):
    """Adam that uses its mean square only after enough steps.

    With g the gradient, and m and v running averages of g and g*g, initially zero, in step t:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        r = 2 / (1 - beta2) - 1                       (the limit of rho)
        rho = r - 2 * t * beta2**t / (1 - beta2**t)
        c = sqrt((rho - 4) * (rho - 2) * r / ((r - 4) * (r - 2) * rho))
        s = c * sqrt(1 - beta2**t) / (sqrt(v) + eps) if rho > 5 else 1
        parameter -= lr * s * m / (1 - beta1**t)

    `weight_decay` times the parameter is added to g, or with `decoupled_weight_decay` the
    parameter is first multiplied by 1 - lr * weight_decay.

    See L. Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2019.

    `foreach` is accepted and has no effect. With `capturable` the step counts of GPU parameters are kept on the GPU,
    so that `step` can be captured in a CUDA graph. With `differentiable` the step is recorded, so that gradients
    flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.8000, -2.4000], requires_grad=True)
    """

    _of_elements = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return zeros(param, "exp_avg", "exp_avg_sq")

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        (beta1, beta2), mean, square = o["betas"], state["exp_avg"], state["exp_avg_sq"]
        mean += (1 - beta1) * (g - mean)
        square *= beta2
        square += (1 - beta2) * g * g
        left = 1 - beta2**t
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * t * beta2**t / left
        update = o["lr"] / (1 - beta1**t) * mean
        rectified = 0
        if not isinstance(t, float) or length > 5:
            rectified = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        if not isinstance(t, float):
            root = xp.sqrt(xp.maximum(rectified * left, 0)) / (xp.sqrt(square) + o["eps"])
            update = update * xp.where(length > 5, root, 1)
        elif length > 5:
            update = update * ((rectified * left) ** 0.5 / (xp.sqrt(square) + o["eps"]))
        p -= update


radam = of_lists(
    RAdam,
    "radam",
    {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"},
    {
        "decoupled_weight_decay": False,
        "foreach": None,
        "differentiable": False,
        "capturable": False,
        "has_complex": False,
        "maximize": False,
    },
    "beta1 beta2 lr weight_decay eps".split(),
)
