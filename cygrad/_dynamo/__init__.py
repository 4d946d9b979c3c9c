"""The compiler behind `torch.compile`, as programs see it: `cygrad.compile` does its work. Marks and switches that it
has no use for are taken and have no effect, and what only a compiler can give raises RuntimeError."""

import inspect
from typing import Any

from cygrad._dynamo import config, eval_frame, exc, external_utils, utils
from cygrad._dynamo.eval_frame import OptimizedModule, disable, optimize, optimize_assert, run
from cygrad._dynamo.exc import InvalidBackend
from cygrad.compiler import (
    _backends,
    _no_compiler,
    allow_in_graph,
    assume_constant_result,
    compile,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from cygrad.compiler._watching import current_watch

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "dont_skip_tracing", "error_on_graph_break", "eval_frame", "exc", "explain", "export", "external_utils",
    "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported", "is_inductor_supported", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace",
    "optimize", "optimize_assert", "patch_dynamo_config", "register_backend", "reset", "reset_code_caches", "run",
    "set_stance", "substitute_in_graph", "utils",
]  # fmt: skip


def is_dynamo_supported():
    """Whether functions can be compiled: always True."""
    return True


def is_inductor_supported():
    """Whether the back end that PyTorch compiles with by default is there: always False."""
    return False


# -- marks on functions --


def disallow_in_graph(fn):
    """Return a function that prevents the replay of what calls it: see `cygrad.compiler.disable`."""
    return disable(fn)


def forbid_in_graph(fn):
    """Return a function that prevents the replay of what calls it: see `cygrad.compiler.disable`."""
    return disable(fn)


def nonstrict_trace(traceable_fn):
    """Mark a function as one to compile without a look at its Python code: returns it unchanged."""
    return traceable_fn


def dont_skip_tracing(fn=None):
    """Return a function unchanged, or a decorator that does."""
    return fn if fn is not None else lambda wrapped: wrapped


def graph_break(msg=""):
    """Prevent the replay of the compiled function that calls this."""
    watch = current_watch()
    if watch is not None:
        watch.note(f"`graph_break` is called{msg and f' ({msg})'}", "leave it out", inspect.currentframe())


# -- marks on tensors --


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Mark dimensions whose length may change between calls: a no-op, as any length may."""


def maybe_mark_dynamic(t, index):
    """Mark dimensions whose length may change between calls: a no-op, as any length may."""


def mark_static(t, index=None):
    """Mark dimensions whose length never changes: a no-op."""


def mark_static_address(t, guard=False):
    """Mark a tensor whose memory stays where it is: a no-op."""


# -- switches --


class _Switch:
    """A context manager and decorator without effect."""

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None

    def __call__(self, fn):
        return fn


def error_on_graph_break(error_on_graph_break):
    """Return a context manager and decorator without effect: `fullgraph=True` raises `cygrad.errors.GraphBreak`."""
    return _Switch()


def patch_dynamo_config(arg1=None, arg2=None, **kwargs):
    """Return a context manager and decorator that changes `config` within it."""
    settings: Any = config
    return settings.patch(arg1, arg2, **kwargs)


def reset_code_caches():
    """Have all compiled functions forget their plans: the same as `reset`."""
    reset()


# -- back ends --


def register_backend(compiler_fn=None, name=None, tags=()):
    """Let `compile` take a name; the compiler, returned unchanged, is never called. Without it, a decorator."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    _backends.registered[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn):
    """Return a compiler that is given as a function or was registered by name. Raises InvalidBackend for other names:
    there are none that could be called."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _backends.registered:
        raise InvalidBackend(compiler_fn)
    return _backends.registered[compiler_fn]


def explain(f, *extra_args, **extra_kwargs):
    """Tell what becomes of calls of a compiled function, or return a function that tells it of a call with arguments.

    A function that is not compiled is, and called five times.
    """

    def explained(*args, **kwargs):
        compiled = f if hasattr(f, "_cygrad_step") or isinstance(f, OptimizedModule) else compile(f)
        if compiled is not f:
            for _ in range(5):
                compiled(*args, **kwargs)
        return compiled.explain(*args, **kwargs)

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


def export(f, *extra_args, **extra_kwargs):
    """Raises RuntimeError: programs are not captured whole."""
    raise _no_compiler("_dynamo.export", "save model.state_dict(), and keep the Python code that makes the model")
