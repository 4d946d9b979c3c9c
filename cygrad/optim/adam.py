"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import arrays_for_update, with_gradients
from cygrad._core.replay.numbers import numbers_of
from cygrad._kernels.optimizer_steps import adam_step, any_complex, any_sparse, count_steps
from cygrad.optim._checks import check_betas, check_implementation, check_learning_rate
from cygrad.optim._of_lists import of_lists
from cygrad.optim._state import as_real, state_dtype, widened
from cygrad.optim.formula import rate_of
from cygrad.optim.optimizer import Optimizer, loss_of, recording

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Steps of about `lr` per element, regardless of the gradient's magnitude.

    With g the gradient, and m and v running averages of g and g*g that start at zero:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2            (its maximum so far if `amsgrad`)
        parameter -= lr * m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)

    `weight_decay` times the parameter is added to g, or with `decoupled_weight_decay` the
    parameter is first multiplied by 1 - lr * weight_decay (this is `AdamW`).

    `foreach` and `fused` are accepted: a group is always updated in one compiled pass. With `capturable`
    the step counts of GPU parameters are kept on the GPU, so that `step` can be captured in a CUDA graph. With
    `differentiable` the step is recorded, so that gradients flow through it.

    Raises `ValueError` for options out of range.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, -3.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -2.9000], requires_grad=True)
    """

    _counts_in_tensors = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if eps < 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas, foreach, capturable)
        if not 0.0 <= weight_decay:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        check_implementation(foreach, fused, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _can_leave_out(self, device: Any) -> bool:
        return all(
            g["capturable"] and not g["differentiable"] and all(p.device == device for p in g["params"])
            for g in self.param_groups
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        `closure`, if given, recomputes and returns the loss, which `step` returns.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.Adam([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
        """
        loss = loss_of(closure)
        self._check_capture()
        for group in self.param_groups:
            params, grads = with_gradients(group["params"])
            if not params:
                continue
            if any_sparse(grads):
                raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
            states = [self.state[p] for p in params]
            for param, state in zip(params, states):
                if not state:
                    _begin(state, param, group)
            if not group["differentiable"]:
                _step_compiled(params, grads, states, group)
                continue
            with recording():
                for param, state in zip(params, states):
                    _step_recorded(param, state, group)
        return loss


class AdamW(Adam):
    """`Adam` with decoupled weight decay, 0.01 by default.

    With m and v the running averages of g and g*g, in step t:

        parameter = parameter * (1 - lr * weight_decay)
        parameter -= lr * m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)

    Each parameter is multiplied by 1 - lr * weight_decay before Adam's step.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8500], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # a state saved by Adam would switch it off
            group["decoupled_weight_decay"] = True


def _begin(state: dict[str, Tensor], param: Tensor, group: dict[str, Any]) -> None:
    state["step"] = cygrad.tensor(0.0).to(param.device if group["capturable"] else "cpu")
    for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]:
        state[name] = cygrad.zeros_like(param.detach(), dtype=state_dtype(name, param))


def _step_compiled(
    params: list[Tensor], grads: list[Any], states: list[dict[str, Tensor]], group: dict[str, Any]
) -> None:
    amsgrad = group["amsgrad"]

    def arrays(name: str) -> list[Any]:
        return arrays_for_update([state[name] for state in states])

    counted = group["capturable"] and params[0].is_cuda
    steps: list[Any] = arrays("step") if counted else count_steps(arrays("step"))
    values = arrays_for_update(params)
    averages, squares = arrays("exp_avg"), arrays("exp_avg_sq")
    largest = arrays("max_exp_avg_sq") if amsgrad else None
    if any_complex(values):
        for each in (values, grads, averages, squares, largest or []):
            each[:] = map(as_real, each)
    numbers = numbers_of(group, *(("betas",) if counted else ("lr", "betas")), "eps", "weight_decay")
    adam_step(
        values,
        grads,
        averages,
        squares,
        largest,
        steps,
        *((rate_of(group),) if counted else ()),
        *numbers,
        amsgrad,
        group["maximize"],
        group["decoupled_weight_decay"],
    )


def _step_recorded(param: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
    """The formula of the class docstring on tensors, recorded."""
    lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
    grad, step, m, v = param.grad, state["step"], state["exp_avg"], state["exp_avg_sq"]
    largest = state.get("max_exp_avg_sq")
    assert grad is not None
    if param.is_complex():
        raise RuntimeError("Adam supports complex parameters only if differentiable is False")
    if group["maximize"]:
        grad = -grad
    if decay and group["decoupled_weight_decay"]:
        param.mul_(1 - lr * decay)
    elif decay:
        grad = grad + decay * param
    step.add_(1)
    grad = widened(grad)
    m.mul_(beta1).add_(grad * (1 - beta1))
    v.mul_(beta2).add_(grad * grad * (1 - beta2))
    if largest is not None and group["amsgrad"]:
        v = largest.copy_(cygrad.maximum(largest, v))
    t = step.item()
    root = (v / (1 - beta2**t)).sqrt()
    param.sub_((lr / (1 - beta1**t)) * widened(m) / (root + group["eps"]))


def _check_betas(betas: Any, foreach: bool | None, capturable: bool) -> None:
    check_betas(betas)
    kinds = {isinstance(beta, Tensor) for beta in betas}
    if len(kinds) > 1:
        raise ValueError("betas must be either both floats or both Tensors")
    if kinds == {True}:
        for i, beta in enumerate(betas):
            if foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")


_LISTS = {
    "exp_avgs": "exp_avg",
    "exp_avg_sqs": "exp_avg_sq",
    "max_exp_avg_sqs": "max_exp_avg_sq",
    "state_steps": "step",
}
_FLAGS: dict[str, Any] = {
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    "fused": None,
    "grad_scale": None,
    "found_inf": None,
    "has_complex": False,
}
_OPTIONS = "amsgrad beta1 beta2 lr weight_decay eps maximize".split()

adam = of_lists(Adam, "adam", _LISTS, {**_FLAGS, "decoupled_weight_decay": False}, _OPTIONS)
adamw = of_lists(AdamW, "adamw", _LISTS, _FLAGS, _OPTIONS)
