"""The default device of a block or a function, by the names under which PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cygrad
from cygrad.utils._contextlib import context_decorator

__all__ = ["DeviceContext", "device_decorator", "set_device"]


class DeviceContext:
    """A block in which new tensors are on this device by default.

    >>> import cygrad
    >>> with DeviceContext("meta"):
    ...     cygrad.ones(2).device
    device(type='meta')
    """

    def __init__(self, device: Any) -> None:
        self.device = cygrad.device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.device.__exit__(*error)


def device_decorator(device: Any, func: Callable) -> Callable:
    """Wrap a function so that it runs in the block `device`, or that `device()` returns."""
    return context_decorator(device, func)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """Return a decorator: the function makes its tensors on this device by default.

    >>> import cygrad
    >>> @set_device("meta")
    ... def layer():
    ...     return cygrad.nn.Linear(2, 3)
    >>> layer().weight.device
    device(type='meta')
    """
    where = cygrad.device(device)
    return lambda func: context_decorator(where, func)
