"""The memory of Intel's GPUs, which cygrad does not use."""

from collections import OrderedDict
from typing import Any

from cygrad.backends import _absent

_ANSWERS: dict[str, Any] = {
    "empty_cache": None,
    "max_memory_allocated": 0,
    "max_memory_reserved": 0,
    "memory_allocated": 0,
    "memory_reserved": 0,
    "memory_snapshot": [],
    "memory_stats": OrderedDict(),
    "memory_stats_as_nested_dict": {},
    "reset_accumulated_memory_stats": None,
    "reset_peak_memory_stats": None,
}
_REFUSED = ("get_per_process_memory_fraction", "mem_get_info", "set_per_process_memory_fraction")

globals().update(_absent.answering(__name__, _ANSWERS))
globals().update(
    _absent.refusing(__name__, dict.fromkeys(_REFUSED, (AssertionError, "Torch not compiled with XPU enabled")))
)
__all__ = [*_ANSWERS, *_REFUSED]
