"""CUDA graphs: work that is captured once and then launched as a unit.

    g = cygrad.cuda.CUDAGraph()
    with cygrad.cuda.graph(g):
        y = model(x)
    x.copy_(next_input)
    g.replay()          # recomputes y from the x and into the y of the capture

See Note [Captures] in `_kernels/gpu/runtime/graph_capture.py`.
"""

import gc
import itertools
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cygrad
from cygrad._core.errors import sites
from cygrad._core.errors.classes import CaptureError
from cygrad._core.registry.several_gpus import attend_captures
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.random.random import set_start
from cygrad._kernels.gpu.runtime import graph_capture
from cygrad.cuda.devices import synchronize
from cygrad.cuda.memory import empty_cache
from cygrad.cuda.streams import Stream, StreamContext, current_stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_SAID = re.compile("stream is capturing, so|StreamCapture|CapturedEvent")  # messages of CuPy and the driver
_numbers = itertools.count(1)
_pools: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()


def is_current_stream_capturing() -> bool:
    """Whether this thread's work is currently being captured into a graph.

    >>> import cygrad
    >>> cygrad.cuda.is_current_stream_capturing()
    False
    """
    return graph_capture.is_capturing()


def graph_pool_handle() -> tuple[int, int]:
    """Return a handle for memory shared by several graphs, which must be replayed in the order of their captures.

    >>> import cygrad  # on a machine with a GPU
    >>> pool = cygrad.cuda.graph_pool_handle()
    """
    return 0, next(_numbers)


class CUDAGraph:
    """GPU work captured between `capture_begin` and `capture_end`, and launched as a unit by `replay`.

    It reads and writes the memory used in the capture, which stays reserved as long as the graph lives, also that of
    tensors made before: it can be replayed after these have died. Random number streams advance from replay to replay.

    >>> import cygrad  # on a machine with a GPU
    >>> x = cygrad.ones(2, device="cuda")
    >>> captured = cygrad.cuda.CUDAGraph()
    >>> with cygrad.cuda.graph(captured):
    ...     y = x * 2
    >>> x.fill_(3.0).device.type
    'cuda'
    >>> captured.replay()  # with what x now holds
    >>> y.tolist()
    [6.0, 6.0]
    >>> captured.reset()
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._pool: Any = None
        self._handle: tuple[int, int] | None = None
        self._capture: Any = None
        self._graph: Any = None
        self._device = -1
        self._keeps, self._is_debugged = keep_graph, False

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Start the capture; the current stream must not be the default one.

        `pool`, from `graph_pool_handle()` or another graph's `pool()`, is the memory to use. Raises RuntimeError on the
        default stream and for a graph that has already been captured.

        >>> import cygrad  # on a machine with a GPU
        >>> x, captured, side = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph(), cygrad.cuda.Stream()
        >>> with cygrad.cuda.stream(side):
        ...     captured.capture_begin()
        ...     y = x * 2
        ...     captured.capture_end()
        >>> captured.replay()
        >>> y.tolist()
        [2.0, 2.0]
        """
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                               f"{capture_error_mode}")  # fmt: skip
        if self._graph is not None or self._capture is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if current_stream().cuda_stream in (0, 1, 2):
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
                               "to replay them on the default stream.)")  # fmt: skip
        handle = graph_pool_handle() if pool is None else pool
        found = _pools.get(handle)
        if found is None:
            _pools[handle] = found = graph_capture.Pool()
        self._device = cupy_library.current_device()
        capture = graph_capture.Capture(found)
        capture.begin()
        attend_captures(graph_capture.keep)
        self._handle, self._pool, self._capture = handle, found, capture

    def capture_end(self) -> None:
        """End the capture.

        >>> import cygrad  # on a machine with a GPU
        >>> x, captured, side = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph(), cygrad.cuda.Stream()
        >>> with cygrad.cuda.stream(side):
        ...     captured.capture_begin()
        ...     y = x * 2
        ...     captured.capture_end()
        """
        if self._capture is None:
            raise RuntimeError("capture_end() called before capture_begin().")
        capture, self._capture = self._capture, None
        try:
            self._graph = capture.end()
        finally:
            attend_captures(graph_capture.keep if graph_capture.captures else None)
        self._kept, self._drawn = capture.kept, capture.drawn

    def replay(self) -> None:
        """Launch the work in the current stream. Raises RuntimeError if nothing was captured."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        with cupy_library.on_device(self._device):
            for numbers, (start, count) in self._drawn.items():
                set_start(numbers, count, start)
            self._graph.launch()

    def reset(self) -> None:
        """Discard the work and release the memory, unless a tensor or another graph still uses it."""
        self._graph = self._kept = self._drawn = self._pool = self._handle = None

    def instantiate(self) -> None:
        """Check that the graph is ready for `replay`; no-op, since `capture_end` has already instantiated it.

        >>> import cygrad  # on a machine with a GPU
        >>> x, captured = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph(keep_graph=True)
        >>> with cygrad.cuda.graph(captured):
        ...     y = x * 2
        >>> captured.instantiate()
        >>> captured.replay()
        """
        if self._graph is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if not self._keeps:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")

    def raw_cuda_graph(self) -> int:
        """Return the CUDA handle of a graph created with `keep_graph=True`.

        >>> import cygrad  # on a machine with a GPU
        >>> x, captured = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph(keep_graph=True)
        >>> with cygrad.cuda.graph(captured):
        ...     y = x * 2
        >>> isinstance(captured.raw_cuda_graph(), int)
        True
        """
        if not self._keeps or self._graph is None:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true, "
                "and before the capture has ended."
            )
        return self._graph.graph

    def register_generator_state(self, generator: Any) -> None:
        """Accept a GPU generator; those used in a capture advance from replay to replay anyway.

        >>> import cygrad  # on a machine with a GPU
        >>> captured = cygrad.cuda.CUDAGraph()
        >>> captured.register_generator_state(cygrad.Generator("cuda"))
        """
        if not isinstance(generator, cygrad.Generator):
            raise TypeError(f"register_generator_state() takes a Generator, not {type(generator).__name__}")
        if generator.device.type != "cuda":
            raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")

    def enable_debug_mode(self) -> None:
        """Enable `debug_dump`.

        >>> import cygrad  # on a machine with a GPU
        >>> captured = cygrad.cuda.CUDAGraph()
        >>> captured.enable_debug_mode()
        """
        self._is_debugged = True

    def debug_dump(self, debug_path: str) -> None:
        """Write the work as a graph in DOT, after `enable_debug_mode` and a capture; otherwise warn.

        >>> import cygrad  # on a machine with a GPU
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "graph.dot")
        >>> x, captured = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph()
        >>> captured.enable_debug_mode()
        >>> with cygrad.cuda.graph(captured):
        ...     y = x * 2
        >>> captured.debug_dump(path)
        >>> folder.cleanup()
        """
        if not self._is_debugged or self._graph is None:
            sites.warn("CUDA Graphs debug not enabled, set with [graph].enable_debug_mode() before the capture")
            return
        Path(debug_path).write_text(self._graph.debug_dot_str(1), "utf-8")  # with all details that CUDA provides

    def pool(self) -> tuple[int, int]:
        """Return the handle of this graph's memory, so that other graphs can share it.

        >>> import cygrad  # on a machine with a GPU
        >>> x, first, second = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph(), cygrad.cuda.CUDAGraph()
        >>> with cygrad.cuda.graph(first):
        ...     y = x * 2
        >>> with cygrad.cuda.graph(second, pool=first.pool()):
        ...     z = y + 1
        >>> first.replay(), second.replay()
        (None, None)
        >>> z.tolist()
        [3.0, 3.0]
        """
        if self._handle is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._handle


class graph:
    """A context that captures work into a graph instead of running it.

    cuda_graph
        a `CUDAGraph`; or a function without arguments, for `step = graph(function)`: it runs `warmup` times and is then
        captured, and `step()` replays it and returns the objects returned in the capture, with new values
    pool
        memory to share, from `graph_pool_handle()` or `CUDAGraph.pool()`
    stream
        the stream to capture in; by default a separate one

    An op that must wait for the GPU raises `cygrad.errors.CaptureError`, which names the line.

    >>> import cygrad  # on a machine with a GPU
    >>> x, captured = cygrad.ones(2, device="cuda"), cygrad.cuda.CUDAGraph()
    >>> with cygrad.cuda.graph(captured):
    ...     y = x * 2
    >>> captured.replay()
    >>> y.tolist()
    [2.0, 2.0]
    """

    default_capture_stream: Stream | None = None

    def __new__(cls, cuda_graph: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a context, or for a function its replay."""
        if callable(cuda_graph):
            return _replay_of(cuda_graph, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self, cuda_graph: CUDAGraph, pool: tuple[int, int] | None = None, stream: Stream | None = None,
        capture_error_mode: str = "global"
    ) -> None:  # fmt: skip
        self.pool, self.capture_error_mode, self.cuda_graph = pool, capture_error_mode, cuda_graph
        self.capture_stream = _capture_stream() if stream is None else stream
        self.stream_ctx = StreamContext(self.capture_stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:  # a consequence of the error in the block
            if error is None:
                raise
        finally:
            self.stream_ctx.__exit__()
        if error is not None:
            self.cuda_graph.reset()
            if isinstance(error, RuntimeError) and _SAID.search(str(error)):
                raise _refusal(error, traceback) from error


def _capture_stream() -> Stream:
    found = graph.default_capture_stream
    if found is None or found.device_index != cupy_library.current_device():
        found = graph.default_capture_stream = Stream()
    return found


def _is_ours(frame: Any) -> bool:
    return sites.is_ours(frame.f_code) or frame.f_globals.get("__name__", "").startswith("cygrad.")


def _refusal(error: BaseException, traceback: Any) -> CaptureError:
    """Return the error that names the last user line that called this package."""
    place, name = None, "this"
    while traceback is not None:
        frame, inner = traceback.tb_frame, traceback.tb_next
        if not _is_ours(frame) and (place is None or (inner is not None and _is_ours(inner.tb_frame))):
            place = frame.f_code, traceback.tb_lasti
            name = "this" if inner is None else inner.tb_frame.f_code.co_name.rpartition(".")[2]
        traceback = inner
    where = "" if place is None else f", at {sites.at(*place)}"
    return CaptureError(
        "CUDA error: operation not permitted when stream is capturing\n"
        f"  `{name}` has to wait for the GPU or to move data, which a graph cannot do{where}\n"
        f"  CuPy reports: {error}\n"
        "  to fix it: leave the value on the GPU, and read it after `replay()`",
        called=place,
    )


def _replay_of(
    function: Callable[[], Any], pool: tuple[int, int] | None = None, stream: Stream | None = None, *, warmup: int = 3
) -> Callable[[], Any]:
    """Capture a function and return a function that replays it; see `graph`."""
    captured = CUDAGraph()
    context = graph(captured, pool, stream)
    with _aside(context.capture_stream):
        for _ in range(warmup):
            function()
    with context:
        results = function()

    def replay() -> Any:
        captured.replay()
        return results

    replay.graph = captured  # type: ignore[attr-defined]
    replay.function = function  # type: ignore[attr-defined]  # keeps the tensors that it uses alive
    return replay


@contextmanager
def _aside(stream: Stream) -> Iterator[None]:
    """Run the block in another stream, which waits for the current one; afterwards the current one waits for it."""
    outer = current_stream()
    stream.wait_stream(outer)
    try:
        with StreamContext(stream):
            yield
    finally:
        outer.wait_stream(stream)


# -- Callables --


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None
) -> Any:  # fmt: skip
    """Turn functions or modules into ones whose forward and backward replay graphs.

    `callables` is one or a tuple of them, in the order in which they will run; `sample_args` has for each a tuple of
    tensors that match its future arguments, including `requires_grad`. A module is modified in place; it uses its
    original `forward` if `training` differs from the capture. Raises RuntimeError for hooks and for buffers that
    require grad, TypeError for non-tensor arguments.

    >>> import cygrad  # on a machine with a GPU
    >>> model = cygrad.nn.Linear(2, 1, device="cuda")
    >>> model = cygrad.cuda.make_graphed_callables(model, (cygrad.ones(3, 2, device="cuda"),))
    >>> model(cygrad.ones(3, 2, device="cuda")).sum().backward()
    >>> model.weight.grad.tolist()
    [[3.0, 3.0]]
    """
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    handle = graph_pool_handle() if pool is None else pool
    parts = [_Callable(function, args, allow_unused_input) for function, args in zip(functions, samples, strict=True)]
    with _aside(_capture_stream()):
        for part in parts:
            for _ in range(num_warmup_iters):
                part.run()
                part.differentiate()
            part.forget()
    for part in parts:
        with graph(part.forward_graph, pool=handle):
            part.run()
    for part in reversed(parts):
        with graph(part.backward_graph, pool=handle):
            part.differentiate()
    made = tuple(part.made() for part in parts)
    return made[0] if single else made


class _Callable:
    """One function or module, with the tensors that its graphs read and write."""

    def __init__(self, function: Any, args: tuple[Any, ...], allow_unused: bool) -> None:
        self.function, self.allow_unused = function, allow_unused
        self.module = function if isinstance(function, cygrad.nn.Module) else None
        if self.module is not None:
            if self.module._backward_hooks or self.module._forward_hooks or self.module._forward_pre_hooks:
                raise RuntimeError("Modules must not have hooks registered at the time they are passed. However, "
                                   "registering hooks on modules after passing them through make_graphed_callables is "
                                   "allowed.")  # fmt: skip
            if any(b.requires_grad for b in self.module.buffers()):
                raise RuntimeError(
                    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only "
                    "parameters may be trainable. All buffers must have ``requires_grad=False``."
                )
        if not all(isinstance(arg, cygrad.Tensor) for arg in args):
            raise TypeError("In the beta API, sample_args for each callable must contain only Tensors. Other types are "
                            "not allowed.")  # fmt: skip
        self.args = args
        self.inputs = (*args, *(self.module.parameters() if self.module is not None else ()))
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()
        self.forget()

    def forget(self) -> None:
        """Release the results of the last run."""
        self.result: Any = None
        self.outputs: tuple[Any, ...] = ()
        self.grad_outputs: list[Any] = []
        self.grads: list[Any] = []

    def run(self) -> None:
        self.result = self.function(*self.args)
        self.outputs = (self.result,) if isinstance(self.result, cygrad.Tensor) else tuple(self.result)

    def differentiate(self) -> None:
        self.grad_outputs = [cygrad.empty_like(o) if o.requires_grad else None for o in self.outputs]
        wanted = [i for i in self.inputs if i.requires_grad]
        found: Any = iter(())
        if wanted and any(o.requires_grad for o in self.outputs):
            found = iter(
                cygrad.autograd.grad(
                    [o for o in self.outputs if o.requires_grad],
                    wanted,
                    [g for g in self.grad_outputs if g is not None],
                    allow_unused=self.allow_unused,
                )
            )
        self.grads = [next(found, None) if i.requires_grad else None for i in self.inputs]

    def made(self) -> Any:
        """Return the modified module, or a function that replaces the original one."""

        def graphed(*args: Any) -> Any:
            found = _Replay.apply(self, *args, *self.inputs[len(self.args) :])
            return found[0] if isinstance(self.result, cygrad.Tensor) else type(self.result)(found)

        module = self.module
        if module is None:
            return graphed
        training, plain = module.training, module.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            return graphed(*args) if module.training == training and not kwargs else plain(*args, **kwargs)

        module.__dict__["forward"] = forward
        return module


class _Replay(cygrad.autograd.Function):
    """Replays a `_Callable`, which is the first argument."""

    @staticmethod
    def forward(ctx: Any, part: _Callable, *inputs: Any) -> Any:
        for own, given in zip(part.args, inputs):
            _take(own, given)
        part.forward_graph.replay()
        ctx.part = part
        return tuple(output.detach() for output in part.outputs)

    @staticmethod
    @cygrad.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        part = ctx.part
        for own, given in zip(part.grad_outputs, grads):
            if own is not None:
                _take(own, given)
        part.backward_graph.replay()
        return None, *(None if grad is None else grad.detach() for grad in part.grads)


def _take(own: Any, given: Any) -> None:
    if own.data_ptr() != given.data_ptr():
        own.detach().copy_(given)
