"""Compiled and disabled functions and modules, as users see them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from cygrad._dynamo.eval_frame import OptimizedModule
from cygrad.compiler._explaining import Explanation
from cygrad.compiler._step import Step, compiled
from cygrad.compiler._watching import current_watch
from cygrad.nn import Module


def wrapped(model: Any, replays: bool, fullgraph: bool, every: int) -> Any:
    """Return a compiled function, module, or class whose instances are called by a compiled function."""
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, None, call=_call_of(model, replays, fullgraph, every))
    if isinstance(model, type):
        raise _of_class(model)
    return _call_of(model, replays, fullgraph, every)


def _of_class(model: type) -> Exception:
    return TypeError(f"{model.__qualname__} is a class\n  compile its instances, or one of its methods")


def _call_of(model: Callable[..., Any], replays: bool, fullgraph: bool, every: int) -> Callable[..., Any]:
    inner = getattr(model, "_cygrad_step", None)
    if isinstance(inner, Step):  # compiled already
        model = inner.function
    if replays:
        function, step = compiled(model, fullgraph, every)
    else:
        step = Step(model, False, 0)

        def function(*args: Any, **kwargs: Any) -> Any:
            return step.run_as_written(args, kwargs)

    named = model if hasattr(model, "__name__") else type(model).__call__ if isinstance(model, Module) else model
    functools.update_wrapper(function, named, updated=("__dict__",) if inspect.isroutine(model) else ())
    marks: Any = function
    marks.__wrapped__ = model
    marks._torchdynamo_orig_callable = model
    marks._is_torch_compile = True
    marks._cygrad_step = step
    marks.explain = lambda *args, **kwargs: Explanation(step, args, kwargs)
    return function


def disabled(function: Any, recursive: bool, reason: str | None) -> Any:
    """Return a function or module that prevents the replay of what calls it."""
    if isinstance(function, Module):
        return OptimizedModule(function, None, call=disabled(function.__call__, recursive, reason))
    if isinstance(function, type):
        return function
    name = getattr(function, "__qualname__", type(function).__qualname__)

    def disabled_function(*args: Any, **kwargs: Any) -> Any:
        watch = current_watch()
        if watch is not None:
            watch.note(f"`{name}` is disabled" + (f" ({reason})" if reason else ""), "call it outside",
                       inspect.currentframe())  # fmt: skip
        return function(*args, **kwargs)

    functools.update_wrapper(disabled_function, function)
    marks: Any = disabled_function
    marks._torchdynamo_disable = True
    marks._torchdynamo_disable_msg = reason
    marks._torchdynamo_disable_recursive = recursive
    marks._torchdynamo_orig_callable = function
    return disabled_function
