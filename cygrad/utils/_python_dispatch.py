"""`TorchDispatchMode`: sees calls as the ops of PyTorch's library that they stand for, such as `aten.add.default`.

Ops call each other in C here, so that a mode sees the calls of public functions, methods and operators, not the ops
that these consist of: a linear layer is `aten.linear.default`. Functions without an op of their name run unseen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cygrad
from cygrad.ops import OpOverload
from cygrad.overrides import TorchFunctionMode, _get_current_function_mode_stack

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Base class of modes: in the block of a mode, its `__torch_dispatch__` receives the calls of ops.

    While it handles a call, it is switched off.

    >>> import cygrad
    >>> class Shows(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Shows():
    ...     _ = cygrad.ones(2) * 3
    aten.ones.default
    aten.mul.default
    """

    _entered: list[Any]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of the call `func(*args, **kwargs)` of an op."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        self.__dict__.setdefault("_entered", []).append(_Adapter(self))
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)

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


class _Adapter(TorchFunctionMode):
    """Passes the calls of functions to a dispatch mode, as ops."""

    def __init__(self, mode: TorchDispatchMode) -> None:
        self.mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        op = op_of(func)
        if op is None:
            return func(*args, **(kwargs or {}))
        rule = getattr(op, "dispatch", {}).get(type(self.mode))
        if rule is not None:
            return rule(self.mode, op, types, args, kwargs or {})
        return self.mode.__torch_dispatch__(op, types, args, kwargs or {})


def op_of(function: Callable[..., Any]) -> OpOverload | None:
    """Return the op that a function stands for, or None."""
    if isinstance(function, OpOverload):
        return function
    name = function.__name__
    if name.startswith("__") or name in _NO_OPS:
        return None
    packet = getattr(cygrad.ops.aten, name, None)
    return None if packet is None else packet.default


_NO_OPS = frozenset("backward dim item numel numpy size stride tolist is_floating_point is_contiguous".split())


def _get_current_dispatch_mode() -> Any:
    """Return the innermost dispatch mode, or None."""
    found = _get_current_dispatch_mode_stack()
    return found[-1] if found else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """Return the dispatch modes of this thread, the innermost last."""
    return [mode.mode for mode in _get_current_function_mode_stack() if isinstance(mode, _Adapter)]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a dispatch mode is active in this thread."""
    return bool(_get_current_dispatch_mode_stack())


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """In the block, no mode sees calls; the block receives the dispatch modes."""
    found = _get_current_dispatch_mode_stack()
    with cygrad._C.DisableTorchFunction():
        yield found


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
