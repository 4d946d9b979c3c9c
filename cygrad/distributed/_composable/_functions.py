"""What the functions that change modules in place have in common, and two of them."""

from functools import wraps

from cygrad.nn.modules import Module
from cygrad.nn.parallel import DistributedDataParallel
from cygrad.utils.checkpoint import checkpoint as _recomputed

__all__ = ["checkpoint", "contract", "replicate"]

_NAMES = "_composable_functions"


def contract(state_cls=None):
    """Return a decorator that notes in a module which functions have changed it; twice by one is an error."""

    def decorate(function):
        @wraps(function)
        def call(module, *args, **kwargs):
            applied = module.__dict__.setdefault(_NAMES, {})
            if function.__name__ in applied:
                raise AssertionError(
                    "Each distinct composable distributed API can only be applied to a module once: "
                    + function.__name__
                )
            applied[function.__name__] = state_cls() if state_cls is not None else object()
            result = function(module, *args, **kwargs)
            return module if result is None else result

        setattr(call, "state", lambda module: module.__dict__.get(_NAMES, {}).get(function.__name__))  # noqa: B010
        return call

    return decorate


def _get_registry(module):
    """{name of the function: its state} of the functions that have changed a module."""
    return module.__dict__.get(_NAMES)


@contract()
def checkpoint(module, **kwargs):
    """Let a module's activations be recomputed during backward."""
    forward = module.forward
    options = {"use_reentrant": False, **kwargs}

    @wraps(forward)
    def recomputing(*args, **inputs):
        return _recomputed(forward, *args, **options, **inputs)

    module.forward = recomputing


@contract()
def replicate(module, ignored_modules=None, **kwargs):
    """Let gradients of a module be averaged over all processes, as `DistributedDataParallel` does.

    `kwargs` are its arguments. The module, which keeps its class and names, has the state of rank 0 then.
    """
    ignored = {tensor for each in ignored_modules or () for tensor in each.parameters()}
    kwargs.pop("device_id", None)
    skipped = [name for name, parameter in module.named_parameters() if parameter in ignored]
    if skipped:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, skipped)
    wrapper = DistributedDataParallel(module, **kwargs)
    forward = module.forward

    class Inner(Module):
        def forward(self, *args, **inputs):
            return forward(*args, **inputs)

    wrapper.module = Inner()  # so that the wrapper calls what the module did before

    @wraps(forward)
    def averaging(*args, **inputs):
        return wrapper.forward(*args, **inputs)

    module.forward = averaging
