"""Checks that raise unless a condition holds: `_assert`, `_check` and their kind."""

from collections.abc import Callable
from typing import Any

from cygrad._core.errors.sites import warn
from cygrad._core.graph.tensor import Tensor
from cygrad._core.registry import torch_function
from cygrad._core.types import dtypes

_UNEXPLAINED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)
_Message = Callable[[], Any] | None


def _assert(condition: Any, message: str) -> Any:
    """Raise AssertionError with this message unless the condition, a bool or a tensor of one element, holds."""
    if type(condition) not in (bool, Tensor) and torch_function.overrides(condition):
        return torch_function.call(_assert, (condition, message), {})
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError if the only element of a tensor is zero."""
    if not isinstance(input, Tensor):
        kind = type(input).__name__
        raise TypeError(f"_assert_async(): argument 'input' (position 1) must be Tensor, not {kind}")
    if not input:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _raise(error_type: type[Exception], message: _Message) -> None:
    is_error = isinstance(error_type, type) and issubclass(error_type, Exception)
    if not is_error or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a subclass of Exception but not Warning, got {error_type}")
    if message is None:
        raise error_type(_UNEXPLAINED)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check_with(error_type: type[Exception], cond: bool, message: _Message) -> None:
    """Raise `error_type` with the text that `message()` returns unless `cond` is True.

    Raises TypeError if `cond` is not a bool.
    """
    from cygrad._symbolic import SymBool  # which few programs need

    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
            "that all elements are true."
        )
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _raise(error_type, message)


def _check(cond: bool, message: _Message = None) -> None:
    """Raise RuntimeError unless `cond` is True.

    >>> import cygrad as torch
    >>> torch._check(2 > 1, lambda: "never read")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: _Message = None) -> None:
    """Raise IndexError unless `cond` is True."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: _Message = None) -> None:
    """Raise ValueError unless `cond` is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: _Message = None) -> None:
    """Raise TypeError unless `cond` is True."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: _Message = None) -> None:
    """Raise NotImplementedError unless `cond` is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless 0 <= i, and i <= max if `max` is given. Deprecated by PyTorch: use `_check(i >= 0)`."""
    warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use _check(i "
        ">= 0) instead.",
        FutureWarning,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: _Message = None) -> None:
    """Raise `error_type` unless all elements of `cond`, a tensor of dtype bool, are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.by_name()["bool"]:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond.all():
        _raise(error_type, message)


def _check_tensor_all(cond: Tensor, message: _Message = None) -> None:
    """Raise RuntimeError unless all elements of `cond`, a tensor of dtype bool, are True."""
    _check_tensor_all_with(RuntimeError, cond, message)
