"""Gradient clipping, by norm or by value."""

from __future__ import annotations

import types
from collections.abc import Iterable

import cygrad
from cygrad import Tensor
from cygrad.utils.warning import warn

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


@cygrad.no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm over all elements of all tensors, as a 0-dim tensor (0 if there are none).

    It is (sum of |x|^norm_type)^(1/norm_type) over all elements.

    `norm_type` is the order, `inf` included. With `error_if_nonfinite` an infinite or NaN norm raises
    `RuntimeError`. `foreach` is accepted and has no effect. Not recorded.

    >>> import cygrad
    >>> cygrad.nn.utils.get_total_norm([cygrad.tensor([3.0]), cygrad.tensor([[4.0]])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return cygrad.tensor(0.0)
    norms = [cygrad.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
    total = cygrad.linalg.vector_norm(cygrad.stack(norms), norm_type)
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`" + _first_nonfinite(tensors)
        )
    return total


def _first_nonfinite(tensors: list[Tensor]) -> str:
    for i, tensor in enumerate(tensors):
        count = tensor.numel() - int(tensor.isfinite().sum().item())
        if count:
            return f"\nGradient {i}, of shape {tuple(tensor.shape)}, is the first with such elements: {count} of them."
    return "\nEach element is finite, but their powers overflow."


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale all gradients by `max_norm / (total_norm + 1e-6)`, if that is less than 1.

    `total_norm` comes from `get_total_norm`; if it is less than `max_norm`, nothing changes.

    >>> import cygrad
    >>> w = cygrad.nn.Parameter(cygrad.zeros(2))
    >>> w.grad = cygrad.tensor([3.0, 4.0])
    >>> cygrad.nn.utils.clip_grads_with_norm_(w, 1.0, cygrad.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    _scale(_gradients(parameters), float(max_norm), total_norm)


_get_total_norm, _clip_grads_with_norm_ = get_total_norm, clip_grads_with_norm_  # their names in PyTorch 2.6


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their joint norm is at most `max_norm`; return the norm that they had.

    The common factor is `min(1, max_norm / (norm + 1e-6))`.

    See `get_total_norm` for the options. Parameters without a gradient are ignored.

    >>> import cygrad
    >>> w = cygrad.nn.Parameter(cygrad.zeros(2))
    >>> w.grad = cygrad.tensor([3.0, 4.0])
    >>> cygrad.nn.utils.clip_grad_norm_([w], max_norm=1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    is_generator = isinstance(parameters, types.GeneratorType)
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if is_generator and not parameters:
        warn(
            "`parameters` is an empty generator, no gradient clipping will occur.\n"
            "A generator yields its parameters once: call `model.parameters()` again for each use."
        )
    grads = _gradients(parameters)
    total = _joint_norm(parameters, float(norm_type))
    if total is None:
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
    elif error_if_nonfinite:
        get_total_norm(total, norm_type, True)
    _scale(grads, float(max_norm), total)
    return total


@cygrad.no_grad()
def _joint_norm(parameters: list[Tensor], norm_type: float) -> Tensor | None:
    """The norm over all processes, if these have parts of the parameters (`fully_shard`), else None."""
    if not any(hasattr(parameter, "_spec") for parameter in parameters):
        return None
    from cygrad.distributed.tensor._sharded_parameter import joint_norm  # few programs shard parameters

    return joint_norm(parameters, norm_type)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated alias of `clip_grad_norm_`.

    Warns with FutureWarning.

    >>> import cygrad
    >>> from cygrad import nn
    >>> import warnings
    >>> w = cygrad.ones(4, requires_grad=True)
    >>> w.sum().backward()
    >>> with warnings.catch_warnings(action="ignore"):
    ...     norm = nn.utils.clip_grad_norm(w, 1.0)
    >>> norm, w.grad
    (tensor(2.), tensor([0.5000, 0.5000, 0.5000, 0.5000]))
    """
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@cygrad.no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of all gradients to [-clip_value, clip_value].

    >>> import cygrad
    >>> w = cygrad.nn.Parameter(cygrad.zeros(2))
    >>> w.grad = cygrad.tensor([-3.0, 0.5])
    >>> cygrad.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    for grad in _gradients(parameters):
        grad.clamp_(-bound, bound)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


@cygrad.no_grad()
def _scale(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    # Multiply even if the factor is 1, so that a NaN norm shows up in every gradient.
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor)
