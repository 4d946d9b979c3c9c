"""`TorchFunctionMode`: sees every call of a public function in a block, whatever its arguments are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad._core.graph.opdef import has_modes, is_taken
from cygrad._core.registry import function_modes


class TorchFunctionMode:
    """Base class of modes: in the block of a mode, its `__torch_function__` receives the calls of public functions.

    It receives functions that make tensors, methods and operators, too, with plain tensors as well as with those of
    subclasses. The innermost mode is asked first, before the classes of the arguments. While it handles a call, it is
    switched off; a call that it makes goes to the mode outside it. It sees the attributes of tensors as functions:
    `x.shape` as `Tensor.shape.__get__`.

    >>> import cygrad
    >>> class Doubles(cygrad.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         kwargs = dict(kwargs or {})
    ...         if func is cygrad.zeros:
    ...             kwargs["dtype"] = cygrad.float64
    ...         return func(*args, **kwargs)
    >>> with Doubles():
    ...     cygrad.zeros(2)
    tensor([0., 0.], dtype=torch.float64)
    >>> type(Doubles.push()).__name__
    'Doubles'
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of the call `func(*args, **kwargs)`, or NotImplemented to leave it to `types`."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        function_modes.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        function_modes.pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return `cls(*args, **kwargs)`, as early versions of PyTorch spelled it."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that passes each call on unchanged.

    >>> import cygrad
    >>> with cygrad.overrides.BaseTorchFunctionMode():
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """In the block, classes override calls even inside a call that was passed on to `Tensor.__torch_function__`.

    >>> import cygrad
    >>> from cygrad.overrides import enable_reentrant_dispatch
    >>> with enable_reentrant_dispatch():
    ...     cygrad.ones(2) + 1
    tensor([2., 2.])
    """
    before = is_taken(False)
    try:
        yield
    finally:
        is_taken(before)


def _push_mode(mode: Any) -> None:
    function_modes.push(mode)


def _pop_mode() -> Any:
    return function_modes.pop()


def _pop_mode_temporarily() -> Any:
    return function_modes.without_innermost()


def _get_current_function_mode() -> Any:
    found = function_modes.modes()
    return found[-1] if found else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(function_modes.modes())


def _len_torch_function_stack() -> int:
    return len(function_modes.modes())


def _is_torch_function_mode_enabled() -> bool:
    return has_modes()
