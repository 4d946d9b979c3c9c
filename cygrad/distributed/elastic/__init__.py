"""What programs that `torchrun` starts import: errors of child processes, events, metrics, and helpers of launchers."""

from importlib import import_module as _import_module

from cygrad.distributed.elastic import multiprocessing as multiprocessing

_ON_FIRST_USE = {"control_plane", "events", "metrics", "rendezvous", "timer", "utils"}


def __getattr__(name):
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")


def __dir__():
    return sorted({*globals(), *_ON_FIRST_USE})
