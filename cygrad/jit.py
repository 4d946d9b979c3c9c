"""Stubs for programs that use TorchScript: here they run as plain Python."""

from typing import Final

from cygrad._core.errors.sites import warn

__all__ = [
    "Final", "export", "ignore", "is_scripting", "is_tracing", "load", "save", "script", "script_if_tracing", "trace",
    "unused",
]  # fmt: skip


def is_scripting():
    """Whether this is run by TorchScript: always False."""
    return False


def is_tracing():
    """Whether this call is being traced: always False."""
    return False


def script(obj, *args, **kwargs):
    """Return the function, class or module unchanged: it behaves the same, and there is no compiler.

    >>> import cygrad
    >>> @cygrad.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(cygrad.ones(2))
    tensor([2., 2.])
    """
    return obj


script_if_tracing = export = script


def trace(func, example_inputs=None, *args, **kwargs):
    """Return the function or module unchanged, with a warning: unlike a trace, each call evaluates branches anew."""
    warn("cygrad does not trace: torch.jit.trace returns its argument unchanged, with its `if`s and loops")
    return func


def ignore(drop=False, **kwargs):
    """TorchScript annotation: returns the function unchanged, or a decorator that does."""
    return drop if callable(drop) else script


def unused(fn):
    """TorchScript annotation: returns the function unchanged."""
    return fn


def save(m, f, _extra_files=None):
    """Raises RuntimeError: there are no compiled programs to save."""
    raise RuntimeError(
        "torch.jit.save: cygrad has no TorchScript\n"
        "  save the weights, torch.save(model.state_dict(), path), and keep the Python code that makes the model"
    )


def load(f, map_location=None, _extra_files=None):
    """Raises RuntimeError: TorchScript programs cannot be run."""
    raise RuntimeError(
        "torch.jit.load: cygrad has no TorchScript\n"
        "  make the model in Python and load its weights: with PyTorch, "
        "torch.save(torch.jit.load(path).state_dict(), new_path); here, model.load_state_dict(torch.load(new_path))"
    )
