"""Muon: momentum with orthogonalized updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.internals import array_of, arrays_for_update, memory_of, tensor_of
from cygrad._kernels.optimizer_steps import muon_momenta, muon_move
from cygrad.optim._checks import check_learning_rate, refuse_sparse
from cygrad.optim.optimizer import Optimizer, loss_of

__all__ = ["Muon"]


class Muon(Optimizer):
    """Steps along the momentum with its singular values set to about 1; for weight matrices of hidden layers.

    With g the gradient and m its running average, initially zero:

        m = momentum * m + (1 - momentum) * g
        u = (1 - momentum) * g + momentum * m           (m, without `nesterov`)
        parameter -= lr * weight_decay * parameter + lr * factor * O(u)

    O(u) is computed by `ns_steps` Newton-Schulz iterations with `ns_coefficients`, from u divided by its norm (at least
    `eps`). As in PyTorch, each intermediate matrix is rounded to bfloat16, so O(u) has two to three digits. The
    factor is sqrt(max(1, rows / columns)), or with `adjust_lr_fn="match_rms_adamw"` 0.2 * sqrt(max(rows, columns)).

    See K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.

    Raises `ValueError` for options out of range and for parameters that are not matrices.

    >>> import cygrad
    >>> w = cygrad.eye(2).requires_grad_()
    >>> optimizer = cygrad.optim.Muon([w], lr=0.1, weight_decay=0.0, ns_steps=12, ns_coefficients=(1.5, -0.5, 0.0))
    >>> (w * cygrad.tensor([[3.0, 0.0], [0.0, 5.0]])).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([[0.9000, 0.0000],
            [0.0000, 0.9000]], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor):
            check_learning_rate(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}\n"
                        "Give biases, gains and embeddings to another optimizer, such as AdamW."
                    )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        >>> import cygrad
        >>> w = cygrad.eye(2).requires_grad_()
        >>> optimizer = cygrad.optim.Muon([w], lr=0.1)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.shape
        torch.Size([2, 2])
        """
        loss = loss_of(closure)
        with cygrad.no_grad():
            for group in self.param_groups:
                alike: dict[Any, list[Tensor]] = {}  # on GPUs, matrices of equal shape are batched
                for param in group["params"]:
                    if param.grad is not None:
                        refuse_sparse(param.grad, "Muon")
                        key = (param.device, param.dtype, param.shape) if param.is_cuda else param
                        alike.setdefault(key, []).append(param)
                for params in alike.values():
                    self._change(params, group)
        return loss

    def _change_together(self, params: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of one shape and type on a GPU."""
        averages = [self._average(param) for param in params]
        grads = [array_of(param.grad) for param in params if param.grad is not None]
        arrays = arrays_for_update([*params, *averages])
        momenta = muon_momenta(grads, arrays[len(params) :], float(group["momentum"]), bool(group["nesterov"]))
        found = orthogonalized(tensor_of(momenta), group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr, factor = float(group["lr"]), _factor(params[0], group["adjust_lr_fn"])
        updates = list(memory_of(found))
        muon_move(arrays[: len(params)], updates, 1 - lr * group["weight_decay"], lr * factor)

    def _change(self, params: list[Tensor], group: dict[str, Any]) -> None:
        if params[0].is_cuda:
            self._change_together(params, group)
            return
        for param in params:
            update = orthogonalized(
                self._update(param, group), group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            lr, factor = float(group["lr"]), _factor(param, group["adjust_lr_fn"])
            param.mul_(1 - lr * group["weight_decay"])
            param.sub_(update, alpha=lr * factor)

    def _average(self, param: Tensor) -> Tensor:
        """Return the running average of a parameter's gradients, zeros at first."""
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state = self.state[param]
        if not state:
            assert param.grad is not None
            state["momentum_buffer"] = cygrad.zeros_like(param.grad)
        average: Tensor = state["momentum_buffer"]
        return average

    def _update(self, param: Tensor, group: dict[str, Any]) -> Tensor:
        """Update the momentum with the gradient and return the matrix to orthogonalize."""
        grad, average, momentum = param.grad, self._average(param), group["momentum"]
        assert grad is not None
        average.lerp_(grad, 1 - momentum)
        return grad.lerp(average, momentum) if group["nesterov"] else average


def _factor(param: Tensor, adjust_lr_fn: str | None) -> float:
    rows, columns = param.shape
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def orthogonalized(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return matrices with singular values of about 1; each step maps s to a*s + b*s**3 + c*s**5."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    is_tall = matrix.shape[-2] > matrix.shape[-1]
    if matrix.is_cuda and _has_bfloat16():
        x = _on_tensor_cores(matrix.mT if is_tall else matrix, a, b, c, steps, eps)
        return (x.mT if is_tall else x).to(matrix.dtype)
    x = _rounded((matrix.mT if is_tall else matrix).float())
    x = _rounded(x / _rounded(x.norm(dim=(-2, -1), keepdim=True)).clamp(min=eps))
    for _ in range(steps):
        square = _rounded(x @ x.mT)
        change = _rounded(b * square + c * (square @ square))
        x = _rounded(a * x + change @ x)
    return (x.mT if is_tall else x).to(matrix.dtype)


def _has_bfloat16() -> bool:
    """Whether the GPU multiplies bfloat16, and there is the package for it."""
    return cygrad.cuda.is_bf16_supported(including_emulation=False) and find_spec("ml_dtypes") is not None


def _on_tensor_cores(matrix: Tensor, a: float, b: float, c: float, steps: int, eps: float) -> Tensor:
    """Return the same in bfloat16, three products for each step, which add and round as well."""
    x = matrix.bfloat16()
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=eps)
    sum_with_product = cygrad.baddbmm if x.ndim == 3 else cygrad.addmm
    for _ in range(steps):
        square = x @ x.mT
        change = sum_with_product(square, square, square, beta=b, alpha=c)
        x = sum_with_product(x, change, x, beta=a)
    return x


def _rounded(x: Tensor) -> Tensor:
    """Round float32 to the precision of bfloat16, to even on ties, without the package that bfloat16 needs."""
    bits = x.contiguous().view(cygrad.int32)
    rounded = ((bits + ((bits >> 16) & 1) + 0x7FFF) & -0x10000).view(cygrad.float32)
    return cygrad.where(x == x, rounded, x)  # NaN stays NaN
