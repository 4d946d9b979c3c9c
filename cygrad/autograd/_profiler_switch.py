"""Switch the profiler of this thread on and off without a block, as tools under `autograd.profiler` do in PyTorch."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass
from typing import Any

from cygrad._core.errors.sites import warn
from cygrad.autograd.profiler import profile
from cygrad.autograd.profiler_util import EventList, FunctionEvent

__all__ = ["ProfilerConfig", "ProfilerState"]


class ProfilerState(enum.Enum):
    """What a profiler writes to."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


@dataclass
class ProfilerConfig:
    """What to record."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: Any
    trace_id: str = ""


class _Event:
    """An event of the result, whose facts are methods."""

    def __init__(self, event: FunctionEvent) -> None:
        self._event = event

    def name(self) -> str:
        """The name, such as 'aten::sum'."""
        return self._event.name

    def start_ns(self) -> int:
        """When it began, in nanoseconds."""
        return round(self._event.time_range.start * 1000)

    def end_ns(self) -> int:
        """When it ended, in nanoseconds."""
        return round(self._event.time_range.end * 1000)

    def duration_ns(self) -> int:
        """How long it took, in nanoseconds."""
        return self.end_ns() - self.start_ns()

    def sequence_nr(self) -> int:
        """The number of the node that it recorded or ran; -1 for none."""
        return self._event.sequence_nr

    def shapes(self) -> list[Any]:
        """The shapes of the inputs."""
        return self._event.input_shapes

    def stack(self) -> list[str]:
        """The Python functions that called it."""
        return self._event.stack


class _ProfilerResult:
    """What a profiler has collected."""

    def __init__(self, found: EventList) -> None:
        self._events = found

    def events(self) -> list[_Event]:
        """Return the events in the order in which they began."""
        return [_Event(event) for event in self._events]

    def trace_start_ns(self) -> int:
        """Return when the first event began, in nanoseconds."""
        return min((event.start_ns() for event in self.events()), default=0)

    def save(self, path: str) -> None:
        """Write a Chrome trace."""
        self._events.export_chrome_trace(path)


_of_thread = threading.local()


def _prepare_profiler(config: ProfilerConfig, activities: set[Any]) -> None:
    """Do nothing: the profiler needs no time to get ready."""


def _enable_profiler(config: ProfilerConfig, activities: set[Any], scopes: Any = frozenset()) -> None:
    """Collect the events of this thread until `_disable_profiler()`. Raises RuntimeError if that goes on already."""
    if getattr(_of_thread, "running", None) is not None:
        raise RuntimeError("Profiler is already enabled on this thread.")
    running = profile(
        record_shapes=config.report_input_shapes, profile_memory=config.profile_memory, with_stack=config.with_stack
    )
    running.__enter__()
    _of_thread.running = running


def _disable_profiler() -> _ProfilerResult:
    """Stop collecting, and return what there is: nothing, with a warning, if no profiler was enabled."""
    running = getattr(_of_thread, "running", None)
    if running is None:
        warn("disableProfiler called but no active profiling session found.")
        return _ProfilerResult(EventList())
    _of_thread.running = None
    running.__exit__(None, None, None)
    return _ProfilerResult(running.function_events)
