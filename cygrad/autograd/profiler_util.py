"""Results of the profiler: events, lists of events, and averages; the tables are in `_profiler_table`."""

import enum
import itertools
from typing import Any

from cygrad._core.errors.sites import is_ours, place
from cygrad._core.graph.observers import FUNCTION, IN_PLACE, NODE, RANGE, WITH_OUT
from cygrad.autograd import _profiler_table as tables
from cygrad.autograd._profiler_names import (  # noqa: F401, libraries look for them here
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    _filter_name,
    _filter_stack_entry,
    _rewrite_name,
)
from cygrad.autograd._profiler_table import memory_text as _format_memory  # noqa: F401, libraries look for it here
from cygrad.autograd._profiler_table import share_text as _format_time_share  # noqa: F401, libraries look for it here
from cygrad.autograd._profiler_table import time_text
from cygrad.autograd._profiler_tree import drop_repeated, nest

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]


def _format_time(time_us):
    """Return a time as text, in the unit that suits it.

    >>> from cygrad.autograd.profiler_util import _format_time
    >>> _format_time(1500.5), _format_time(2.5e6)
    ('1.500ms', '2.500s')
    """
    return time_text(time_us)


def _attr_formatter(name):
    """Return a property that shows the time of another attribute as text.

    >>> from cygrad.autograd.profiler_util import _attr_formatter
    >>> type("Timed", (), {"us": 2.5e6, "text": _attr_formatter("us")})().text
    '2.500s'
    """
    return property(lambda self: _format_time(getattr(self, name)))


class DeviceType(enum.Enum):
    """The device on which an event ran.

    >>> import cygrad
    >>> from cygrad.autograd import profiler
    >>> profiler.DeviceType.CPU.name
    'CPU'
    """

    CPU = 0
    CUDA = 1


class Interval:
    """A time interval, in microseconds.

    >>> import cygrad
    >>> from cygrad.autograd.profiler_util import Interval
    >>> Interval(10.0, 30.0).start
    10.0
    """

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """Return the length of the interval.

        >>> import cygrad
        >>> from cygrad.autograd.profiler_util import Interval
        >>> Interval(10.0, 30.0).elapsed_us()
        20.0
        """
        return self.end - self.start

    def __repr__(self):
        return f"Interval({self.start:.3f}, {self.end:.3f})"


class Kernel:
    """A kernel that an event launched on another device.

    >>> import cygrad
    >>> from cygrad.autograd.profiler_util import Kernel
    >>> Kernel("mul_kernel", 0, 5).duration
    5
    """

    def __init__(self, name, device, duration):
        self.name, self.device, self.duration = name, device, duration

    def __repr__(self):
        return f"Kernel(name={self.name!r}, device={self.device}, duration={self.duration})"


class FormattedTimesMixin:
    """Formatted and per-call times, for classes with totals in microseconds and a count."""

    @property
    def cpu_time(self: Any):
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self: Any):
        """Microseconds per call on another device."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    @property
    def cpu_time_str(self: Any):
        """`cpu_time` with its unit."""
        return tables.time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self: Any):
        """`cpu_time_total` with its unit."""
        return tables.time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self: Any):
        """`self_cpu_time_total` with its unit."""
        return tables.time_text(self.self_cpu_time_total)

    @property
    def device_time_str(self: Any):
        """`device_time` with its unit."""
        return tables.time_text(self.device_time)

    @property
    def self_device_time_total_str(self: Any):
        """`self_device_time_total` with its unit."""
        return tables.time_text(self.self_device_time_total)

    @property
    def cuda_time_total(self: Any):
        """Microseconds on another device."""
        return self.device_time_total

    @property
    def device_time_total_str(self: Any):
        """`device_time_total` with its unit."""
        return tables.time_text(self.device_time_total)


class FunctionEvent(FormattedTimesMixin):
    """One event: an op, a node of a backward pass, a custom function, or a user-named range.

    `cpu_parent` and `cpu_children` form a tree of events; `sequence_nr` is that of the node that an op recorded, or of
    the node that ran; `forward` of a node's event is the event of its op; `site` is `file:line` of the op, also for its
    node; `saved_bytes` is the memory that the node saves for backward; `algorithm` is the one that a convolution ran,
    such as 'winograd'. Attributes that only PyTorch's tracer can fill have the values that mean "nothing" there.

    >>> import cygrad
    >>> from cygrad.autograd import profiler
    >>> event = profiler.FunctionEvent(0, "load", 0, 10.0, 30.0)
    >>> event.name, event.cpu_time_total
    ('load', 20.0)
    """

    count = 1
    activity_type, metadata_json, event_metadata = "cpu_op", "", None
    external_id = linked_correlation_id = flow_id = flow_type = 0
    flow_start = False
    python_id = python_parent_id = python_module_id = -1
    self_cpu_percent = total_cpu_percent = total_device_percent = -1

    def __init__(
        self, id, name, thread, start_us, end_us, overload_name="", fwd_thread=None, input_shapes=None, stack=None,
        scope=0, use_device=None, cpu_memory_usage=0, device_memory_usage=0, is_async=False, is_remote=False,
        sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU, device_index=0, device_resource_id=None,
        is_legacy=False, flops=None, trace_name=None, concrete_inputs=None, kwinputs=None, is_user_annotation=False,
        is_python_function=False, *, saved_bytes=0, code=None, offset=0, algorithm=None
    ):  # fmt: skip
        self.id, self.name, self.thread, self.overload_name = id, name, thread, overload_name
        self.trace_name, self.key = trace_name or name, name
        self.time_range = Interval(start_us, end_us)
        self.fwd_thread, self.sequence_nr, self.scope, self.node_id = fwd_thread, sequence_nr, scope, node_id
        self.input_shapes, self.concrete_inputs, self.kwinputs = input_shapes or [], concrete_inputs, kwinputs
        self.structured_input_shapes, self.structured_input_strides, self.input_dtypes = [], [], []
        self.stack = stack or []
        self.self_cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_async, self.is_remote, self.is_legacy, self.flops = is_async, is_remote, is_legacy, flops
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.saved_bytes, self.algorithm = saved_bytes, algorithm
        self.code, self.offset = code, offset
        self.cpu_children, self.cpu_parent, self.forward, self.kernels = [], None, None, []
        self._total_memory = None

    @property
    def site(self):
        """`file:line` of the user's code."""
        return place(self.code, self.offset)

    @property
    def cpu_time_total(self):
        """Microseconds, including nested events."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        """Microseconds, excluding nested events; 0 for one that runs beside the others."""
        if self.is_async:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self):
        """Bytes of new results, including nested events."""
        if self._total_memory is None:
            self._total_memory = self.self_cpu_memory_usage + sum(c.cpu_memory_usage for c in self.cpu_children)
        return self._total_memory

    @property
    def device_time_total(self):
        """Microseconds on another device, including nested events."""
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_device_time_total(self):
        """Microseconds on another device, excluding nested events."""
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    self_cuda_time_total = self_device_time_total

    @property
    def self_device_memory_usage(self):
        """Bytes on another device, excluding nested events."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    self_cuda_memory_usage = self_device_memory_usage

    def append_kernel(self, name, device, duration):
        """Add a kernel of another device.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> event = profiler.FunctionEvent(0, "mul", 0, 0.0, 30.0)
        >>> event.append_kernel("mul_kernel", 0, 5)
        >>> event.kernels[0].name
        'mul_kernel'
        """
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        """Add an event that ran inside this one.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> outer = profiler.FunctionEvent(0, "outer", 0, 0.0, 30.0)
        >>> outer.append_cpu_child(profiler.FunctionEvent(1, "inner", 0, 10.0, 20.0))
        >>> outer.self_cpu_time_total
        20.0
        """
        self.cpu_children.append(child)
        child.set_cpu_parent(self)

    def set_cpu_parent(self, parent):
        """Set the event that this one ran inside.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> outer = profiler.FunctionEvent(0, "outer", 0, 0.0, 30.0)
        >>> inner = profiler.FunctionEvent(1, "inner", 0, 10.0, 20.0)
        >>> inner.set_cpu_parent(outer)
        >>> inner.cpu_parent is outer
        True
        """
        self.cpu_parent = parent

    def __repr__(self):
        device = self.use_device
        fields = {
            "id": self.id, "name": self.name, "overload_name": self.overload_name, "device_type": self.device_type,
            "node_id": self.node_id, "cpu_time": self.cpu_time_str, "start_us": f"{self.time_range.start:.3f}",
            "end_us": f"{self.time_range.end:.3f}", "cpu_children": [child.id for child in self.cpu_children],
            f"{device}_time": self.device_time_str, "thread": self.thread, "input_shapes": self.input_shapes,
            "cpu_memory_usage": self.cpu_memory_usage, f"{device}_memory_usage": self.device_memory_usage,
            "is_async": self.is_async, "is_remote": self.is_remote, "seq_nr": self.sequence_nr,
            "is_legacy": self.is_legacy,
        }  # fmt: skip
        return f"<FunctionEvent {' '.join([f'{name}={value}' for name, value in fields.items()])}>"


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of several events of one kind.

    >>> import cygrad
    >>> from cygrad.autograd import profiler
    >>> average = profiler.FunctionEventAvg()
    >>> average = average.add(profiler.FunctionEvent(0, "mul", 0, 0.0, 30.0))
    >>> average.key, average.count
    ('mul', 1)
    """

    def __init__(self):
        self.key = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = self.device_time_total = self.self_device_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.saved_bytes = self.flops = 0
        self.input_shapes, self.stack, self.overload_name, self.scope = None, None, "", 0
        self.cpu_parent, self.cpu_children = None, None
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.node_id, self.use_device, self.device_type = 0, None, DeviceType.CPU

    def add(self, other):
        """Add an event or another sum. Raises AssertionError for anything else, and for an event of another name.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> average = profiler.FunctionEventAvg()
        >>> for start in (0.0, 50.0):
        ...     average = average.add(profiler.FunctionEvent(0, "mul", 0, start, start + 30.0))
        >>> average.count, average.cpu_time_total
        (2, 60.0)
        """
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key not in (None, "Total", other.key):
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        if self.key is None:
            self.key, self.overload_name, self.scope = other.key, other.overload_name, other.scope
            self.input_shapes, self.stack, self.cpu_parent = other.input_shapes, other.stack, other.cpu_parent
            self.is_async, self.is_remote, self.node_id = other.is_async, other.is_remote, other.node_id
            self.use_device, self.device_type, self.is_legacy = other.use_device, other.device_type, other.is_legacy
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + (getattr(other, name) or 0))
        return self

    __iadd__ = add

    def __repr__(self):
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


_SUMS = (
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "saved_bytes",
    "flops",
)


class EventList(list[Any]):
    """A list of events or averages that prints as a table.

    >>> import cygrad
    >>> from cygrad.autograd import profiler
    >>> with profiler.profile() as profile:
    ...     x = cygrad.ones(2) * 2
    >>> [event.name for event in profile.function_events if event.name == "aten::mul"]
    ['aten::mul']
    """

    def __init__(self, events=(), profile_memory=False, with_stack=False, use_device=None, with_flops=False):
        super().__init__(events)
        self.profile_memory, self.with_stack, self.with_flops = profile_memory, with_stack, with_flops

    def _build_tree(self):
        """Make events parents of those that ran inside them on their thread; drop those that repeat their parent."""
        nest(self)
        drop_repeated(self)

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        """The total time of all events, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
        max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None
    ):  # fmt: skip
        """Return the events as text, sorted by descending `sort_by`.

        sort_by
            an attribute such as 'self_cpu_time_total', 'cpu_time_total', 'cpu_memory_usage', 'count', 'saved_bytes'
        row_limit
            maximal number of rows; -1 or None: all
        time_unit
            's', 'ms' or 'us' for all times; None: a suitable unit for each time

        The layout is PyTorch's. Columns of names, shapes and frames are four characters wider than the longest text of
        all events, up to their limits. A row shows the innermost frame of its stack; the others follow below.

        Raises AttributeError for a `sort_by` that events do not have.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile() as profile:
        ...     x = cygrad.ones(2) * 2
        >>> "aten::mul" in profile.function_events.table(sort_by="cpu_time_total")
        True
        """
        widths = {"name": max_name_column_width, "shapes": max_shapes_column_width, "source": max_src_column_width}
        return tables.event_table(self, sort_by, row_limit, widths, header, top_level_events_only, time_unit)

    def key_averages(
        self,
        group_by_input_shapes=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
        *,
        group_by_input_shape=False,
    ):
        """Return sums over events with the same name and, optionally, the same input shapes or Python stack.

        `group_by_input_shape` is the argument's name in `profile.key_averages`.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile() as profile:
        ...     for _ in range(3):
        ...         x = cygrad.ones(2) * 2
        >>> [each.count for each in profile.function_events.key_averages() if each.key == "aten::mul"]
        [3]
        """
        by_shapes = group_by_input_shapes or group_by_input_shape
        sums: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            key = [event.key]
            if by_shapes:
                key.append(str(event.input_shapes))
            if group_by_overload_name:
                key.append(event.overload_name)
            key += event.stack[:group_by_stack_n]
            sums.setdefault(tuple(key), FunctionEventAvg()).add(event)
        for found in sums.values():
            found.stack = (found.stack or [])[:group_by_stack_n]
            found.input_shapes = found.input_shapes if by_shapes else ""
            found.overload_name = found.overload_name if group_by_overload_name else ""
        return EventList(sums.values(), self.profile_memory, self.with_stack, with_flops=self.with_flops)

    def total_average(self):
        """Return the sum over all events, under the name 'Total'.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> profiler.EventList().total_average().key
        'Total'
        """
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None  # so that the next one's name need not match
        total.key = "Total"
        return total

    def by_line(self):
        """Return sums over the events of each line of the user's code: a list of `Line`, the slowest first.

        Backward time is that of the nodes that the line recorded; the bytes are those that these nodes save.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile() as profile:
        ...     x = cygrad.ones(2) * 2
        >>> len(profile.function_events.by_line()) > 0
        True
        """
        return tables.lines_of(self)

    def line_table(self, sort_by="time", row_limit=100, max_src_column_width=75, header=None):
        """Return `by_line()` as text; `sort_by` is 'time', 'forward', 'backward', 'saved_bytes' or 'count'.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile() as profile:
        ...     x = cygrad.ones(2) * 2
        >>> isinstance(profile.function_events.line_table(), str)
        True
        """
        return tables.line_table(self.by_line(), sort_by, row_limit, max_src_column_width, header)

    def export_chrome_trace(self, path):
        """Write the events as a Chrome trace, for chrome://tracing or ui.perfetto.dev, with arrows to the backward.

        >>> import cygrad
        >>> import json, os, tempfile
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile() as profile:
        ...     x = cygrad.ones(2) * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trace.json")
        ...     profile.function_events.export_chrome_trace(path)
        ...     with open(path) as file:
        ...         print("aten::mul" in file.read())
        True
        """
        from cygrad.autograd._profiler_trace import write_trace  # few programs need it

        write_trace(self, path)

    def supported_export_stacks_metrics(self):
        """Return the metrics by which `export_stacks` can weight stacks.

        >>> import cygrad
        >>> from cygrad.autograd import profiler
        >>> profiler.EventList().supported_export_stacks_metrics()
        ['self_cpu_time_total', 'self_cuda_time_total']
        """
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path, metric):
        """Write one line for each Python stack, with its weight, for tools that draw flame graphs.

        Raises ValueError for other metrics; writes nothing without `with_stack=True`.

        >>> import cygrad
        >>> import os, tempfile
        >>> from cygrad.autograd import profiler
        >>> with profiler.profile(with_stack=True) as profile:
        ...     x = cygrad.ones(2) * 2
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "stacks.txt")
        ...     profile.function_events.export_stacks(path, "self_cpu_time_total")
        ...     print(os.path.exists(path))
        True
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        name = metric.replace("cuda", "device")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                weight = int(getattr(event, name))
                if event.stack and weight > 0:
                    frames = [frame.translate(str.maketrans(" ;\t\n", "____")) for frame in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {weight}\n")


def events_of(rows, thread, profile_memory=False, device_times=None):
    """Convert the rows from `Events.rows()` to a tree of events, with links from nodes to their forward ops.

    `device_times`: {index of a row: (index of the GPU, microseconds)}.
    """
    times = device_times or {}
    rows = [(*row, times.get(number)) for number, row in enumerate(rows)]
    events = EventList(profile_memory=profile_memory)
    recorded: dict[tuple[int, int], FunctionEvent] = {}  # by (node, sequence number)
    open_events: list[FunctionEvent] = []
    rows.sort(key=lambda row: (row[0], -row[1]))
    for number, row in enumerate(rows, 1):
        start, end, owner, kind, node, sequence, saved, allocated, code, offset, shapes, stack, algorithm, device = row
        name, overload = _name(owner, kind)
        event = FunctionEvent(
            number, name, thread, start, end, overload, None, shapes, _stack_lines(stack),
            _SCOPES.get(kind, 0), cpu_memory_usage=allocated if profile_memory else 0, sequence_nr=sequence,
            is_user_annotation=kind == RANGE, saved_bytes=saved, code=code, offset=offset, algorithm=algorithm
        )  # fmt: skip
        while open_events and open_events[-1].time_range.end <= start:
            open_events.pop()
        if open_events:
            open_events[-1].append_cpu_child(event)
        if start < end:
            open_events.append(event)
        if kind == NODE:
            event.forward = recorded.get((node, sequence))
            event.fwd_thread = thread if event.forward is not None else None
        elif sequence >= 0:
            recorded[node, sequence] = event
        if device is not None:
            event.use_device = "cuda"
            event.append_kernel(name, *device)
        events.append(event)
    return events


_SCOPES = {NODE: 1, RANGE: 7}  # PyTorch's numbers


def _name(owner, kind):
    """Return (name, overload name) of an event, whose owner is the row of an op, or a name."""
    owner = owner.__name__ if isinstance(owner, type) else owner
    if kind == NODE:
        return getattr(owner, "node_name", owner), ""
    name = getattr(owner, "name", owner)
    if kind in (FUNCTION, RANGE):
        return name.removesuffix("Backward") if kind == FUNCTION else name, ""
    name, _, overload = name.partition(".")
    if kind == IN_PLACE:
        name = name.removesuffix("_") + "_"
    return f"aten::{name}", "out" if kind == WITH_OUT else overload


def _stack_lines(stack):
    """Return the Python functions, from the user's innermost line outwards."""
    stack = itertools.dropwhile(lambda frame: is_ours(frame[0]), stack or ())
    return [f"{code.co_filename}({line}): {code.co_name}" for code, line in stack]
