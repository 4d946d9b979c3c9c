"""The profiler: what ran, where in the source, for how long, and how much was saved for backward.

    with cygrad.autograd.profiler.profile() as prof:
        loss(model(x), y).backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    print(prof.line_table())

It observes the thread that opened it, as in PyTorch; other threads can open their own.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Self

from cygrad._core.errors.sites import warn
from cygrad._core.profiling.profiler_events import Events, begin_range, end_range
from cygrad._core.runtime.interrupt_safe import Block
from cygrad._kernels.device.cupy_library import is_available
from cygrad.autograd._profiler_gpu import DeviceTimes, Ranges
from cygrad.autograd.profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg, events_of

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


class profile(Block):
    """Collect events of this thread in the block: ops, custom functions, backward nodes, `record_function`.

    record_shapes
        record the shapes of inputs
    profile_memory
        count the bytes of new results
    with_stack
        record the stack of Python functions

    use_cuda, or use_device="cuda"
        also measure the time on the GPU, by CUDA events around each op

    with_flops, with_modules, use_kineto, use_cpu, experimental_config and acc_events are accepted for compatibility and
    have no effect.

    >>> import cygrad
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> with cygrad.autograd.profiler.profile() as prof:
    ...     x.sin().sum().backward()
    >>> [event.name for event in prof.function_events][:3]
    ['aten::sin', 'aten::sum', 'SumBackward0']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
    ) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.use_cpu, self.acc_events = (
            with_flops,
            with_modules,
            use_cpu,
            acc_events,
        )
        self.use_cuda = use_cuda
        self.use_device = "cuda" if use_cuda else use_device
        self._times: DeviceTimes | None = None
        if enabled and (use_cuda or use_device == "cuda"):
            if is_available():
                self._times = DeviceTimes()
            else:
                warn("CUDA is not available, disabling CUDA profiling")
        self._collected: Events | None = None
        self._thread = 0
        self._events = EventList()

    def _plan(self):
        if not self.enabled:
            return bool, None, None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._thread = threading.get_native_id()
        self._collected = collected = Events(self.record_shapes, self.with_stack)
        collected.watcher = self._times
        self._context = self
        return Events.start, collected, collected, Events.stop

    @property
    def function_events(self) -> Any:
        """The collected events, an `EventList`."""
        if self._collected is not None and self._collected.stopped:
            times = None if self._times is None else self._times.times()
            self._events = events_of(self._collected.rows(), self._thread, self.profile_memory, times)
            self._events.with_stack = self.with_stack
            self._collected = None
        return self._events

    def _is_unfinished(self):
        running = self._collected is not None and not self._collected.stopped
        return self.enabled and (running or not self.entered)

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._is_unfinished() else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._is_unfinished() else str(self.function_events)

    @functools.wraps(EventList.table)
    def table(self, *args: Any, **kwargs: Any) -> str:
        return self.function_events.table(*args, **kwargs)

    @functools.wraps(EventList.line_table)
    def line_table(self, *args: Any, **kwargs: Any) -> str:
        return self.function_events.line_table(*args, **kwargs)

    @functools.wraps(EventList.key_averages)
    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        return self.function_events.key_averages(*args, **kwargs)

    @functools.wraps(EventList.total_average)
    def total_average(self) -> Any:
        return self.function_events.total_average()

    @functools.wraps(EventList.export_chrome_trace)
    def export_chrome_trace(self, path: str) -> None:
        if self._is_unfinished():  # the file would be empty
            raise RuntimeError(
                "Profiler didn't finish running\n  export the trace after the `with` block of the profiler"
            )
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Run `EventList.export_stacks` on the collected events. Raises AssertionError without `with_stack=True`.

        >>> import cygrad
        >>> import os, tempfile
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile(with_stack=True) as profile:
        ...     x = cygrad.ones(2) * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "stacks.txt")
        ...     profile.export_stacks(path)
        ...     print(os.path.exists(path))
        True
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """The total time of all events, in microseconds."""
        return self.function_events.self_cpu_time_total


class record_function:
    """Name the events in the block, or in the function that it decorates.

    >>> import cygrad
    >>> with cygrad.autograd.profiler.profile() as prof:
    ...     with cygrad.autograd.profiler.record_function("the sum"):
    ...         total = cygrad.ones(3).sum()
    >>> [(event.name, event.cpu_parent and event.cpu_parent.name) for event in prof.function_events]
    [('the sum', None), ('aten::ones', 'the sum'), ('aten::sum', 'the sum')]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._ranges: list[Any] = []

    def __enter__(self) -> Self:
        for argument, value, wanted in (("name", self.name, "str"), ("args", self.args, "Optional[str]")):
            if not isinstance(value, str) and (value is not None or wanted == "str"):
                raise RuntimeError(
                    f"profiler::_record_function_enter_new() Expected a value of type '{wanted}' for argument "
                    f"'{argument}' but instead found type '{type(value).__name__}'."
                )
        self._ranges.append(begin_range(self.name))
        return self

    def __exit__(self, *exc_info: object) -> None:
        end_range(self._ranges.pop())

    def __call__(self, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def named(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named


class emit_nvtx:
    """Mark ops on GPUs, backward nodes and `record_function` in the timeline of NVIDIA's profilers.

    The range of an op is named "aten::mul, seq = 5" where it is recorded, and that of its node "MulBackward0, seq = 5".
    With `record_shapes` the sizes of arrays follow. Raises AssertionError on entry if there is no GPU.

    >>> import cygrad
    >>> with cygrad.autograd.profiler.emit_nvtx(enabled=False):
    ...     x = cygrad.ones(2) * 2
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        if not is_available():
            raise AssertionError(
                "Torch not compiled with CUDA enabled\n"
                "  no usable GPU was found; profile() and export_chrome_trace() do not need one"
            )
        self.entered = True
        self._events = Events()
        self._events.watcher = Ranges(self.record_shapes)
        self._events.watcher.start()
        self._events.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.enabled:
            self._events.stop()
            self._events.watcher.stop()


class emit_itt:
    """Placeholder for marking ops in the timeline of Intel's VTune, which would require linking with Intel's library.

    Entering raises RuntimeError unless `enabled` is False; `profile` and `export_chrome_trace` need no library.

    >>> import cygrad
    >>> with cygrad.autograd.profiler.emit_itt(enabled=False):
    ...     x = cygrad.ones(2) * 2
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if self.enabled:
            raise RuntimeError(
                "ITT functions not installed. Are you sure you have a ITT build?\n"
                "  profile() and export_chrome_trace() do not need them"
            )

    def __exit__(self, *exc_info: object) -> None:
        pass


def load_nvprof(path: str) -> EventList:
    """Return the ranges and kernels in a SQLite file of NVIDIA's nvprof as an `EventList`.

    Raises sqlite3.OperationalError for other files, RuntimeError if two ranges have the same number.

    >>> import cygrad
    >>> import os, sqlite3, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         cygrad.autograd.profiler.load_nvprof(os.path.join(folder, "nothing"))
    ...     except sqlite3.OperationalError as error:
    ...         print("not a file of nvprof")
    not a file of nvprof
    """
    from cygrad.autograd._nvprof import read_nvprof  # few programs need it

    return read_nvprof(path)


def parse_nvprof_trace(path: str) -> Any:
    """Return the result of `load_nvprof` as a list.

    >>> import cygrad
    >>> import os, sqlite3, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         cygrad.autograd.profiler.parse_nvprof_trace(os.path.join(folder, "nothing"))
    ...     except sqlite3.OperationalError as error:
    ...         print("not a file of nvprof")
    not a file of nvprof
    """
    return list(load_nvprof(path))


def __getattr__(name: str) -> Any:
    if name != "EnforceUnique":
        raise AttributeError(f"module 'cygrad.autograd.profiler' has no attribute {name!r}")
    from cygrad.autograd._nvprof import EnforceUnique  # this imports SQLite

    return EnforceUnique
