"""What `torch._C._autograd` tells of the engine and the profiler."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from cygrad import profiler
from cygrad._core.runtime.thread_state import is_observed, next_sequence_nr

__all__ = ["DeviceType", "_get_sequence_nr", "_profiler_enabled", "kineto_available"]

_KINDS = (
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta HPU VE Lazy IPU MTIA PrivateUse1"
)

_NUMBERS = {name: number for number, name in enumerate(_KINDS.split())}
DeviceType: Any = IntEnum("DeviceType", _NUMBERS, module=__name__)  # type: ignore[misc]
DeviceType.__doc__ = "The kinds of devices, by PyTorch's numbers."


def kineto_available() -> bool:
    """Whether the profiler is there."""
    return profiler.kineto_available()


def _profiler_enabled() -> bool:
    """Whether a profiler observes this thread."""
    return is_observed()


def _get_sequence_nr() -> int:
    """Return the number that the next node of this thread's graph will have."""
    return next_sequence_nr()
