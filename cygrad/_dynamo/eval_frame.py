"""Modules and functions that are asked to be compiled."""

from cygrad.nn import Module


class OptimizedModule(Module):
    """A module that stands for another, `_orig_mod`: PyTorch's class of compiled modules.

    `torch.compile` returns the module it is given, so a program gets one of these only where it makes one. Attributes
    and calls go to the other module; its names in a state dict begin with "_orig_mod.", as in PyTorch.
    """

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._orig_mod = mod
        self.dynamo_ctx = dynamo_ctx
        self.training = mod.training

    def forward(self, *args, **kwargs):
        """Call the module."""
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules[name]
        return getattr(self._orig_mod, name)


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """Return a function unchanged, or a decorator if none is given."""
    return fn if fn is not None else lambda wrapped: wrapped


def optimize(*args, **kwargs):
    """Return a decorator that returns its function or module unchanged. Takes what PyTorch's takes, without effect."""
    return lambda fn: fn


def optimize_assert(*args, **kwargs):
    """Return a decorator that returns its function or module unchanged."""
    return lambda fn: fn


def run(fn=None):
    """Run a function without compiling more of it: returns it unchanged, or a decorator if none is given."""
    return fn if fn is not None else lambda wrapped: wrapped


def innermost_fn(fn):
    """Return the function that a compiled one was made from: the function itself."""
    return fn
