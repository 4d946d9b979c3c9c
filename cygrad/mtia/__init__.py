"""Meta's accelerators, which cygrad does not use: these functions answer as PyTorch's do on a machine without one."""

from cygrad.backends import _absent
from cygrad.cpu._streams import Event, Stream

_ABSENT = (
    "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in "
    "your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
)
_ANSWERS = {
    "device_count": 0,
    "get_rng_state_all": [],
    "is_available": False,
    "is_bf16_supported": True,
    "is_initialized": False,
    "manual_seed": None,
    "manual_seed_all": None,
    "max_memory_allocated": 0,
    "memory_allocated": 0,
    "memory_stats": {},
    "record_memory_history": None,
    "reset_peak_memory_stats": None,
    "seed": None,
    "seed_all": None,
    "set_rng_state_all": None,
    "set_stream": None,
}
_HOOKS = {
    **dict.fromkeys(("current_device", "current_stream", "default_stream", "stream"), "getCurrentDevice"),
    **dict.fromkeys(("get_device_capability", "get_device_properties"), "getCurrentDevice"),
    **dict.fromkeys(("set_rng_state", "synchronize"), "getCurrentDevice"),
    "empty_cache": "emptyCache",
    "set_device": "setCurrentDevice",
    "snapshot": "memorySnapshot",
}

default_generators = ()
device = _absent.device_context(__name__, RuntimeError, "Cannot execute exchangeDevice() without MTIA backend.")
StreamContext = _absent.class_refusing(
    __name__, "StreamContext", RuntimeError, "Cannot execute getCurrentDevice() without MTIA backend."
)
globals().update(_absent.answering(__name__, _ANSWERS))
_errors = _absent.without_backend("MTIA", _HOOKS)
_errors |= dict.fromkeys(("get_rng_state", "init", "initial_seed"), (AssertionError, _ABSENT))
globals().update(_absent.refusing(__name__, _errors))

__all__ = ["Event", "Stream", "StreamContext", "default_generators", "device", *_ANSWERS, *_errors]
