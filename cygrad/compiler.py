"""Stubs for programs that use `torch.compile`: nothing is compiled here (see `cygrad.compile`)."""

from cygrad._core.runtime.settings import compile

__all__ = ["allow_in_graph", "compile", "disable", "is_compiling", "reset"]


def is_compiling():
    """Whether this call is being compiled: always False."""
    return False


def disable(fn=None, recursive=True, *, reason=None):
    """Return a function unchanged, or a decorator if none is given.

    >>> import cygrad
    >>> @cygrad.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(2)
    4
    """
    return fn if fn is not None else lambda wrapped: wrapped


def allow_in_graph(fn):
    """Return a function unchanged."""
    return fn


def reset():
    """Discard compiled code: a no-op."""
