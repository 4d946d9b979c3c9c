"""What `torch._C._autograd` tells of the engine and the profiler."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from cygrad import Tensor, profiler
from cygrad._core.engine.backward import keeps_graph
from cygrad._core.graph.internals import set_version
from cygrad._core.runtime.thread_state import is_observed, next_sequence_nr
from cygrad._core.saved.saved_tensor_hooks import SavedTensor, are_allowed

__all__ = ["DeviceType", "SavedTensor", "_get_sequence_nr", "_profiler_enabled", "kineto_available"]

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


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether this thread may enter `graph.saved_tensors_hooks`; not inside `disable_saved_tensors_hooks`."""
    return are_allowed()


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward pass of this thread keeps saved values for another one; True outside of a pass."""
    return keeps_graph()


def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Set how often tensors count as changed, which can hide changes from backward.

    Raises RuntimeError for a count below 0, or if there are not as many counts as tensors.
    """
    if isinstance(tensors, Tensor):
        tensors, versions = (tensors,), (versions,)
    if len(tensors) != len(versions):
        raise RuntimeError(
            f"tensors_size ({len(tensors)}) != versions_size ({len(versions)}); there must be a count for each tensor"
        )
    for version in versions:
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
    for tensor, version in zip(tensors, versions, strict=True):
        set_version(tensor, version)


def _get_sequence_nr() -> int:
    """Return the number that the next node of this thread's graph will have."""
    return next_sequence_nr()
