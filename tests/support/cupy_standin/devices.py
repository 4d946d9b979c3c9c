"""`cupy.cuda`: devices, streams, events, captured graphs, and the few runtime functions."""

import time
import weakref

from . import memory, state

NULL, PTDS = 0, 2
made: weakref.WeakSet = weakref.WeakSet()  # streams


class Device:
    """A device; `with Device(1):` makes it the current one."""

    def __init__(self, device=None):
        self.id = state.current_device() if device is None else int(device)
        if isinstance(device, bool) or self.id < 0:
            raise ValueError("Device ID must be a non-negative integer")

    def __int__(self):
        return self.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def __hash__(self):
        return hash(self.id)

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __lt__(self, other):
        return self.id < other.id

    def __enter__(self):
        before = getattr(state.local, "entered", [])
        state.local.entered = [*before, state.current_device()]
        state.set_device(self.id)
        return self

    def __exit__(self, *_):
        *state.local.entered, before = state.local.entered
        state.set_device(before)

    def use(self):
        state.set_device(self.id)

    def synchronize(self):
        if any(stream.is_capturing() for stream in made):
            raise state.cuda_error("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is "
                                         "capturing")  # fmt: skip
        state.synchronize("Device.synchronize")
        state.waited(None, {own: n for own, n in state.counts.items() if own[0] == self.id})

    @property
    def compute_capability(self):
        return "90"

    @property
    def attributes(self):
        return {"MaxSharedMemoryPerBlock": 49152, "MaxSharedMemoryPerBlockOptin": 232448, "MultiProcessorCount": 4,
                "MaxThreadsPerBlock": 1024, "WarpSize": 32, "ClockRate": 1_000_000}  # fmt: skip

    @property
    def mem_info(self):
        used = sum(pool._of(self.id)["arenas"].total for pool in memory.pools)
        return memory.TOTAL - used, memory.TOTAL

    @property
    def pci_bus_id(self):
        return f"0000:0{self.id}:00.0"

    @property
    def cublas_handle(self):
        return 1

    @property
    def cusolver_handle(self):
        return 1


class _Stream:
    def __init__(self, ptr, device_id):
        self.ptr = ptr
        self.device_id = device_id
        self._capture = None
        made.add(self)

    def __eq__(self, other):
        return isinstance(other, _Stream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)

    def __repr__(self):
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def __enter__(self):
        streams = state.local.__dict__.setdefault("streams", {})
        here = state.current_device()
        if self.device_id not in (-1, here):
            raise RuntimeError(f"This stream was created on device {self.device_id}, while the current is {here}")
        state.local.__dict__.setdefault("entered_streams", []).append((here, streams.get(here)))
        streams[here] = self
        return self

    def __exit__(self, *_):
        device, before = state.local.entered_streams.pop()
        state.local.streams[device] = before

    def use(self):
        if self.device_id not in (-1, state.current_device()):
            raise RuntimeError(f"This stream was created on device {self.device_id}")
        state.local.__dict__.setdefault("streams", {})[state.current_device()] = self
        return self

    @property
    def done(self):
        return True

    @property
    def is_non_blocking(self):
        return False

    @property
    def priority(self):
        return 0

    def is_capturing(self):
        return self._capture is not None

    def synchronize(self):
        if self.is_capturing():
            raise RuntimeError("the current stream is capturing, so synchronous API calls are disallowed")
        state.synchronize("Stream.synchronize")
        state.waited(None, state.seen_by(self._key()))

    def _key(self):
        return (state.current_device() if self.device_id < 0 else self.device_id), self.ptr

    def record(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        state.waited(self._key(), event._seen)
        if event._capture is not None and self._capture is not event._capture:
            self._capture = event._capture  # the stream joins the capture
            event._capture.forks.append(self)
        elif self._capture is not None and event._capture is None:
            raise state.cuda_error(
                "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"
            )
        elif self._capture is not None:
            event._capture.joined.add(event._stream)

    def add_callback(self, callback, arg):
        callback(self, 0, arg)

    def launch_host_func(self, callback, arg):
        state.launch("host function", lambda: callback(arg), [])

    def begin_capture(self, mode=None):
        if self.ptr == NULL:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.is_capturing():
            raise RuntimeError("the stream is already capturing")
        self._capture = Capture(self)

    def end_capture(self):
        if not self.is_capturing():
            raise RuntimeError("cudaStreamEndCapture: the stream is not capturing")
        capture, self._capture = self._capture, None
        unjoined = [fork for fork in capture.forks if fork is not self and fork not in capture.joined]
        for fork in capture.forks:
            fork._capture = None
        if unjoined:
            raise state.cuda_error("cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work")
        return Graph._of(capture)


class Stream(_Stream):
    """A stream; its work is executed immediately."""

    _made = 1000

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self._non_blocking = non_blocking
        if null or ptds:
            super().__init__(NULL if null else PTDS, -1)
        else:
            Stream._made += 1
            super().__init__(Stream._made, state.current_device())
            if non_blocking:
                state.non_blocking.add(self._key())

    @property
    def is_non_blocking(self):
        return self._non_blocking

    def __cuda_stream__(self):
        return 0, self.ptr

    @classmethod
    def from_external(cls, stream):
        _, ptr = stream.__cuda_stream__()
        return ExternalStream(ptr)


class ExternalStream(_Stream):
    def __init__(self, ptr, device_id=-1):
        super().__init__(ptr, device_id)


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id=None):
    streams = getattr(state.local, "streams", {})
    return streams.get(state.current_device() if device_id is None else device_id) or Stream.null


class Event:
    """An event recorded in a stream."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._time = None
        self._timed = not disable_timing
        self._capture = None
        self._seen = {}
        self.ptr = id(self)
        self.device_id = state.current_device()

    @property
    def done(self):
        if self._capture is None:
            state.waited(None, self._seen)  # the host now knows that this work is done
        return True

    def record(self, stream=None):
        stream = get_current_stream() if stream is None else stream
        if stream.device_id >= 0 and stream.device_id != self.device_id:
            raise state.cuda_error("cudaErrorInvalidResourceHandle", "the event is of another device")
        self._time = time.perf_counter()
        self._capture = stream._capture
        self._stream = stream
        self._seen = state.seen_by(stream._key())

    def synchronize(self):
        if self._capture is not None:
            raise state.cuda_error("cudaErrorCapturedEvent", "operation not permitted on an event last recorded "
                                         "in a capturing stream")  # fmt: skip
        state.synchronize("Event.synchronize")
        state.waited(None, self._seen)


def get_elapsed_time(start_event, end_event):
    if start_event._capture or end_event._capture:
        raise state.cuda_error("cudaErrorCapturedEvent", "operation not permitted on a captured event")
    if not (start_event._timed and end_event._timed) or None in (start_event._time, end_event._time):
        raise state.cuda_error("cudaErrorInvalidResourceHandle", "invalid resource handle")
    return (end_event._time - start_event._time) * 1e3


# --- Graphs ------------------------------------------------------------------------------------


class Capture:
    """The kernel launches of a capture. If a block is meanwhile returned to a shared pool, replaying the graph would
    write to memory that belongs to someone else.
    """

    def __init__(self, stream):
        self.stream = stream
        self.work = []
        self.blocks = {}
        self.forks = []
        self.joined = set()

    def add(self, name, work, memories):
        self.work.append((name, work))
        for mem in memories:
            pool = getattr(mem, "_pool", None)
            self.blocks.setdefault(weakref.ref(mem), (name, mem.size, pool))


class Graph:
    """A captured graph, from `Stream.end_capture`."""

    def __init__(self, *_, **__):
        raise RuntimeError("a graph is made by capturing a stream")

    @classmethod
    def _of(cls, capture):
        self = object.__new__(cls)
        self._capture = capture
        self.graph = self.graphExec = id(self)
        return self

    def launch(self, stream=None):
        for block, (name, size, pool) in self._capture.blocks.items():
            if block() is None and (pool is None or pool() in (None, memory.default_pool)):
                raise AssertionError(
                    f"a graph is launched that uses a block of {size} bytes ({name}) which has gone back to a pool "
                    "that others use: capture in a memory pool of the graph's own and keep it"
                )
        made = state.tick(state.key())
        for block in self._capture.blocks:
            if block() is not None:
                block()._made = block()._used = made
        for name, work in self._capture.work:
            for seen in state.watchers:
                seen.launches.append(name)
            work()

    def upload(self, stream=None):
        pass

    def debug_dot_str(self, flags=0):
        nodes = "".join(f'  "{i}: {name}";\n' for i, (name, _) in enumerate(self._capture.work))
        return f"digraph dot {{\n{nodes}}}\n"


# --- The runtime -------------------------------------------------------------------------------


def getDeviceCount():
    return state.DEVICES


def getDevice():
    return state.current_device()


def setDevice(device):
    state.set_device(device)


def getDeviceProperties(device):
    if not 0 <= device < state.DEVICES:
        raise state.cuda_error("cudaErrorInvalidDevice", "invalid device ordinal")
    return {
        "name": b"Stand-in for a GPU",
        "totalGlobalMem": memory.TOTAL,
        "sharedMemPerBlock": 49152,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "maxThreadsPerBlock": 1024,
        "maxThreadsDim": (1024, 1024, 64),
        "maxGridSize": (2147483647, 65535, 65535),
        "maxThreadsPerMultiProcessor": 2048,
        "multiProcessorCount": 4,
        "clockRate": 1_000_000,
        "memoryClockRate": 1_000_000,
        "memoryBusWidth": 128,
        "l2CacheSize": 1 << 20,
        "major": 9,
        "minor": 0,
        "integrated": 0,
        "isMultiGpuBoard": 0,
        "pciBusID": device,
        "pciDeviceID": 0,
        "pciDomainID": 0,
        "uuid": bytes([device] * 16),
    }


def deviceSynchronize():
    state.synchronize("runtime.deviceSynchronize")


def streamSynchronize(stream):
    state.synchronize("runtime.streamSynchronize")


def memGetInfo():
    return Device().mem_info


def runtimeGetVersion():
    return 12090


def driverGetVersion():
    return 12090


def deviceCanAccessPeer(device, peer):
    return int(device != peer)


def deviceGetAttribute(attribute, device):
    return {16: 4, 36: 1_000_000, 37: 64, 75: 9, 76: 0, 97: 232448, 8: 49152, 115: 1}[attribute]


def streamIsCapturing(stream):
    return state.capturing() is not None


RUNTIME = """getDeviceCount getDevice setDevice getDeviceProperties deviceSynchronize streamSynchronize memGetInfo
    runtimeGetVersion driverGetVersion deviceCanAccessPeer deviceGetAttribute streamIsCapturing""".split()
