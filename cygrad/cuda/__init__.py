"""GPU support through CuPy: devices, streams, events and memory.

Where a function takes a `device`, that is an index, a text such as "cuda:1" or a `torch.device`; None stands for this
thread's current GPU. Without a GPU `is_available()` is False, figures of memory are 0, and what needs a GPU raises
RuntimeError, with a text that says what is missing. Memory is in bytes.

>>> import cygrad
>>> device = "cuda" if cygrad.cuda.is_available() else "cpu"
>>> cygrad.ones(2, device=device).sum().item()
2.0
"""

from cygrad._core.errors.classes import OutOfMemoryError
from cygrad._ops.creation import legacy_types as _legacy_types
from cygrad._ops.random.generator import gpu_generator as _gpu_generator
from cygrad.cuda import amp, nvtx, profiler, sparse
from cygrad.cuda.devices import (
    can_device_access_peer,
    current_device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from cygrad.cuda.devices import device_of_thread as device
from cygrad.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from cygrad.cuda.memory import (
    empty_cache,
    get_memory_limit,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_memory_limit,
    set_per_process_memory_fraction,
)
from cygrad.cuda.profiler import cudart
from cygrad.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from cygrad.cuda.streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream
from cygrad.cuda.waiting import get_sync_debug_mode, set_sync_debug_mode
from cygrad.cuda.warming import warmup

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "cudart",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_memory_limit",
    "get_sync_debug_mode",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "profiler",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_device",
    "set_memory_limit",
    "set_sync_debug_mode",
    "set_per_process_memory_fraction",
    "set_stream",
    "sparse",
    "stream",
    "synchronize",
    "warmup",
]
__all__ += list(_legacy_types.types_on_gpu)
globals().update(_legacy_types.types_on_gpu)


def __getattr__(name):
    """The names whose values change: `_initialized`, and `default_generators`, one for each GPU."""
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return tuple(_gpu_generator(index) for index in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
