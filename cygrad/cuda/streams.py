"""Streams, in which a GPU executes work in order, and events, which mark points in them."""

from contextlib import ExitStack
from typing import Any

from cygrad._core.engine.streams import place_of
from cygrad._core.runtime.thread_state import set_stream as mark_nodes
from cygrad._kernels.device import cupy_library
from cygrad.cpu import _streams
from cygrad.cuda.devices import _index

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


class Stream(_streams.Stream):
    """A queue of GPU work, in addition to the default one.

    `with cygrad.cuda.stream(s):` queues the work of the block in it.

    >>> import cygrad  # on a machine with a GPU
    >>> x, side = cygrad.ones(2, device="cuda"), cygrad.cuda.Stream()
    >>> side.wait_stream(cygrad.cuda.current_stream())  # x is ready then
    >>> with cygrad.cuda.stream(side):
    ...     y = x * 2
    >>> event = side.record_event()
    >>> cygrad.cuda.current_stream().wait_event(event)  # y is ready then
    >>> side.synchronize()
    >>> side.query(), y.tolist()
    (True, [2.0, 2.0])
    """

    def __init__(self, device: Any = None, priority: int = 0, *, of: Any = None) -> None:
        index = _index(device)
        self.device_index = index
        self._blocks: list[StreamContext] = []
        with cupy_library.on_device(index):
            self._stream = cupy_library.cupy().cuda.Stream(non_blocking=True, priority=priority) if of is None else of

    @property
    def cuda_stream(self) -> int:
        """The CUDA handle."""
        return self._stream.ptr

    @property
    def stream_id(self) -> int:  # type: ignore[override]
        """The CUDA handle, which tells streams apart."""
        return self.cuda_stream

    @property
    def device(self) -> Any:
        """The stream's GPU."""
        from cygrad._core.types.device import device  # the class body redefines this name

        return device("cuda", self.device_index)

    def query(self) -> bool:
        """Whether all work in the stream has finished."""
        return self._stream.done

    def synchronize(self) -> None:
        """Wait until all work in the stream has finished."""
        self._stream.synchronize()

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Record an event at this point of the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Make future work in this stream wait for an event in another stream."""
        self._stream.wait_event(event._made())

    def wait_stream(self, stream: "Stream") -> None:
        """Make future work in this stream wait for the current work of another stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> "Stream":
        """Queue this thread's work in the stream until the end of the block."""
        self._blocks.append(StreamContext(self))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (
            other.device_index,
            other.cuda_stream,
        )

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


class Event(_streams.Event):
    """A marker in a stream, for synchronization and, with `enable_timing`, for timing.

    >>> import cygrad  # on a machine with a GPU
    >>> start, end = cygrad.cuda.Event(enable_timing=True), cygrad.cuda.Event(enable_timing=True)
    >>> start.record()
    >>> x = cygrad.ones(2, device="cuda") + 1
    >>> end.record()
    >>> end.synchronize()
    >>> end.query(), start.elapsed_time(end) >= 0  # milliseconds
    (True, True)
    >>> end.wait(cygrad.cuda.Stream())
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise RuntimeError("events cannot be shared between processes")
        self._timing, self._blocking = enable_timing, blocking
        self._place: Any = None
        self._event: Any = None  # created on the GPU where it is first recorded

    @property
    def device(self) -> Any:
        """The GPU where it was first recorded; None before."""
        return self._place

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {'uninitialized' if self._event is None else hex(self._event.ptr)}>"

    def _made(self) -> Any:
        if self._event is None:
            self._event = cupy_library.cupy().cuda.Event(block=self._blocking, disable_timing=not self._timing)
        return self._event

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in a stream, by default the current one."""
        stream = current_stream() if stream is None else stream
        with cupy_library.on_device(stream.device_index):  # the event then belongs to this GPU
            stream._stream.record(self._made())
        self._place = self._place or stream.device

    def wait(self, stream: Stream | None = None) -> None:
        """Make a stream, by default the current one, wait for the event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether all work before the event has finished."""
        return self._event is None or self._event.done

    def synchronize(self) -> None:
        """Wait until all work before the event has finished."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event: "Event") -> float:
        """Return the milliseconds to another event. Raises unless both have `enable_timing` and were recorded."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._event is None or end_event._event is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return cupy_library.cupy().cuda.get_elapsed_time(self._event, end_event._event)


def current_stream(device: Any = None) -> Stream:
    """Return the stream that this thread's work is queued in.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.current_stream() == cygrad.cuda.default_stream()
    True
    """
    index = _index(device)
    with cupy_library.on_device(index):
        return Stream(index, of=cupy_library.cupy().cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the default stream.

    >>> import cygrad  # on a machine with a GPU
    >>> cygrad.cuda.default_stream().device.type
    'cuda'
    """
    return Stream(_index(device), of=cupy_library.cupy().cuda.Stream.null)


class StreamContext:
    """A context in which this thread's work is queued in a stream; None is a no-op.

    >>> import cygrad  # on a machine with a GPU
    >>> side = cygrad.cuda.Stream()
    >>> with cygrad.cuda.StreamContext(side):
    ...     cygrad.cuda.current_stream() == side
    True
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._contexts: list[ExitStack] = []

    def __enter__(self) -> None:
        entered = ExitStack()
        if self.stream is not None:
            entered.enter_context(cupy_library.on_device(self.stream.device_index))
            entered.enter_context(self.stream._stream)
            entered.callback(mark_nodes, mark_nodes(place_of(self.stream._stream, self.stream.device_index)))
        self._contexts.append(entered)

    def __exit__(self, *error: Any) -> None:
        self._contexts.pop().close()


def stream(stream: Stream | None) -> StreamContext:
    """Return a context in which this thread's work is queued in `stream`.

    >>> import cygrad  # on a machine with a GPU
    >>> side = cygrad.cuda.Stream()
    >>> with cygrad.cuda.stream(side):
    ...     cygrad.cuda.current_stream() == side
    True
    """
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Queue this thread's work in a stream from now on.

    >>> import cygrad  # on a machine with a GPU
    >>> side = cygrad.cuda.Stream()
    >>> cygrad.cuda.set_stream(side)
    >>> cygrad.cuda.current_stream() == side
    True
    >>> cygrad.cuda.set_stream(cygrad.cuda.default_stream())
    """
    if stream is not None:
        cupy_library.on_device(stream.device_index).use()
        stream._stream.use()
        mark_nodes(place_of(stream._stream, stream.device_index))
