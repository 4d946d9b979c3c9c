"""What programs that are also compiled by TorchScript ask and mark: here they run as the Python they are."""

import warnings
from typing import Final

__all__ = [
    "Final", "export", "ignore", "is_scripting", "is_tracing", "load", "save", "script", "script_if_tracing", "trace",
    "unused",
]  # fmt: skip


def is_scripting():
    """Whether this is run by TorchScript: no."""
    return False


def is_tracing():
    """Whether this call is being traced: no."""
    return False


def script(obj, *args, **kwargs):
    """The function, class or module itself: what it does is the same, and there is nothing to compile it with.

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
    """The function or module itself, with a warning: unlike a trace, it takes each branch anew in each call."""
    warnings.warn(
        "cygrad does not trace: torch.jit.trace gives back what it is given, whose `if`s and loops stay what they are",
        UserWarning,
        stacklevel=2,
    )
    return func


def ignore(drop=False, **kwargs):
    """A mark for TorchScript: the function itself, or a decorator that gives it."""
    return drop if callable(drop) else script


def unused(fn):
    """A mark for TorchScript: the function itself."""
    return fn


def save(m, f, _extra_files=None):
    """Raises RuntimeError: there are no compiled programs that could be written."""
    raise RuntimeError(
        "torch.jit.save: cygrad has no TorchScript\n"
        "  save the weights, torch.save(model.state_dict(), path), and the Python code that makes the model"
    )


def load(f, map_location=None, _extra_files=None):
    """Raises RuntimeError: programs of TorchScript can not be run."""
    raise RuntimeError(
        "torch.jit.load: cygrad has no TorchScript\n"
        "  make the model in Python and load its weights: where PyTorch is, "
        "torch.save(torch.jit.load(path).state_dict(), new_path); here, model.load_state_dict(torch.load(new_path))"
    )
