"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import arrays_for_update, tensor_of, with_gradients
from cygrad._core.replay.numbers import numbers_of
from cygrad._kernels.optimizer_steps import any_sparse, sgd_step
from cygrad.optim._checks import check_implementation, check_learning_rate
from cygrad.optim._of_lists import of_lists
from cygrad.optim.optimizer import Optimizer, loss_of, recording

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    With g the gradient plus `weight_decay` times the parameter, and v the momentum buffer:

        v = momentum * v + (1 - dampening) * g        (v = g in the first step)
        g = g + momentum * v if nesterov else v
        parameter -= lr * g                           (+= if `maximize`)

    `foreach` and `fused` are accepted: a group is always updated in one compiled pass. With
    `differentiable` the step is recorded, so that gradients flow through it.

    Raises `ValueError` for negative options and for `nesterov` without momentum.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([0.0620], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr, may_be_nan=True)  # as in PyTorch
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_implementation(foreach, fused, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _can_leave_out(self, device: Any) -> bool:
        return all(not g["differentiable"] and all(p.device == device for p in g["params"]) for g in self.param_groups)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        `closure`, if given, recomputes and returns the loss, which `step` returns.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
        """
        loss = loss_of(closure)
        for group in self.param_groups:
            params, grads = with_gradients(group["params"])
            if any_sparse(grads):
                params, grads = self._step_sparse(params, grads, group)
            if not params:
                continue
            if not group["differentiable"]:
                self._step_compiled(params, grads, group)
                continue
            with recording():
                for param in params:
                    self._step_recorded(param, group)
        return loss

    def _step_sparse(
        self, params: list[Tensor], grads: list[Any], group: dict[str, Any]
    ) -> tuple[list[Tensor], list[Any]]:
        """Update the parameters whose gradients are sparse, in the rows that these hold; return the others."""
        rest = []
        for param, array in zip(params, grads):
            if any_sparse((array,)):
                with recording() if group["differentiable"] else cygrad.no_grad():
                    self._step_recorded(param, group)
            else:
                rest.append((param, array))
        return [param for param, _ in rest], [array for _, array in rest]

    def _step_compiled(self, params: list[Tensor], grads: list[Any], group: dict[str, Any]) -> None:
        buffers: list[Tensor | None] = []
        arrays: list[Any] = []
        if group["momentum"]:
            buffers = [self.state[p].get("momentum_buffer") for p in params]
            old = iter(arrays_for_update([b for b in buffers if b is not None]))
            arrays = [None if b is None else next(old) for b in buffers]
        values = arrays_for_update(params)
        numbers = numbers_of(group, "lr", "momentum", "dampening", "weight_decay")
        sgd_step(values, grads, arrays, *numbers, group["nesterov"], group["maximize"])
        for param, buffer, array in zip(params, buffers, arrays):
            if buffer is None:  # the first step creates the buffer
                self.state[param]["momentum_buffer"] = tensor_of(array)

    def _step_recorded(self, param: Tensor, group: dict[str, Any]) -> None:
        """The formula of the class docstring on tensors, recorded."""
        momentum, grad = group["momentum"], param.grad
        assert grad is not None
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad + group["weight_decay"] * param  # which a sparse gradient refuses, as in PyTorch
        if momentum:
            buffer = self.state[param].get("momentum_buffer")
            if buffer is None:
                buffer = grad.detach().clone()
                self.state[param]["momentum_buffer"] = buffer
            else:
                buffer.mul_(momentum).add_(grad * (1 - group["dampening"]))
            grad = grad + momentum * buffer if group["nesterov"] else buffer
        param.sub_(group["lr"] * grad)


sgd = of_lists(
    SGD,
    "sgd",
    {"momentum_buffer_list": "momentum_buffer"},
    {"has_sparse_grad": False, "foreach": None, "fused": None, "grad_scale": None, "found_inf": None},
    "weight_decay momentum lr dampening nesterov maximize".split(),
)
