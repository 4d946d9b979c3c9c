"""Stubs for programs that use `torch.compile`: nothing is compiled here (see `cygrad.compile`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from cygrad._core.runtime.settings import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "load_cache_artifacts", "load_compiled_function",
    "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether this call is being compiled: always False."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether this call is being compiled: always False."""
    return False


def is_exporting() -> bool:
    """Whether this call is being exported: always False."""
    return False


# -- marks on functions --


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function unchanged, or a decorator if none is given.

    >>> import cygrad
    >>> @cygrad.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(2)
    4
    """
    return fn if fn is not None else lambda wrapped: wrapped


def allow_in_graph(fn: Any) -> Any:
    """Return a function unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Mark a function as one whose result never changes: returns it unchanged."""
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Any:
    """Return a decorator for a Python function that compiled code calls in place of `original_fn`: without effect."""
    return lambda traceable_fn: traceable_fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function as one to compile once and use often: returns it unchanged, or a decorator."""
    return fn if fn is not None else lambda wrapped: wrapped


def wrap_numpy(fn: Any) -> Any:
    """Return a function that takes and returns tensors, from one of NumPy arrays.

    Arrays among the arguments and results may be in tuples, lists and dictionaries. Gradients do not pass through.

    >>> import cygrad, numpy
    >>> twice = cygrad.compiler.wrap_numpy(lambda array: numpy.concatenate([array, array]))
    >>> twice(cygrad.ones(1))
    tensor([1., 1.])
    """
    import cygrad  # which imports this module
    from cygrad.func.trees import mapped  # needed only here

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        def to_array(x):
            return x.numpy() if isinstance(x, cygrad.Tensor) else x

        def to_tensor(x):
            return cygrad.as_tensor(x) if isinstance(x, np.ndarray | np.generic) else x

        return mapped(to_tensor, fn(*mapped(to_array, args), **mapped(to_array, kwargs)))

    return wrapped


# -- switches --


class set_stance(ContextDecorator):
    """Set what to do with functions that are not compiled yet; a context manager and decorator too. Without effect.

    Raises RuntimeError for a word that PyTorch does not know.
    """

    _STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                "fail_on_recompile")  # fmt: skip

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: str | None = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'\n  one of {', '.join(self._STANCES)}")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def reset() -> None:
    """Discard compiled code: a no-op."""


def cudagraph_mark_step_begin() -> None:
    """Tell where a step of training or inference begins: a no-op."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Let processes agree on when to compile anew: without effect. Returns the previous setting, False."""
    return False


# -- back ends --


def list_backends(exclude_tags: Sequence[str] = ("debug", "experimental")) -> list[str]:
    """Return the names of the compilers: there are none."""
    return []


_default_backend = ["inductor"]


def set_default_backend(backend: str) -> None:
    """Keep the name of the back end for calls of `compile` that name none, which nothing reads. None resets it."""
    _default_backend[0] = "inductor" if backend is None else backend


def get_default_backend() -> str:
    """Return the argument of `set_default_backend`, or "inductor"."""
    return _default_backend[0]


# -- compiled code in files --


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> Any:
    """Raises RuntimeError: compiled code cannot be run."""
    raise _no_compiler(
        "compiler.load_compiled_function", "call the function that was compiled: it runs as it is written"
    )


def save_cache_artifacts() -> Any:
    """Return what compilations have put into caches: None, as there are none."""
    return None


def load_cache_artifacts(serialized_artifacts: Any) -> Any:
    """Fill caches with what `save_cache_artifacts` returned elsewhere: does nothing, and returns None."""
    return None


def _no_compiler(name, advice):
    """Return the error of a function that needs a compiler, also one of `_dynamo` and `_inductor`."""
    return RuntimeError(f"torch.{name}: cygrad does not compile programs\n  {advice}")
