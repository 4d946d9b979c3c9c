"""Modules and functions that are asked to be compiled."""

from cygrad import compiler
from cygrad.nn import Module


class OptimizedModule(Module):
    """A compiled module: calls of another one, `_orig_mod`, are replayed, as by PyTorch's class of that name.

    Attributes are the other module's; its names in a state dict begin with "_orig_mod.", as in PyTorch.
    """

    def __init__(self, mod, dynamo_ctx=None, *, call=None):
        super().__init__()
        state = self.__dict__
        state["_modules"]["_orig_mod"] = mod
        state["dynamo_ctx"] = dynamo_ctx
        state["forward"] = mod if call is None else call
        del state["training"]

    def explain(self, *args, **kwargs):
        """Tell what becomes of calls: see `cygrad.compile`."""
        return self.__dict__["forward"].explain(*args, **kwargs)

    @property
    def training(self):
        """Whether the other module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        if "_orig_mod" in self._modules:
            self._orig_mod.training = value

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules[name]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self):
        return len(self._orig_mod)

    def __reduce__(self):
        return _compiled_again, (self._orig_mod,)


_OWN = frozenset(("_orig_mod", "dynamo_ctx", "forward", "training", *vars(Module())))


def _compiled_again(module):
    return compiler.compile(module)


def disable(fn=None, recursive=True, *, reason=None, wrapping=True):
    """Return a function that prevents the replay of what calls it, or a decorator: see `cygrad.compiler.disable`."""
    return compiler.disable(fn, recursive, reason=reason)


def optimize(backend="inductor", *, nopython=False, disable=False, dynamic=None, **others):
    """Return a decorator that compiles: the older form of `compile`."""
    return compiler.compile(fullgraph=nopython, dynamic=dynamic, backend=backend, disable=disable)


def optimize_assert(backend="inductor", **others):
    """Return a decorator that compiles with `fullgraph=True`."""
    return compiler.compile(fullgraph=True, backend=backend)


def run(fn=None):
    """Run a function without compiling more of it: returns it unchanged, or a decorator if none is given."""
    return fn if fn is not None else lambda wrapped: wrapped


def innermost_fn(fn):
    """Return the function that a compiled one was made from."""
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn
