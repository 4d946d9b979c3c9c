"""The profiler with a schedule: `profile(schedule=...)`, `step()` and a handler for each trace.

Events, tables and traces are those of `cygrad.autograd.profiler`.
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from cygrad._core.errors.sites import warn
from cygrad._kernels.device.cupy_library import is_available, is_loaded
from cygrad.autograd import profiler as _profiler
from cygrad.autograd._profiler_trace import write_trace
from cygrad.autograd.profiler import record_function
from cygrad.autograd.profiler_util import DeviceType, EventList

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What to profile; only CPU and CUDA are supported.

    >>> import cygrad
    >>> cygrad.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule does in a step.

    >>> import cygrad
    >>> schedule = cygrad.profiler.schedule(wait=1, warmup=1, active=1)
    >>> [schedule(step).name for step in range(3)]
    ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def kineto_available() -> bool:
    """Whether the profiler is there: always True.

    >>> import cygrad
    >>> cygrad.profiler.kineto_available()
    True
    """
    return True


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be profiled.

    >>> import cygrad
    >>> cygrad.profiler.ProfilerActivity.CPU in cygrad.profiler.supported_activities()
    True
    """
    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if is_loaded() else found


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: skip `skip_first` steps, then `repeat` times (0: forever) wait, warm up and record.

    With `skip_first_wait` the first cycle does not wait. Raises AssertionError for negative numbers.

    >>> import cygrad
    >>> steps = cygrad.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [steps(i).name for i in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        number, place = divmod(step, length)
        if (0 < repeat <= number) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a handler for `profile(on_trace_ready=...)` that writes each trace to a separate file in `dir_name`.

    >>> import cygrad
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cygrad.profiler.profile(on_trace_ready=cygrad.profiler.tensorboard_trace_handler(folder.name, "worker0")):
    ...     total = cygrad.ones(2).sum()
    >>> [name.split(".")[0] for name in os.listdir(folder.name)]
    ['worker0']
    >>> folder.cleanup()
    """

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:
    """Collects events in the block, or between `start()` and `stop()`, in the steps selected by `schedule`.

    `step()` ends a step; after the last step of a cycle, and at the end, `on_trace_ready(self)` is called. Only the
    events of the last cycle are kept. The other arguments are those of `cygrad.autograd.profiler.profile`.

    >>> import cygrad
    >>> with cygrad.profiler.profile(record_shapes=True) as prof:
    ...     total = cygrad.ones(2, 3).sum()
    >>> prof.events()[-1].input_shapes
    [[2, 3]]
    >>> prof.key_averages()[0].count
    1
    >>> prof.add_metadata("model", "linear")
    >>> prof.add_metadata_json("sizes", "[2, 3]")
    >>> schedule = cygrad.profiler.schedule(wait=0, warmup=1, active=1)
    >>> steps = cygrad.profiler.profile(schedule=schedule, on_trace_ready=lambda each: print("one trace"))
    >>> steps.start()
    >>> for _ in range(2):
    ...     total = cygrad.ones(2, 3).sum()
    ...     steps.step()
    one trace
    >>> steps.stop()
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:
        wanted = supported_activities() if activities is None else set(activities)
        if use_cuda is not None:
            wanted = wanted - {ProfilerActivity.CUDA} | ({ProfilerActivity.CUDA} if use_cuda else set())
        if ProfilerActivity.CPU not in wanted and not (ProfilerActivity.CUDA in wanted and is_available()):
            raise AssertionError("No valid profiler activities found")
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "use_cuda": ProfilerActivity.CUDA in wanted,
        }
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._metadata: dict[str, Any] = {}
        self._running: _profiler.profile | None = None  # currently collecting
        self._last: _profiler.profile | None = None
        self._step: record_function | None = None
        self.step_num = 0

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _begin(self) -> None:
        """Begin a step."""
        if self._action() in _RECORDING:
            if self._running is None:
                self._running = self._last = _profiler.profile(**self._options)
                self._running.__enter__()
            if self._schedule is not None:
                self._step = record_function(f"ProfilerStep#{self.step_num}")
                self._step.__enter__()

    def _end(self, save: bool) -> None:
        """End a step, and with `save` the cycle."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None
        if self._running is not None and save:
            self._running.__exit__(None, None, None)
            self._running = None
            if self._on_trace_ready is not None:
                self._on_trace_ready(self)

    def start(self) -> None:
        """Begin the first step."""
        self._begin()

    def stop(self) -> None:
        """End the last step. Raises AssertionError if a step should be recorded but none was started."""
        if self._last is None and self._action() in _RECORDING:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._end(save=True)

    def step(self) -> None:
        """End a step and begin the next."""
        former = self._action()
        self.step_num += 1
        self._end(save=former is ProfilerAction.RECORD_AND_SAVE)
        self._begin()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def events(self) -> EventList:
        """Return the recorded events. Raises AssertionError before the first recorded step."""
        return self._found("accessing events").function_events

    def _found(self, purpose: str) -> _profiler.profile:
        if self._last is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self._last

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return totals over events of the same name; see `EventList.key_averages`."""
        events = self._found("getting key averages").function_events
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write a Chrome trace, compressed if the name ends in '.gz'.

        >>> import cygrad
        >>> import json, os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "trace.json")
        >>> with cygrad.profiler.profile() as prof:
        ...     total = cygrad.ones(2, 3).sum()
        >>> prof.export_chrome_trace(path)
        >>> with open(path) as file:
        ...     "traceEvents" in json.load(file)
        True
        >>> folder.cleanup()
        """
        write_trace(self._found("exporting chrome trace").function_events, path, **self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the Python stacks with their weights; see `EventList.export_stacks`. Needs `with_stack=True`.

        >>> import cygrad
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "stacks.txt")
        >>> with cygrad.profiler.profile(with_stack=True) as prof:
        ...     total = cygrad.ones(2, 3).sum()
        >>> prof.export_stacks(path)
        >>> os.path.exists(path)
        True
        >>> folder.cleanup()
        """
        self._found("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the metadata of the trace."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON, to the metadata of the trace."""
        self._metadata[key] = json.loads(value)
