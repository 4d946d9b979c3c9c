"""Adafactor: an adaptive optimizer that stores two vectors per matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.optim._checks import refuse_sparse
from cygrad.optim._state import widened
from cygrad.optim.optimizer import Optimizer, loss_of

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Steps relative to the size of a parameter, scaled by a factored (row times column) estimate of the mean square.

    With g the gradient, b = t**beta2_decay in step t, and the other quantities initially 0:

        r = (1 - b) * r + b * mean(g**2, dim=-1);   c = (1 - b) * c + b * mean(g**2, dim=-2)
        v = r c^T / max(mean(r), eps[0])                (of vectors and numbers: v = (1 - b) * v + b * g**2)
        u = g / sqrt(max(v, eps[0]**2))
        step = min(lr, 1 / sqrt(t)) * max(eps[1], rms(parameter))
        parameter -= lr * weight_decay * parameter
        parameter -= step * u / max(1, rms(u) / d)

    where rms is the root mean square; if `eps[0]` is None, it is the machine epsilon of the parameter's dtype.

    See N. Shazeer and M. Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018.

    `foreach` is accepted and has no effect. Raises `ValueError` for options out of range, `RuntimeError` for complex
    parameters.

    >>> import cygrad
    >>> w = cygrad.tensor([[1.0, -3.0]], requires_grad=True)
    >>> optimizer = cygrad.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([[ 0.7764, -2.7764]], requires_grad=True)
    """

    _counts_in_tensors = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        wanted: dict[str, Any] = {
            "Learning rate": lr,
            "epsilon1": eps[0],
            "epsilon2": eps[1],
            "weight_decay": weight_decay,
        }
        for name, value in wanted.items():
            if not (value is None and name == "epsilon1" or 0.0 <= value):
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        >>> import cygrad
        >>> w = cygrad.ones(1, requires_grad=True)
        >>> optimizer = cygrad.optim.Adafactor([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> bool(w < 1)
        True
        """
        loss = loss_of(closure)
        with cygrad.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._change(param, -param.grad if group["maximize"] else param.grad, group)
        return loss

    def _change(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        refuse_sparse(grad, "Adafactor")
        grad, given = widened(grad), param
        state = self.state[param] or self._first_state(param, grad)
        state["step"] += 1
        t, lr = state["step"].item(), float(group["lr"])
        eps, least = group["eps"]
        if eps is None:
            eps = cygrad.finfo(param.dtype).eps
        param = widened(param)
        size = _at_least(least, _rms(param)) * -min(lr, t**-0.5)  # a tensor, to avoid waiting for the GPU
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        update = grad / _mean_square(grad, state, t ** group["beta2_decay"], eps).clamp_(min=eps * eps).sqrt_()
        param.addcmul_(update, size / _at_least(1.0, _rms(update) / group["d"]))
        if param is not given:
            given.copy_(param)

    def _first_state(self, param: Tensor, grad: Tensor) -> dict[str, Tensor]:
        state = self.state[param]
        state["step"] = cygrad.tensor(0.0, device="cpu")
        if grad.ndim > 1:
            *others, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros((*others, rows, 1))
            state["col_var"] = grad.new_zeros((*others, 1, columns))
        else:
            state["variance"] = cygrad.zeros_like(grad)
        return state


def _rms(tensor: Tensor) -> Tensor:
    return tensor.norm().double() / tensor.numel() ** 0.5


def _at_least(least: float, number: Tensor) -> Tensor:
    """Return the larger one, or `least` where the number is NaN."""
    return number.fmax(cygrad.full_like(number, least))


def _mean_square(grad: Tensor, state: dict[str, Tensor], weight: float, eps: float) -> Tensor:
    """Update the running mean of squared gradients, the newest with this weight; return a new tensor."""
    square = grad * grad
    if grad.ndim < 2:
        return state["variance"].lerp_(square, weight).clone()
    rows = state["row_var"].lerp_(square.mean(dim=-1, keepdim=True), weight)
    columns = state["col_var"].lerp_(square.mean(dim=-2, keepdim=True), weight)
    return rows * columns / rows.mean(dim=-2, keepdim=True).clamp_(min=eps)
