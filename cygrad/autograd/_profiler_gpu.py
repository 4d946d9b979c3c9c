"""GPU support of the profiler: times by CUDA events, and ranges in the timeline of NVIDIA's tools.

`Events` (profiler_events.pyx) notifies both when an op, a node, a custom function or a user-named range begins and
ends.
"""

from cygrad._core.graph.observers import NODE
from cygrad._core.graph.opdef import registry
from cygrad._core.runtime.thread_state import get_modes, next_sequence_nr
from cygrad._kernels.device import cupy_library, gpu_forms
from cygrad._kernels.gpu.runtime.graph_capture import is_capturing


class DeviceTimes:
    """Two CUDA events around each op on a GPU. Nothing is synchronized until `times` is called."""

    def __init__(self):
        self._mark = None  # start of the running op
        self._pairs = {}

    def _now(self):
        if is_capturing():
            return None
        event = cupy_library.cupy().cuda.Event()
        event.record()
        return cupy_library.current_device(), event

    def mark(self):
        """An op begins."""
        self._mark = self._now()

    def note(self, number, outs):
        """The op has ended; `number` is the index of its event."""
        first, self._mark = self._mark, None
        if first is not None and outs and outs[0].is_cuda:
            self._pairs[number] = first, self._now()

    def begin(self, number, owner, kind, sequence):
        """An event that may contain ops begins."""
        self._mark = None
        self._pairs[number] = self._now(), None

    def end(self, number):
        """That event ends."""
        self._mark = None
        self._pairs[number] = self._pairs[number][0], self._now()

    def times(self):
        """Return {index of an event: (index of the GPU, microseconds)}."""
        found = {}
        for number, (first, last) in self._pairs.items():
            if first is not None and last is not None and first[0] == last[0]:
                with cupy_library.on_device(first[0]):
                    last[1].synchronize()
                    found[number] = first[0], cupy_library.cupy().cuda.get_elapsed_time(first[1], last[1]) * 1e3
        return found


class Ranges:
    """An NVTX range for each node, custom function and user-named range, and for each kernel of an op."""

    def __init__(self, with_shapes):
        self._with_shapes = with_shapes
        self._nvtx = cupy_library.cupy().cuda.nvtx
        self._names, self._rows = {}, 0

    def _name(self, kernel):
        """Return the name of the op that a kernel belongs to; families register their rows on first use."""
        if len(registry) != self._rows:
            self._rows = len(registry)
            for op in list(registry.values()):
                key = op.kernel if op.ufunc is None else op.ufunc.numpy
                self._names.setdefault(key, f"aten::{op.name.partition('.')[0]}")
        return self._names.get(kernel) or getattr(kernel, "__name__", "kernel")

    def start(self):
        """Start wrapping kernels in ranges."""
        self._outer, gpu_forms.around = gpu_forms.around, self._around

    def stop(self):
        """Stop wrapping kernels in ranges."""
        gpu_forms.around = self._outer

    def _around(self, kernel, call, args, kwargs):
        text = self._name(kernel)
        if not get_modes():
            text += f", seq = {next_sequence_nr()}"
        if self._with_shapes:
            text += f", sizes = {[list(a.shape) for a in args if hasattr(a, 'shape')]}"
        self._nvtx.RangePush(text)
        try:
            return call(*args, **kwargs)
        finally:
            self._nvtx.RangePop()

    def mark(self):
        """An op begins; its kernels have ranges of their own."""

    def note(self, number, outs):
        """An op ends."""

    def begin(self, number, owner, kind, sequence):
        """Begin a range."""
        name = owner.__name__ if isinstance(owner, type) else getattr(owner, "node_name", owner)
        self._nvtx.RangePush(f"{name}, seq = {sequence}" if kind == NODE else name)

    def end(self, number):
        """End a range."""
        self._nvtx.RangePop()
