"""Tracks GPU memory on top of CuPy's pool: peak usage, and which source lines hold large blocks.

Note [Memory of GPUs]
---------------------
CuPy's pool tracks no peak, and to find out what is in use it adds up all blocks. We therefore keep a bound, which each
allocation raises; only when it exceeds the peak, or the pool has grown, we ask the pool, which sets the bound anew. So
the peaks are exact. Memory of captured graphs comes from pools of their own during capture, and is counted, too.

The pool keeps what it got from the driver, in pieces of the sizes that were asked for. With changing shapes, these
fit ever less. So unused pieces go back to the driver whenever the pool grows, to more than a fifth beyond what is in
use. Steps of a few shapes end this soon: then the pool has pieces for all, and grows no more. With
`expandable_segments:True` or `backend:cudaMallocAsync` in PYTORCH_ALLOC_CONF, the pieces come from CUDA's asynchronous
allocator, which neither waits for the GPU nor needs memory in one piece.

The memory of a large block is wrapped in a memory object whose owner records the line that requested it. CuPy's own
memory objects have no room for that, and do not support weak references.

Memory that other streams read (`lend`) is kept after its last reference has gone, until those streams have passed that
point. Each allocation checks for this, because CuPy's pool would otherwise reuse the memory at once.
"""

import os
import sys
import weakref
from types import FrameType
from typing import Any

from cygrad._kernels.device.cupy_library import cupy, current_device, on_device
from cygrad._kernels.gpu.runtime.graph_capture import current, pools

_UNIT = 512  # bytes, of which blocks are multiples
_HAS_POOLS = 115  # cudaDevAttrMemoryPoolsSupported
_EXPANDABLE = {"expandable_segments:true", "backend:cudamallocasync"}
_MOST_RESERVED, _LITTLE = 1.2, 32 << 20  # times what is in use, and bytes beyond it
LARGE = 1 << 20  # minimum size in bytes of a block whose line is recorded, unless somebody asks for all


class Ledger:
    """Memory statistics of a GPU."""

    def __init__(self):
        self.peak = self.reserved_peak = 0
        self.bound = self.reserved = 0  # at least what is in use, and what the pool had reserved when last asked
        self.retries = self.failures = 0

    def measure(self):
        """Return (bytes in use, bytes reserved) on the current GPU, and update the peaks."""
        used, reserved = pool().used_bytes(), pool().total_bytes()
        self.reserved = reserved
        for graph in list(pools):
            used, reserved = used + graph.pool.used_bytes(), reserved + graph.pool.total_bytes()
        self.bound = used
        self.peak, self.reserved_peak = max(self.peak, used), max(self.reserved_peak, reserved)
        return used, reserved

    def reset(self):
        """Reset the peaks of the current GPU."""
        self.peak = self.reserved_peak = 0
        self.measure()


class Block:
    """The owner of a large block: the pool's memory, its size, and the line that requested it."""

    __slots__ = ("pointer", "size", "place", "__weakref__")

    def __init__(self, pointer, size, place):
        self.pointer, self.size, self.place = pointer, size, place


_files: dict[str, bool] = {}  # by file name: is it part of cygrad, CuPy or NumPy?
_MOST_FILES = 4096
_ledgers: dict[int, Ledger] = {}
_blocks: set[weakref.ref] = set()  # no WeakSet, whose Python code would run in compiled steps
_lent: dict = {}  # by id of the memory: it, the (GPU, stream) pairs that read it, and events once only we hold it


def pool():
    """Return the pool that arrays come from."""
    return connected.pool or cupy().get_default_memory_pool()


class connected:
    """Set by the layer above: the error for failed allocations, and the size from which on lines are recorded."""

    least = LARGE
    pool: Any = None  # of our own, instead of CuPy's
    explain = staticmethod(lambda size, device, text: MemoryError(text))


def connect(explain):
    """Set the function that makes the error from (size, GPU, CuPy's message)."""
    connected.explain = explain


def user_place():
    """Return (code, offset) of the innermost Python frame outside cygrad, CuPy and NumPy, or (None, 0)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        is_own = _files.get(code.co_filename)
        if is_own is None:
            root = frame.f_globals.get("__name__", "").partition(".")[0]
            is_own = root in ("cygrad", "numpy") or root.startswith("cupy")
            if len(_files) < _MOST_FILES and not code.co_filename.startswith("<"):  # "<string>" etc. are ambiguous
                _files[code.co_filename] = is_own
        if not is_own:
            return code, frame.f_lasti
        frame = frame.f_back
    return None, 0


def ledger(device):
    """Return the statistics of a GPU."""
    found = _ledgers.get(device)
    if found is None:
        found = _ledgers.setdefault(device, Ledger())
    return found


def measured(device):
    """Return (bytes in use, bytes reserved) on a GPU."""
    with on_device(device):
        return ledger(device).measure()


def holders(device):
    """Return ((code, offset), 1, size) for each large block on a GPU."""
    return [(b.place, 1, b.size) for b in blocks(device)]


def blocks(device):
    """Return the blocks on a GPU whose lines are recorded."""
    return [b for b in [ref() for ref in list(_blocks)] if b is not None and b.pointer.device_id == device]


def lend(a, index, stream):
    """Keep the memory of an array from reuse until a stream of a GPU has finished the work queued so far."""
    capture = current()
    if capture is not None:
        capture.kept.append(a)
        return
    _, streams, events = _lent.setdefault(id(a.data.mem), (a.data.mem, [], []))
    events.clear()
    if (index, stream) not in streams:
        streams.append((index, stream))


def _take_back(wait=False):
    """Release lent memory that no stream reads any more; `wait` blocks until the streams are done."""
    for key, entry in list(_lent.items()):
        streams, events = entry[1:]
        if not events and sys.getrefcount(entry[0]) <= 2:  # the entry's reference, and that of this call
            for index, stream in streams:
                with on_device(index):
                    events.append(stream.record(cupy().cuda.Event(disable_timing=True)))
        for event in events if wait else ():
            event.synchronize()
        if events and all(event.done for event in events):
            _lent.pop(key, None)


def _is_expandable(module):
    """Whether the user wants memory from CUDA's asynchronous allocator, and all GPUs have it."""
    given = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    if not _EXPANDABLE.intersection(given.replace(" ", "").lower().split(",")):
        return False
    runtime = module.cuda.runtime
    return all(runtime.deviceGetAttribute(_HAS_POOLS, index) for index in range(runtime.getDeviceCount()))


def install(module):
    """Install our allocator before CuPy's pool, unless the user has chosen another allocator."""
    if module.cuda.get_allocator() == module.get_default_memory_pool().malloc:
        connected.pool = module.cuda.MemoryPool(module.cuda.malloc_async) if _is_expandable(module) else None
        module.cuda.set_allocator(_allocator(module, pool()))


def for_graphs(malloc):
    """Return the allocator of a pool of graphs, whose errors say what uses the memory."""
    too_little = cupy().cuda.memory.OutOfMemoryError

    def allocate(size):
        device = current_device()
        try:
            pointer = malloc(size)
        except too_little as error:
            ledger(device).failures += 1
            raise connected.explain(size, device, str(error)) from None
        ledger(device).measure()
        return pointer

    return allocate


def _allocator(module, source):
    memory = module.cuda.memory
    malloc, total_bytes = source.malloc, source.total_bytes
    ledgers = _ledgers
    too_little, wrapped, pointer_to = memory.OutOfMemoryError, memory.UnownedMemory, memory.MemoryPointer

    def allocate(size):
        if _lent:
            _take_back()
        try:
            pointer = malloc(size)
        except too_little:
            pointer = again(size)
        device = pointer.device_id
        found = ledgers.get(device) or ledger(device)
        found.bound += size + _UNIT - 1 & -_UNIT
        if total_bytes() > found.reserved:
            used, reserved = found.measure()
            if reserved > _MOST_RESERVED * used + _LITTLE:
                source.free_all_blocks()
                found.reserved = total_bytes()
        elif found.bound > found.peak:
            found.measure()
        if size < connected.least or not size:
            return pointer
        block = Block(pointer, size, user_place())
        _blocks.add(weakref.ref(block, _blocks.discard))
        return pointer_to(wrapped(pointer.ptr, size, block, device), 0)

    def again(size):
        device = current_device()
        found = ledger(device)
        found.retries += 1
        _take_back(wait=True)
        source.free_all_blocks()
        module.get_default_pinned_memory_pool().free_all_blocks()
        try:
            return malloc(size)
        except too_little as error:
            found.failures += 1
            raise connected.explain(size, device, str(error)) from None

    return allocate
