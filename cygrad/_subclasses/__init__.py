"""PyTorch's tensors without memory for compilers, which programs recognize: here they have the device "meta"."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cygrad

__all__ = ["FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]


class UnsupportedFakeTensorException(RuntimeError):
    """Raised in PyTorch for tensors that cannot be made without memory."""


class _KindOfFake(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return False


class FakeTensor(metaclass=_KindOfFake):
    """A tensor without memory that claims to be on another device. There are none: `isinstance` answers False."""

    def __init__(self, *args: Any, **named: Any) -> None:
        raise TypeError('cygrad makes no such tensors: use the device "meta"')


def is_fake(x: Any) -> bool:
    """Whether a value is a `FakeTensor`: False."""
    return False


@contextmanager
def unset_fake_temporarily() -> Iterator[Any]:
    """Context manager in which new tensors have memory, also inside a `FakeTensorMode`; yields that mode, or None.

    >>> import cygrad
    >>> from cygrad._subclasses import FakeTensorMode, unset_fake_temporarily
    >>> with FakeTensorMode(), unset_fake_temporarily():
    ...     cygrad.zeros(2)
    tensor([0., 0.])
    """
    mode = _active[-1] if _active else None
    if mode is None:
        yield None
        return
    with cygrad.device(mode.outside):
        yield mode


_active: list[FakeTensorMode] = []


class FakeTensorMode:
    """A block in which new tensors have no memory.

    >>> import cygrad
    >>> with cygrad._subclasses.FakeTensorMode():
    ...     cygrad.zeros(10**6, 10**6).is_meta
    True
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, **options: Any):
        self._device = cygrad.device("meta")

    def __enter__(self) -> FakeTensorMode:
        self.outside = cygrad.get_default_device()  # where tensors are made outside of the block
        self._device.__enter__()
        _active.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _active.pop()
        self._device.__exit__(*error)

    def from_tensor(self, tensor: Any, **options: Any) -> Any:
        """Return a tensor of the same shape and dtype without memory."""
        return tensor.to("meta")


# Programs also import these names from `torch._subclasses.fake_tensor`.
fake_tensor = sys.modules[__name__]
sys.modules[f"{__name__}.fake_tensor"] = fake_tensor
