"""`compile`, and what programs for PyTorch's compiler use besides.

A compiled function runs as it is written at first. Then its calls are replayed: the kernels that it launched are
launched again, without Python, as long as all that the function reads is as it was; docs/compile.md tells what that is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any

from cygrad.compiler import _backends, _settings
from cygrad.compiler._numpy import wrap_numpy

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "load_cache_artifacts", "load_compiled_function",
    "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = "cygrad",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return a function or module whose calls are replayed without Python where that gives the same bits.

    Compile a whole step if you can: forward, `backward()` and the optimizer's `step()`. The first calls run as they are
    written; a call whose function reads or changes what cannot be guarded always does. Without `model`, a decorator.

    With `fullgraph`, what prevents replaying raises `cygrad.errors.GraphBreak`. `options={"check": n}` does each n-th
    call both ways and compares the bits. Names of PyTorch's back ends and modes are taken: "eager" replays nothing, the
    others do what "cygrad" does; a function is not called. `dynamic` is taken: new shapes need three calls each; so
    are `name`, `recompile_limit`, `isolate_recompiles` and `shapes_spec`. With `disable`, the model is returned as is.

    Raises RuntimeError for a mode or option that PyTorch does not know, and `InvalidBackend`, which is one, for a back
    end.

    >>> import cygrad
    >>> @cygrad.compile
    ... def double(x):
    ...     return 2 * x
    >>> [double(cygrad.full((2,), float(i))).tolist() for i in range(4)]
    [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    """
    _backends.check_mode(mode, options)
    if model is None:
        return functools.partial(_compile, fullgraph=fullgraph, backend=backend, options=options, disable=disable)
    return _compile(model, fullgraph, backend, options, disable)


def _compile(model, fullgraph, backend, options, disable):
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    chosen = _backends.checked_options(options)
    replays = _backends.replays(get_default_backend() if backend is None else backend)
    from cygrad.compiler import _wrapping  # only programs that compile need it

    return _wrapping.wrapped(model, replays, fullgraph, chosen["check"])


def is_compiling() -> bool:
    """Whether a compiled function is running: True in all that it calls, also where it runs as it is written.

    >>> import cygrad
    >>> def where(x):
    ...     return cygrad.compiler.is_compiling()
    >>> where(1), cygrad.compile(where)(1)
    (False, True)
    """
    return _settings.is_running()


def is_dynamo_compiling() -> bool:
    """Whether a compiled function is running: the same as `is_compiling`.

    >>> import cygrad
    >>> cygrad.compiler.is_dynamo_compiling()
    False
    """
    return _settings.is_running()


def is_exporting() -> bool:
    """Whether this call is being exported: always False.

    >>> import cygrad
    >>> cygrad.compiler.is_exporting()
    False
    """
    return False


# -- marks on functions --


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function or module that prevents the replay of what calls it, or a decorator if none is given.

    Python runs it in each call, and with it all of the compiled function around it. Compiled functions that it calls
    itself are replayed.

    >>> import cygrad
    >>> @cygrad.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(2)
    4
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    from cygrad.compiler import _wrapping  # only programs that compile need it

    return _wrapping.disabled(fn, recursive, reason)


def allow_in_graph(fn: Any) -> Any:
    """Return a function unchanged.

    >>> import cygrad
    >>> @cygrad.compiler.allow_in_graph
    ... def double(x):
    ...     return x * 2
    >>> double(3)
    6
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Mark a function as one whose result never changes: returns it unchanged.

    >>> import cygrad
    >>> @cygrad.compiler.assume_constant_result
    ... def size():
    ...     return 128
    >>> size()
    128
    """
    return fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Any:
    """Return a decorator for a Python function that compiled code calls in place of `original_fn`: without effect.

    >>> import cygrad
    >>> def slow(n):
    ...     return sum(range(n))
    >>> @cygrad.compiler.substitute_in_graph(slow)
    ... def fast(n):
    ...     return n * (n - 1) // 2
    >>> fast(4)
    6
    """
    return lambda traceable_fn: traceable_fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function as one to compile once and use often: returns it unchanged, or a decorator.

    >>> import cygrad
    >>> @cygrad.compiler.nested_compile_region
    ... def layer(x):
    ...     return x.relu()
    >>> layer(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return fn if fn is not None else lambda wrapped: wrapped


# -- switches --


class set_stance(ContextDecorator):
    """Set what is done with calls that have no plan yet; a context manager and decorator too.

    "force_eager" replays nothing; "eager_on_recompile" makes no further plans; "fail_on_recompile" raises RuntimeError
    where one would be made; the others do what "default" does. Raises RuntimeError for a word that PyTorch does not
    know.

    >>> import cygrad
    >>> with cygrad.compiler.set_stance("force_eager"):
    ...     cygrad.compile(lambda x: x + 1)(cygrad.ones(1))
    tensor([2.])
    """

    _STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                "fail_on_recompile")  # fmt: skip

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: str | None = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'\n  one of {', '.join(self._STANCES)}")
        self._stance = stance
        self._before = _settings.set_stance(stance)

    def __call__(self, function: Any) -> Any:
        self.__exit__()  # it is for the calls of the function
        return super().__call__(function)

    def _recreate_cm(self) -> set_stance:
        return set_stance(self._stance)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        _settings.set_stance(self._before)


def reset() -> None:
    """Have all compiled functions forget their plans.

    >>> import cygrad
    >>> f = cygrad.compile(lambda x: x * 2)
    >>> f(cygrad.ones(2))
    tensor([2., 2.])
    >>> cygrad.compiler.reset()
    """
    for step in list(_settings.steps):
        step.reset()


def cudagraph_mark_step_begin() -> None:
    """Tell where a step of training or inference begins: a no-op, as no result is ever overwritten by the next one.

    >>> import cygrad
    >>> for batch in [cygrad.ones(2), cygrad.zeros(2)]:
    ...     cygrad.compiler.cudagraph_mark_step_begin()
    """


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Let processes agree on when to compile anew: without effect. Returns the previous setting, False.

    >>> import cygrad
    >>> cygrad.compiler.set_enable_guard_collectives(True)
    False
    """
    return False


# -- back ends --


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """Return the names that `compile` takes as a back end; those for debugging only if no tags are excluded.

    >>> import cygrad
    >>> "cygrad" in cygrad.compiler.list_backends()
    True
    """
    return _backends.names(exclude_tags)


_default_backend = ["inductor"]


def set_default_backend(backend: str) -> None:
    """Set the back end for calls of `compile` with `backend=None`. None resets it.

    >>> import cygrad
    >>> cygrad.compiler.set_default_backend("eager")
    >>> cygrad.compiler.get_default_backend()
    'eager'
    >>> cygrad.compiler.set_default_backend(None)
    """
    _default_backend[0] = "inductor" if backend is None else backend


def get_default_backend() -> str:
    """Return the argument of `set_default_backend`, or "inductor".

    >>> import cygrad
    >>> cygrad.compiler.get_default_backend()
    'inductor'
    """
    return _default_backend[0]


# -- compiled code in files --


def load_compiled_function(file: Any, *, f_globals: Any = None, external_data: Any = None) -> Any:
    """Raises RuntimeError: plans are not kept in files.

    >>> import cygrad
    >>> cygrad.compiler.load_compiled_function("plan.bin")
    Traceback (most recent call last):
        ...
    RuntimeError: torch.compiler.load_compiled_function: cygrad does not compile programs...
    """
    raise _no_compiler("compiler.load_compiled_function", "compile the function again: it takes three calls")


def save_cache_artifacts() -> Any:
    """Return what compilations have put into caches: None, as there are none.

    >>> import cygrad
    >>> print(cygrad.compiler.save_cache_artifacts())
    None
    """
    return None


def load_cache_artifacts(serialized_artifacts: Any) -> Any:
    """Fill caches with what `save_cache_artifacts` returned elsewhere: does nothing, and returns None.

    >>> import cygrad
    >>> print(cygrad.compiler.load_cache_artifacts(b""))
    None
    """
    return None


def _no_compiler(name, advice):
    """Return the error of a function that needs a compiler, also one of `_dynamo` and `_inductor`."""
    return RuntimeError(f"torch.{name}: cygrad does not compile programs\n  {advice}")
