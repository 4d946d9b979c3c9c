"""What programs ask PyTorch's compiler while it traces them: nothing is traced here."""

from __future__ import annotations

from typing import Any

__all__ = ["CompileContext", "TracingContext", "active_fake_mode", "detect_fake_mode"]


class _NoContext:
    """The context of a compiler, of which there is none."""

    @classmethod
    def try_get(cls) -> None:
        """Return the context, or None outside of a compiler: always None."""

    @classmethod
    def get(cls) -> Any:
        """Return the context. Raises RuntimeError: there is none."""
        raise RuntimeError(f"{cls.__name__}.get() must be called within an ongoing trace.")


class TracingContext(_NoContext):
    """The program that a compiler is tracing."""


class CompileContext(_NoContext):
    """The compilation that is running."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return the mode in which tensors have no memory, for a compiler: None. (See the device "meta".)"""


def active_fake_mode() -> None:
    """Return the mode in which new tensors have no memory, for a compiler: None."""
