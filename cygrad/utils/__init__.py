"""Small utilities shared by several parts of the library."""

from importlib import import_module as _import_module

from cygrad.utils import dlpack, hooks, interop
from cygrad.utils._names import typename

__all__ = ["dlpack", "hooks", "interop", "typename"]

_ON_FIRST_USE = {"checkpoint", "data", "model_zoo", "scipy", "tensorboard"}  # slow, or optional dependencies
_ON_FIRST_USE |= {"_contextlib", "_foreach_utils", "benchmark", "cpp_extension", "deterministic", "weak"}  # rarely needed


def __getattr__(name):
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'cygrad.utils' has no attribute {name!r}")
    return _import_module(f"cygrad.utils.{name}")


def __dir__():
    return sorted({*globals(), *_ON_FIRST_USE})
