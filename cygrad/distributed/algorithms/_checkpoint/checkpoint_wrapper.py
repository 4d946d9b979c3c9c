"""Modules whose activations are recomputed, or kept in the CPU's memory, during backward."""

from abc import ABC, abstractmethod
from enum import Enum, auto
from functools import partial
from typing import Any

from cygrad.autograd.graph import save_on_cpu
from cygrad.nn.modules import Module
from cygrad.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which form of `utils.checkpoint` a wrapper uses."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module, ABC):
    """A module around another that has the same names in `state_dict` and `named_parameters`, and its attributes."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self.register_load_state_dict_pre_hook(self._pre_load_state_dict_hook)

    @abstractmethod
    def forward(self, *args, **kwargs):
        """Call the wrapped module."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args, **kwargs):
        """Like `Module.named_parameters`, with the names of the wrapped module."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module, state_dict, prefix, *_):
        _renamed(state_dict, prefix + _CHECKPOINT_PREFIX, prefix)

    @staticmethod
    def _pre_load_state_dict_hook(module, state_dict, prefix, *_):
        _renamed(state_dict, prefix, prefix + _CHECKPOINT_PREFIX)


def _renamed(state_dict, old, new):
    """Replace the beginning of names."""
    for name in list(state_dict):
        if name.startswith(old) and not (new.startswith(old) and name.startswith(new)):
            state_dict[new + name[len(old) :]] = state_dict.pop(name)


class OffloadWrapper(ActivationWrapper):
    """Keeps what backward needs in the CPU's memory."""

    def forward(self, *args, **kwargs):
        """Call the wrapped module."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Recomputes the wrapped module during backward, by `checkpoint_fn` or `utils.checkpoint`."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            is_reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn: Any = partial(checkpoint, use_reentrant=is_reentrant, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        """Call the wrapped module."""
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:
            names = tuple(kwargs)

            def positional(*values):
                split = len(values) - len(names)
                return self._checkpoint_wrapped_module(*values[:split], **dict(zip(names, values[split:])))

            return self.checkpoint_fn(positional, *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """Return a module that calls `module` and recomputes it during backward.

    >>> import cygrad
    >>> from cygrad.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    >>> model = checkpoint_wrapper(cygrad.nn.Linear(2, 1))
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> model.weight.grad, list(model.state_dict())
    (tensor([[1., 1.]]), ['weight', 'bias'])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module):
    """Return a module that calls `module` and keeps what its backward needs in the CPU's memory."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
):
    """Wrap all modules in `model` for which `check_fn` is true, or which a policy of `fsdp.wrap` chooses, in place."""
    from cygrad.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_chosen

    wrap_chosen(model, auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn), checkpoint_wrapper_fn)
