"""The helpers of PyTorch's `torch._utils` that libraries use: devices by index, flat tensors, errors of workers."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, TypeVar

import cygrad
from cygrad import Tensor
from cygrad._C._nn import flatten_dense_tensors as _flatten_dense_tensors
from cygrad._C._nn import unflatten_dense_tensors as _unflatten_dense_tensors

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "_flatten_dense_tensors", "_unflatten_dense_tensors", "classproperty"]

T = TypeVar("T")


def is_compiling() -> bool:
    """Whether the program is being compiled: always False."""
    return cygrad.compiler.is_compiling()


def cpu_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _import_dotted_name(name: str) -> Any:
    """Return what a name such as "torch.nn.Linear" or "package.module.name" stands for."""
    first, *rest = name.split(".")
    found = cygrad if first == "torch" else import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def _element_size(dtype: Any) -> int:
    """Return the number of bytes of an element. Raises RuntimeError for anything but a dtype."""
    if not isinstance(dtype, cygrad.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


# -- devices --


def _get_available_device_type() -> str | None:
    """Return the kind of the accelerator, or None if there is none."""
    return "cuda" if cygrad.cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return the module of a kind of device. Raises RuntimeError if there is none of its name."""
    module = getattr(cygrad, device_type, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return module


def _get_all_device_indices() -> list[int] | None:
    """Return the indices of all accelerators, or None if there are none."""
    return list(range(cygrad.cuda.device_count())) if cygrad.cuda.is_available() else None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a device given as an index, a device or its name; -1 for the CPU.

    With `optional`, the current accelerator stands for None and for devices without an index. Raises ValueError if
    there is no index, or for the CPU unless `allow_cpu`.

    >>> import cygrad
    >>> cygrad._utils._get_device_index("cuda:1"), cygrad._utils._get_device_index("cpu", allow_cpu=True)
    (1, -1)
    """
    if isinstance(device, str):
        device = cygrad.device(device)
    index = device if isinstance(device, int) and not isinstance(device, bool) else None
    if isinstance(device, cygrad.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if index is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        index = cygrad.cuda.current_device()
    return index


# -- tensors --


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yield the tensors in lists of one dtype and of about that many bytes."""
    open_lists: dict[str, list[Tensor]] = {}
    sizes: dict[str, int] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        if open_lists.get(kind) and sizes[kind] + size > size_limit:
            yield open_lists.pop(kind)
            sizes[kind] = 0
        open_lists.setdefault(kind, []).append(tensor)
        sizes[kind] = sizes.get(kind, 0) + size
    yield from (each for each in open_lists.values() if each)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return tensors, grouped by dtype, in the order of the dtypes of `ordered_tensors`."""
    by_kind: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        by_kind.setdefault(tensor.type(), []).append(tensor)
    waiting = {kind: iter(group) for kind, group in by_kind.items()}
    return tuple(next(waiting[tensor.type()]) for tensor in ordered_tensors)


def _handle_complex(tensor: Any) -> Any:
    """Return a complex tensor as one of real and imaginary parts, and other values as they are."""
    is_complex = isinstance(tensor, Tensor) and tensor.is_complex()
    return cygrad.view_as_real(tensor) if is_complex else tensor


def render_call(fn: Callable, args: tuple, kwargs: dict) -> str:
    """Return a call as text, with tensors by their shapes.

    >>> import cygrad
    >>> cygrad._utils.render_call(cygrad.add, (cygrad.ones(2), 1), {"alpha": 2})
    'torch.add(tensor([...], size=(2,)), 1, alpha=2)'
    """
    parts = [*map(_rendered, args), *(f"{name}={_rendered(value)}" for name, value in kwargs.items())]
    name = getattr(fn, "__name__", str(fn))
    return f"torch.{name}({', '.join(parts)})"


def _rendered(value: Any) -> str:
    return f"tensor([...], size={tuple(value.shape)})" if isinstance(value, Tensor) else repr(value)


# -- errors of workers --


class KeyErrorMessage(str):
    """A string whose repr, which KeyError shows, keeps line breaks."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception in a thread or a process, as text, to be raised elsewhere."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        info: Any = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = info[0]
        self.exc_msg = "".join(traceback.format_exception(*info))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type, whose text contains the original traceback."""
        msg = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            msg = KeyErrorMessage(msg)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=msg)
        try:
            exception = self.exc_type(msg)
        except Exception:  # its constructor takes other arguments
            raise RuntimeError(msg) from None
        raise exception


class classproperty(Generic[T]):
    """A property of a class."""

    def __init__(self, fget: Callable[[Any], T]) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> T:
        return self.fget(owner if owner is not None else type(instance))


# -- what files of tensors name --


def __getattr__(name: str) -> Any:
    if name.startswith("_rebuild"):
        from cygrad.serialization import _rebuilding  # needed only for these

        if f"torch._utils.{name}" in _rebuilding.FUNCTIONS:
            return _rebuilding.FUNCTIONS[f"torch._utils.{name}"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
