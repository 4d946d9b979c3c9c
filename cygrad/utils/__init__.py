"""Small utilities shared by several parts of the library."""

from _weakref import getweakrefs as _getweakrefs
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from cygrad import Tensor
from cygrad._core.graph.internals import swap as _swap
from cygrad.utils import dlpack, hooks, interop
from cygrad.utils._names import typename

if TYPE_CHECKING:
    from cygrad.utils import benchmark as benchmark
    from cygrad.utils import checkpoint as checkpoint
    from cygrad.utils import cpp_extension as cpp_extension
    from cygrad.utils import data as data
    from cygrad.utils import flop_counter as flop_counter
    from cygrad.utils import model_zoo as model_zoo
    from cygrad.utils import tensorboard as tensorboard
    from cygrad.utils import weak as weak

__all__ = ["dlpack", "hooks", "interop", "swap_tensors", "typename"]

_ON_FIRST_USE = {"checkpoint", "data", "model_zoo", "scipy", "tensorboard"}  # slow, or optional dependencies
_ON_FIRST_USE |= {"_contextlib", "_foreach_utils", "benchmark", "cpp_extension", "deterministic", "weak"}  # rare
_ON_FIRST_USE |= {"_import_utils", "_mode_utils", "_python_dispatch", "_pytree", "flop_counter", "module_tracker"}
_ON_FIRST_USE |= {"_device", "_traceback", "collect_env"}


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange what two tensors hold (elements, gradient, history and attributes); each remains the same object.

    They exchange their classes as well. Raises RuntimeError for classes whose objects have different slots (such as
    `Tensor` and any other class), and where a weak reference would see another tensor.

    >>> import cygrad
    >>> a, b = cygrad.ones(2), cygrad.zeros(1)
    >>> cygrad.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0.]), tensor([1., 1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors(): {name} must be Tensor, not {type(tensor).__name__}")
        if _getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if type(t1) is not type(t2):
        _swap_classes(t1, t2)
    _swap(t1, t2)


def _swap_classes(t1: Tensor, t2: Tensor) -> None:
    first, second = type(t1), type(t2)
    try:
        t1.__class__ = second
        t2.__class__ = first
    except TypeError as error:  # before anything has changed, since each class fits or fails in either direction
        raise RuntimeError(
            f"Cannot swap t1 and t2 if they have different slots, as {first} and {second} have"
        ) from error


def __getattr__(name):
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'cygrad.utils' has no attribute {name!r}")
    return _import_module(f"cygrad.utils.{name}")


def __dir__():
    return sorted({*globals(), *_ON_FIRST_USE})
