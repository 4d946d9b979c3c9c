"""Adagrad: steps divided by the root of the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import check_implementation, check_learning_rate, check_not_negative
from cygrad.optim._of_lists import of_lists
from cygrad.optim._state import state_dtype
from cygrad.optim.formula import FormulaOptimizer

__all__ = ["Adagrad"]


class Adagrad(FormulaOptimizer):
    """Steps divided by the root of the sum of all squared gradients so far.

    With g the gradient plus `weight_decay` times the parameter, and s initially
    `initial_accumulator_value`, in step t:

        s = s + g**2
        parameter -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    See J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", JMLR 12, 2011.

    `foreach` and `fused` are accepted and have no effect. With `differentiable` the step is
    recorded, so that gradients flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -2.9000], requires_grad=True)
    """

    _of_elements = ("sum",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(lr_decay, "lr_decay")
        check_not_negative(weight_decay, "weight_decay")
        check_not_negative(initial_accumulator_value, "initial_accumulator_value")
        check_not_negative(eps, "epsilon")
        check_implementation(foreach, fused, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._first_state(param, group))

    def _first_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        first = group["initial_accumulator_value"]
        value = complex(first, first) if param.is_complex() else first
        return {
            "step": cygrad.tensor(0.0, device="cpu"),
            "sum": cygrad.full_like(param.detach(), value, dtype=state_dtype("sum", param)),
        }

    def _step_sparse(self, param: Tensor, group: dict[str, Any]) -> None:
        """The formula for the rows that a sparse gradient holds."""
        state = self.state[param]
        state["step"] += 1
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        assert param.grad is not None
        with cygrad.no_grad():
            grad = (-param.grad if group["maximize"] else param.grad).coalesce()
            rate = float(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
            state["sum"].add_(grad * grad)
            root = state["sum"].sparse_mask(grad).values().sqrt() + group["eps"]
            change = grad.values() / root
            param.add_(cygrad.sparse_coo_tensor(grad.indices(), change, grad.shape), alpha=-rate)

    def _change(self, xp: Any, p: Any, g: Any, state: dict[str, Any], o: dict[str, Any], t: float) -> None:
        total = state["sum"]
        total += g * g
        p -= o["lr"] / (1 + (t - 1) * o["lr_decay"]) * g / (xp.sqrt(total) + o["eps"])


adagrad = of_lists(
    Adagrad,
    "adagrad",
    {"state_sums": "sum", "state_steps": "step"},
    {
        "fused": None,
        "grad_scale": None,
        "found_inf": None,
        "has_sparse_grad": False,
        "foreach": None,
        "differentiable": False,
        "has_complex": False,
    },
    "lr weight_decay lr_decay eps maximize".split(),
)
