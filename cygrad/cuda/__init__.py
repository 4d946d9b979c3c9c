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
from cygrad.cuda import amp, memory, nvtx, profiler, random, sensors, sparse
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
    is_tf32_supported,
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
from cygrad.cuda.memory import *  # noqa: F403
from cygrad.cuda.profiler import cudart
from cygrad.cuda.random import *  # noqa: F403
from cygrad.cuda.sensors import *  # noqa: F403
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
    "default_generators",  # noqa: F405, from `__getattr__`
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "nvtx",
    "profiler",
    "set_device",
    "set_stream",
    "set_sync_debug_mode",
    "sparse",
    "stream",
    "synchronize",
    "warmup",
]
__all__ += memory.__all__
__all__ += random.__all__
__all__ += sensors.__all__
__all__ += list(_legacy_types.types_on_gpu)
globals().update(_legacy_types.types_on_gpu)


def __getattr__(name):
    """The names whose values change: `_initialized`, and `default_generators`, one for each GPU."""
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return tuple(_gpu_generator(index) for index in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
