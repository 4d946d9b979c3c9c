"""What programs for `torch.compile` ask and mark: here nothing is compiled (see `cygrad.compile`)."""

from cygrad._core.runtime.settings import compile

__all__ = ["allow_in_graph", "compile", "disable", "is_compiling", "reset"]


def is_compiling():
    """Whether this call is being compiled: no."""
    return False


def disable(fn=None, recursive=True, *, reason=None):
    """A function as it is; a decorator where none is given.

    >>> import cygrad
    >>> @cygrad.compiler.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(2)
    4
    """
    return fn if fn is not None else lambda wrapped: wrapped


def allow_in_graph(fn):
    """A function as it is."""
    return fn


def reset():
    """Forget what was compiled: nothing."""
