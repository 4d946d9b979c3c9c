"""Apple's GPUs, which cygrad does not use: these functions answer as PyTorch's do on a machine without one."""

from cygrad.backends import _absent
from cygrad.mps import profiler
from cygrad.mps.event import Event

__all__ = [
    "Event",
    "compile_shader",
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "load_metallib",
    "manual_seed",
    "profiler",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]


def is_available():
    """Whether there is an Apple GPU that can be used: always False.

    >>> import cygrad
    >>> "mps" if cygrad.mps.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count():
    """Return the number of Apple GPUs that can be used: always 0.

    >>> import cygrad
    >>> cygrad.mps.device_count()
    0
    """
    return 0


def manual_seed(seed):
    """Do nothing: there is no generator to seed.

    >>> import cygrad
    >>> cygrad.mps.manual_seed(0)
    """


_HOOKS = {
    "current_allocated_memory": "getCurrentAllocatedMemory",
    "driver_allocated_memory": "getDriverAllocatedMemory",
    "empty_cache": "emptyCache",
    "get_rng_state": "getDefaultGenerator",
    "recommended_max_memory": "getRecommendedMaxMemory",
    "seed": "getDefaultGenerator",
    "set_per_process_memory_fraction": "setMemoryFraction",
    "set_rng_state": "getDefaultGenerator",
    "synchronize": "deviceSynchronize",
}
_errors = _absent.without_backend("MPS", _HOOKS)
_errors |= dict.fromkeys(("compile_shader", "load_metallib"), (RuntimeError, "MPS is not available"))
globals().update(_absent.refusing(__name__, _errors))
