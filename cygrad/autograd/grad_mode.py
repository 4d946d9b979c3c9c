"""Grad modes: whether this thread records operations.

Each mode is a context manager and a decorator of functions, generator functions, coroutine functions and
asynchronous generator functions. Around generators and coroutines it applies only while they run, not while they are
suspended.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import set_version
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.in_contexts import in_context
from cygrad._core.runtime.interrupt_safe import Block
from cygrad._core.runtime.thread_state import IN_RULE, INFERENCE, NO_GRAD, get_modes, set_modes

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_F = TypeVar("_F", bound=Callable[..., Any])


class _Switches(threading.local):
    count = 0  # how often this thread has disabled recording


switches = _Switches()


def is_grad_enabled() -> bool:
    """Whether this thread records operations.

    >>> import cygrad
    >>> with cygrad.no_grad():
    ...     cygrad.is_grad_enabled()
    False
    """
    return not get_modes() & NO_GRAD


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode()`.

    >>> import cygrad
    >>> with cygrad.inference_mode():
    ...     cygrad.is_inference_mode_enabled()
    True
    """
    return bool(get_modes() & INFERENCE)


class _Mode(Block):
    """A context manager and decorator that changes the thread's mode bits."""

    def _bits(self, modes: int) -> int:
        """Return the thread's new bits, given the old ones."""
        raise TypeError(f"{type(self).__name__} sets no mode")

    def clone(self) -> Any:
        """Return a fresh instance; each call of a decorated function uses one."""
        return type(self)()

    def _plan(self):
        former = get_modes()
        bits = self._bits(former)
        if bits & NO_GRAD and not former & NO_GRAD:
            switches.count += 1
        return set_modes, bits, former

    def __call__(self, fn: _F) -> _F:
        return _decorated(fn, self.clone)


class _BareDecorator(_Mode):
    """A mode without arguments: `@no_grad` is equivalent to `@no_grad()`."""

    @overload
    def __new__(cls, fn: None = None) -> Self: ...

    @overload
    def __new__(cls, fn: _F) -> _F: ...  # type: ignore[misc]

    def __new__(cls, fn: Any = None) -> Any:
        return super().__new__(cls) if fn is None else _decorated(fn, cls)


class no_grad(_BareDecorator):
    """Disable recording: results have requires_grad=False, and in-place changes of leaves are allowed.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def _bits(self, modes):
        return modes | NO_GRAD


class enable_grad(_BareDecorator):
    """Enable recording again, inside `no_grad`; a context manager and a decorator.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad():
    ...     with cygrad.enable_grad():
    ...         (x * 2).requires_grad
    True
    """

    def _bits(self, modes):
        return modes & ~(NO_GRAD | IN_RULE)  # a saved-tensor hook may run inside a rule


class set_grad_enabled(_Mode):
    """Enable or disable recording: immediately, and as a context manager until the end of the block.

    >>> import cygrad
    >>> with cygrad.set_grad_enabled(False):
    ...     cygrad.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise messages.wrong_type("set_grad_enabled", "enabled", 1, "bool", mode)
        self.mode = mode
        self._former = get_modes()
        if not mode:
            switches.count += 1
        set_modes(self._bits(self._former))

    def _bits(self, modes):
        return modes & ~(NO_GRAD | IN_RULE) if self.mode else modes | NO_GRAD

    def _plan(self):
        return set_modes, self._bits(get_modes()), self._former

    def __call__(self, fn: _F) -> _F:
        set_modes(self._former)  # as a decorator it has no immediate effect
        return _decorated(fn, self.clone)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """Return a fresh instance; creating it switches grad mode immediately.

        >>> import cygrad
        >>> with cygrad.set_grad_enabled(True).clone():
        ...     cygrad.is_grad_enabled()
        True
        """
        return set_grad_enabled(self.mode)


class inference_mode(_Mode):
    """Like `no_grad`, but results are inference tensors: they have no version counter and can never be recorded.

    >>> import cygrad
    >>> with cygrad.inference_mode():
    ...     cygrad.ones(2).is_inference()
    True
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...

    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else _decorated(mode, cls)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def _bits(self, modes):
        return modes | INFERENCE | NO_GRAD if self.mode else modes & ~(INFERENCE | NO_GRAD)

    def clone(self) -> inference_mode:
        """Return a fresh instance.

        >>> import cygrad
        >>> with cygrad.inference_mode().clone():
        ...     cygrad.is_inference_mode_enabled()
        True
        """
        return inference_mode(self.mode)


class _Granted(_Mode):
    """A mode that must be requested in PyTorch, and which is always or never active here."""

    _asked = ""  # PyTorch's function, named in errors

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise messages.wrong_type(self._asked, "enabled", 1, "bool", mode)
        self.mode = mode

    def _bits(self, modes):
        return modes

    def clone(self) -> Self:
        """Return a fresh instance."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Granted):
    """For programs that ask PyTorch to run backward in the calling thread, which is always the case here.

    >>> import cygrad
    >>> x = cygrad.ones(1, requires_grad=True)
    >>> with cygrad.autograd.set_multithreading_enabled(False):
    ...     (x * 2).backward()
    """

    _asked = "set_multithreading_enabled"


class enforce_grad_layout_policy(_Granted):
    """For programs that let PyTorch lay out gradients unlike their leaves; here they always have the leaf's layout.

    >>> import cygrad
    >>> x = cygrad.ones(2, 3).t().requires_grad_()
    >>> with cygrad.autograd.enforce_grad_layout_policy(False):
    ...     x.backward(cygrad.ones(3, 2))
    >>> x.grad.stride()
    (1, 3)
    """

    _asked = "set_grad_layout_enforcement_enabled"

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


# -- decorating --


class _unsafe_preserve_version_counter(_Mode):
    """A block that hides changes of tensors from the check of saved tensors: their version counters do not move."""

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple(tensor._version for tensor in self.tensors)

    def clone(self) -> Self:
        """Return an instance for one more block."""
        return type(self)(self.tensors)

    def _put_back(self, versions):
        for tensor, version in zip(self.tensors, versions, strict=True):
            set_version(tensor, version)

    def _plan(self):
        return self._put_back, self.prev_versions, self.prev_versions


def _decorated(fn, mode):
    """Wrap `fn` so that it runs under `mode()`."""
    if inspect.isclass(fn):
        warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
        )
        setattr(fn, "__init__", _decorated(fn.__init__, mode))  # noqa: B010  (to mypy a plain assignment is wrong)
        return fn
    return in_context(mode, fn)
