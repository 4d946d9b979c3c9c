"""`TorchDispatchMode`: sees the ops of PyTorch's library that run in a block, forward and backward, below autograd.

The ops are those of Note [Dispatch] in _core/registry/dispatch.py. Where an op here does the work of several of
PyTorch's, these are shown; docs/dispatch.md says what differs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad._core.registry import dispatch

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Base class of modes: in the block of a mode, its `__torch_dispatch__` receives the ops that run.

    It receives those of forward and backward passes, below autograd: what it returns gets the history of the op. The
    innermost mode is asked first, before the classes of the arguments; while it handles an op, it is switched off, and
    nothing is recorded.

    >>> import cygrad
    >>> class Shows(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with Shows():
    ...     (x * 3).sum().backward()
    aten.mul.Tensor
    aten.sum.default
    aten.ones_like.default
    aten.expand.default
    aten.mul.Tensor
    aten.detach.default
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of the call `func(*args, **kwargs)` of an op."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        dispatch.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        dispatch.pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return `cls(*args, **kwargs)`, as early versions of PyTorch spelled it."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode is one of PyTorch's own, which come before those of programs."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that passes each call on unchanged."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """Return the innermost dispatch mode, or None."""
    found = _get_current_dispatch_mode_stack()
    return found[-1] if found else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the dispatch modes of this thread, the innermost last."""
    return list(dispatch.modes())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a dispatch mode is active in this thread; without `include_infra_modes`, one of the program's own."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _get_current_dispatch_mode_stack())


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """In the block, no mode sees ops; the block receives the modes."""
    with dispatch.without_modes() as found:
        yield found


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """In the block, the innermost mode sees no ops; the block receives it."""
    mode = dispatch.pop()
    try:
        yield mode
    finally:
        dispatch.push(mode)


# -- subclasses that hold other tensors --


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor, or a class, says which tensors it holds: by `__tensor_flatten__` and `__tensor_unflatten__`."""
    is_tensor = isinstance(t, cygrad.Tensor) or (isinstance(t, type) and issubclass(t, cygrad.Tensor))
    return is_tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


is_traceable_wrapper_subclass_type = is_traceable_wrapper_subclass


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a tensor of the class of `t` that holds `callback(name, tensor)` for each tensor that `t` holds."""
    names, context = t.__tensor_flatten__()
    held = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(held, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return the result that `__torch_dispatch__` owes for an op: the written tensor itself for an op in place.

    `out` is what it made; for other ops it is returned as it is.
    """
    name = getattr(func, "_opname", getattr(func, "__name__", ""))
    if "out" in (kwargs or {}):
        return kwargs["out"]
    writes = name.endswith("_") and not name.endswith("__")
    return args[0] if writes and args else out
