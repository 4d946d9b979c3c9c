"""What builds on collectives: hooks that compress gradients, joining uneven inputs, averaging of models."""

from importlib import import_module as _import_module

from cygrad.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]

_ON_FIRST_USE = {"_checkpoint", "ddp_comm_hooks", "model_averaging"}


def __getattr__(name):
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")
