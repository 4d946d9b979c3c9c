"""GPU streams in a backward pass.

Note [Streams of backward]
--------------------------
A node stores the stream that was current when it was recorded (None for the default stream), and its rule runs in that
stream. If a gradient comes from another stream, the node waits for it by an event. Leaves accumulate in the stream that
called backward. That stream finally waits for all others, so that subsequent code may use the gradients. Memory returns
to the stream that allocated it: gradients that another stream reads are kept until the end, when the streams wait for
each other.

With several GPUs, a rule also runs on the GPU of its gradient (Note [Several GPUs]).

A stream token ("place") is (index of the GPU, CUDA's handle, CuPy's stream), or None for the default stream.
"""

from cygrad._core.registry.several_gpus import gpu_of
from cygrad._core.runtime.thread_state import set_stream
from cygrad._kernels.device.cupy_library import cupy, current_device, on_device
from cygrad._library import later

graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")  # needed only on GPUs


def place_of(stream, index):
    """Return the token for CuPy's stream on a GPU."""
    return (index, stream.ptr, stream) if stream.ptr else None


class Pass:
    """The streams of a backward pass; created only if a non-default stream takes part, or if there are several GPUs."""

    def __init__(self):
        index = current_device()
        cuda = cupy().cuda
        self._event, self._null = cuda.Event, cuda.Stream.null
        self._own = self._now = place_of(cuda.get_current_stream(), index)
        self._former = set_stream(self._own)
        self._before = {index: cuda.get_current_stream()}  # by GPU: the stream to restore
        self._gpu = self._former_gpu = index
        self._made_in = {}  # by entry: (token, event or None) of its gradient
        self._used = []
        self._kept = []

    def enter(self, entry, place, is_leaf, grad):
        """Switch to the stream of a node, and make it wait for the gradient."""
        place = self._own if is_leaf else place
        if place != self._now:
            self._go(place)
        self._take(entry, grad)
        index = gpu_of(grad)
        if index >= 0 and index != self._gpu:
            self._switch(index)

    def _switch(self, index):
        on_device(index).use()
        self._gpu = index

    def add(self, entry, present):
        """Prepare for adding a gradient to what has arrived, which may be from another stream."""
        self._take(entry, tuple(present) if isinstance(present, list) else present)

    def gave(self, entry, place, is_leaf):
        """Record a gradient that has just been added; `place` is where it will be used."""
        is_elsewhere = (self._own if is_leaf else place) != self._now
        self._made_in[entry] = self._now, self._mark(self._now) if is_elsewhere else None

    def leave(self):
        """Restore the former streams, and wait for all others."""
        self._switch(self._former_gpu)
        self._go(self._own)
        for index, stream in self._before.items():
            with on_device(index):
                stream.use()
        set_stream(self._former)
        others = [place for place in self._used if place != self._own]
        for place in others:
            self._wait(self._own, self._mark(place))
        capture = graph_capture.current()
        if capture is not None:
            capture.kept += self._kept
        elif self._kept:
            mark = self._mark(self._own)
            for place in others:
                self._wait(place, mark)

    def _take(self, entry, grad):
        made_in, mark = self._made_in.get(entry, (self._own, None))
        if made_in != self._now and grad is not None:
            self._wait(self._now, self._mark(made_in) if mark is None else mark)
            self._kept.append(grad)

    def _go(self, place):
        for index in {at[0] for at in (self._now, place) if at is not None} or self._before:
            with on_device(index):
                self._before.setdefault(index, cupy().cuda.get_current_stream())
                (place[2] if place is not None and place[0] == index else self._null).use()
        self._now = place
        if place not in self._used:
            self._used.append(place)
        set_stream(place)

    def _each(self, place):
        """Return the streams that a token stands for: its own, or the default one of each GPU."""
        if place is None:
            return [(index, self._null) for index in self._before]
        return [(place[0], place[2])]

    def _mark(self, place):
        events = []
        for index, stream in self._each(place):
            with on_device(index):
                events.append(stream.record(self._event(disable_timing=True)))
        return events

    def _wait(self, place, events):
        for index, stream in self._each(place):
            with on_device(index):
                for event in events:
                    stream.wait_event(event)
