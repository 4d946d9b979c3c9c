"""The compiler behind `torch.compile`, as programs see it where there is none: what it is asked to compile runs as it
is. Marks and switches are taken and have no effect, questions are answered truthfully, and what only a compiler can
give raises RuntimeError."""

from typing import Any

from cygrad._dynamo import config, eval_frame, exc, external_utils, utils
from cygrad._dynamo.eval_frame import OptimizedModule, disable, optimize, optimize_assert, run
from cygrad._dynamo.exc import InvalidBackend
from cygrad.compiler import (
    _no_compiler,
    allow_in_graph,
    assume_constant_result,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "dont_skip_tracing", "error_on_graph_break", "eval_frame", "exc", "explain", "export", "external_utils",
    "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported", "is_inductor_supported", "list_backends",
    "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace",
    "optimize", "optimize_assert", "patch_dynamo_config", "register_backend", "reset", "reset_code_caches", "run",
    "set_stance", "substitute_in_graph", "utils",
]  # fmt: skip


def is_dynamo_supported():
    """Whether programs can be compiled: always False."""
    return False


def is_inductor_supported():
    """Whether the back end that PyTorch compiles with by default is there: always False."""
    return False


# -- marks on functions --


def disallow_in_graph(fn):
    """Mark a function as one to run outside of compiled code: returns it unchanged."""
    return fn


def forbid_in_graph(fn):
    """Mark a function as one that must not be compiled: returns it unchanged."""
    return fn


def nonstrict_trace(traceable_fn):
    """Mark a function as one to compile without a look at its Python code: returns it unchanged."""
    return traceable_fn


def dont_skip_tracing(fn=None):
    """Return a function unchanged, or a decorator that does."""
    return fn if fn is not None else lambda wrapped: wrapped


def graph_break(msg=""):
    """End the graph being compiled here: a no-op."""


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
    """Return a context manager and decorator without effect: there are no graphs that could break."""
    return _Switch()


def patch_dynamo_config(arg1=None, arg2=None, **kwargs):
    """Return a context manager and decorator that changes `config` within it."""
    settings: Any = config
    return settings.patch(arg1, arg2, **kwargs)


def reset_code_caches():
    """Discard compiled code: a no-op."""


# -- back ends --


def register_backend(compiler_fn=None, name=None, tags=()):
    """Register a compiler: returns it unchanged, or a decorator if only options are given. It is never called."""
    return compiler_fn if compiler_fn is not None else lambda wrapped: wrapped


def lookup_backend(compiler_fn):
    """Return a compiler that is given as a function. Raises InvalidBackend for a name: there are none."""
    if isinstance(compiler_fn, str):
        raise InvalidBackend(compiler_fn)
    return compiler_fn


def explain(f, *extra_args, **extra_kwargs):
    """Raises RuntimeError: there is no compiler whose work could be explained."""
    raise _no_compiler("_dynamo.explain", "call the function: it runs as it is written")


def export(f, *extra_args, **extra_kwargs):
    """Raises RuntimeError: programs are not captured whole."""
    raise _no_compiler("_dynamo.export", "save model.state_dict(), and keep the Python code that makes the model")
