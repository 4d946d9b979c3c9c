"""Device memory: blocks with red zones, and the pool with its limit."""

import contextlib
import ctypes
import threading
import weakref

import numpy as np

from . import arenas, state

ALIGNMENT = 512
RED_ZONE = 256  # bytes before and after a block, for detecting out-of-bounds writes
RED = 0xFE  # fill of red zones, conspicuous if read: -1.7e38
POISON = 0xFF  # fill of uninitialized memory: NaN, -1


class OutOfMemoryError(MemoryError):
    """Out of memory error, `cupy.cuda.memory.OutOfMemoryError`."""

    def __init__(self, size, total, limit=0):
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class BaseMemory:
    """A range of device memory; `_bytes` is the NumPy array that backs it."""

    def __init__(self, nbytes, device_id, data):
        self.size = nbytes
        self.device_id = device_id
        self._bytes = data
        self.ptr = data.ctypes.data if nbytes else 0

    @property
    def device(self):
        from .devices import Device

        return Device(self.device_id)

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.ptr, False), "version": 3}


class Memory(BaseMemory):
    """A separate aligned allocation with red zones around it."""

    def __init__(self, size):
        room = np.empty(size + ALIGNMENT + 2 * RED_ZONE, np.uint8)
        start = RED_ZONE + -(room.ctypes.data + RED_ZONE) % ALIGNMENT
        self._red = room[start - RED_ZONE : start], room[start + size : start + size + RED_ZONE]
        for zone in self._red:
            zone[:] = RED
        data = room[start : start + size]
        data[:] = POISON
        super().__init__(size, state.current_device(), data)
        self._made = state.made_now()

    def check(self):
        """Check that nothing was written before or after the block."""
        for zone, side in zip(self._red, ("before", "behind")):
            if (zone != RED).any():
                zone[:] = RED
                raise AssertionError(f"a kernel has written {side} a block of {self.size} bytes")


class PooledMemory(Memory):
    """Memory that is returned to its pool when freed."""

    _is_free = True

    def __init__(self, size, pool, chunk, base=None, blocks=None):
        if base is None:
            super().__init__(size)
        else:
            BaseMemory.__init__(self, size, base.device_id, base._bytes[:size])
            self._red = base._red
            self._bytes.fill(POISON)
            self._made = state.made_now()
        self._base, self._blocks = base, blocks
        self._pool = weakref.ref(pool)
        own = self._owner = state.key()
        for used in pool.read_elsewhere.pop((own, rounded(size)), ()):
            if state.capturing() is None and not state.is_after(own, used):
                raise AssertionError(f"stream {own} gets memory anew that stream {used[0]} may still use")
        self._chunk, self._arenas = chunk, pool._of(self.device_id)["arenas"]
        self._is_free = False

    def __del__(self):
        if not self._is_free and tell is not None:  # None during interpreter shutdown
            self._is_free = True
            what = {"device_id": self.device_id, "mem_size": rounded(self.size), "mem_ptr": self.ptr}
            tell("free_preprocess", **what, pmem_id=id(self))
            if self._chunk is not None:
                self._arenas.give_back(self._chunk)
            used, pool = getattr(self, "_used", self._made), self._pool()
            if pool is not None and not state.is_after(self._owner, used):
                pool.read_elsewhere.setdefault((self._owner, rounded(self.size)), []).append(used)
            if self._base is not None:
                self._blocks.append(self._base)
            tell("free_postprocess", **what, pmem_id=id(self))

    free = __del__


class UnownedMemory(BaseMemory):
    """Memory owned by another object."""

    def __init__(self, ptr, size, owner, device_id=-1):
        self._owner = owner
        data = np.frombuffer((ctypes.c_uint8 * size).from_address(ptr), np.uint8) if size else np.empty(0, np.uint8)
        super().__init__(size, state.current_device() if device_id < 0 else device_id, data)
        self.ptr = ptr

    def check(self):
        pass


class MemoryHook:
    """Receives every allocation while its `with` block runs."""

    name = "MemoryHook"

    def __enter__(self):
        hooks = allocators.__dict__.setdefault("hooks", {})
        if self.name in hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        hooks[self.name] = self
        return self

    def __exit__(self, *_):
        del allocators.hooks[self.name]

    def alloc_preprocess(self, *, device_id, mem_size):
        pass

    def alloc_postprocess(self, *, device_id, mem_size, mem_ptr):
        pass

    def malloc_preprocess(self, *, device_id, size, mem_size):
        pass

    def malloc_postprocess(self, *, device_id, size, mem_size, mem_ptr, pmem_id):
        pass

    def free_preprocess(self, *, device_id, mem_size, mem_ptr, pmem_id):
        pass

    def free_postprocess(self, *, device_id, mem_size, mem_ptr, pmem_id):
        pass


def tell(event, **what):
    for hook in list(getattr(allocators, "hooks", {}).values()):
        getattr(hook, event)(**what)


def rounded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


class MemoryPointer:
    """A position within memory."""

    __slots__ = ("mem", "_offset", "ptr", "__weakref__")

    def __init__(self, mem, offset):
        self.mem = mem
        self._offset = offset
        self.ptr = mem.ptr + offset

    def __int__(self):
        return self.ptr

    def __add__(self, offset):
        return MemoryPointer(self.mem, self._offset + offset)

    __radd__ = __add__

    def __sub__(self, offset):
        return self + -offset

    @property
    def device_id(self):
        return self.mem.device_id

    @property
    def device(self):
        return self.mem.device

    def _part(self, size):
        if not 0 <= self._offset <= self._offset + size <= self.mem.size:
            raise AssertionError(f"{size} bytes at {self._offset} leave a block of {self.mem.size} bytes")
        return self.mem._bytes[self._offset : self._offset + size]

    def memset(self, value, size):
        target = self._part(size)
        state.launch("memset", lambda: target.fill(value), [self.mem])

    def memset_async(self, value, size, stream=None):
        self.memset(value, size)

    def copy_from_device(self, src, size):
        target, source = self._part(size), src._part(size)
        state.launch("memcpy", lambda: np.copyto(target, source), [self.mem, src.mem])

    def copy_from_device_async(self, src, size, stream=None):
        self.copy_from_device(src, size)

    def copy_from_host(self, mem, size):
        state.synchronize("MemoryPointer.copy_from_host")
        self.copy_from_host_async(mem, size)

    def copy_from_host_async(self, mem, size, stream=None):
        state.transfer("to device", size)
        ctypes.memmove(self._part(size).ctypes.data, address(mem), size)

    def copy_to_host(self, mem, size):
        state.synchronize("MemoryPointer.copy_to_host")
        self.copy_to_host_async(mem, size)

    def copy_to_host_async(self, mem, size, stream=None):
        state.transfer("to host", size)
        ctypes.memmove(address(mem), self._part(size).ctypes.data, size)

    def copy_from(self, mem, size):
        copy = self.copy_from_device if isinstance(mem, MemoryPointer) else self.copy_from_host
        copy(mem, size)

    def copy_from_async(self, mem, size, stream=None):
        copy = self.copy_from_device_async if isinstance(mem, MemoryPointer) else self.copy_from_host_async
        copy(mem, size)


def address(mem):
    """The address of host memory in a form that CuPy accepts: an integer, a `ctypes.c_void_p`, an array's `.ctypes`."""
    if isinstance(mem, int):
        return mem
    if isinstance(mem, ctypes.c_void_p):
        return mem.value
    raise TypeError(f"an integer or a ctypes.c_void_p is needed, not {type(mem)}")


class MemoryPool:
    """The memory pool of all devices, with separate accounting for each.

    A pool with an allocator reuses its blocks. Others reuse nothing, so that reads of freed memory are noticed.
    """

    def __init__(self, allocator=None):
        self._states = {}
        self.read_elsewhere = {}  # by stream and size: uses of returned memory in other streams
        self._allocator = allocator
        pools.add(self)

    def _of(self, device):
        return self._states.setdefault(device, {"arenas": arenas.Arenas(), "limit": 0, "blocks": {}})

    def malloc(self, size):
        if state.capturing() is not None and self is default_pool:
            raise AssertionError("memory that a graph is to use is taken from a pool that others use")
        now = self._of(state.current_device())
        wanted = rounded(size)
        stream = getattr(state.stream(), "ptr", 0)  # chunks of streams are apart
        chunk = self._chunk(now, wanted, stream) if wanted else None
        what = {"device_id": state.current_device(), "mem_size": wanted}
        tell("malloc_preprocess", **what, size=size)
        blocks = now["blocks"].setdefault(stream, [])
        mem = PooledMemory(size, self, chunk, self._block(wanted, blocks), blocks)
        tell("malloc_postprocess", **what, size=size, mem_ptr=mem.ptr, pmem_id=id(mem))
        return MemoryPointer(mem, 0)

    def _chunk(self, now, wanted, stream):
        """Return a chunk for the accounts; beyond a limit an error is raised at once, as in CuPy."""
        held = now["arenas"]
        found = held.take(wanted, stream)
        if found is not None:
            return found
        if now["limit"] and held.total + wanted > now["limit"]:
            raise OutOfMemoryError(wanted, held.total, now["limit"])
        if held.total + wanted > TOTAL:
            held.release()
        if held.total + wanted > TOTAL:
            raise OutOfMemoryError(wanted, held.total)
        return held.grow(wanted, stream)

    def _block(self, wanted, blocks):
        """Return a block from the pool's allocator, most recently freed first; None without an allocator."""
        if self._allocator is None or not wanted:
            return None
        for i in range(len(blocks) - 1, -1, -1):
            if blocks[i].size == wanted:
                return blocks.pop(i)
        return self._allocator(wanted).mem

    def free_all_blocks(self, stream=None):
        self._of(state.current_device())["arenas"].release()
        self._of(state.current_device())["blocks"].clear()

    def free_all_free(self):
        self.free_all_blocks()

    def n_free_blocks(self):
        return int(self.free_bytes() > 0)

    def used_bytes(self):
        return self._of(state.current_device())["arenas"].used

    def free_bytes(self):
        return self.total_bytes() - self.used_bytes()

    def total_bytes(self):
        return self._of(state.current_device())["arenas"].total

    def set_limit(self, size=None, fraction=None):
        if (size is not None) and (fraction is not None):
            raise ValueError("size and fraction cannot be specified at one time")
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = int(TOTAL * fraction)
        if size is not None and size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        self._of(state.current_device())["limit"] = size or 0

    def get_limit(self):
        return self._of(state.current_device())["limit"]


TOTAL = 8 << 30  # bytes of memory per device
pools: weakref.WeakSet = weakref.WeakSet()
default_pool = MemoryPool()
allocators = threading.local()
common_allocator = default_pool.malloc


def get_default_memory_pool():
    return default_pool


def get_allocator():
    return getattr(allocators, "current", None) or common_allocator


def set_allocator(allocator=None):
    global common_allocator
    if getattr(allocators, "current", None) is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    common_allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))


@contextlib.contextmanager
def using_allocator(allocator=None):
    before = getattr(allocators, "current", None)
    allocators.current = allocator or (lambda size: MemoryPointer(Memory(size), 0))
    try:
        yield
    finally:
        allocators.current = before


def malloc_async(size):
    """Memory from CUDA's asynchronous allocator, which in truth belongs to the current stream."""
    return MemoryPointer(Memory(size), 0)


def alloc(size):
    return get_allocator()(size)


# --- Pinned memory -----------------------------------------------------------------------------


class PinnedMemoryPool:
    def __init__(self, allocator=None):
        self._allocator = allocator

    def malloc(self, size):
        return pinned_pointer(size)

    def free(self, ptr, size):
        pass

    def free_all_blocks(self):
        pass

    def n_free_blocks(self):
        return 0


pinned: dict = {}  # sizes of live blocks by address


def pinned_pointer(size):
    """Implement `alloc_pinned_memory`: a ctypes array, hence with the buffer protocol, that has a pointer's
    attributes.
    """
    kind = type("PinnedMemoryPointer", (ctypes.c_uint8 * size,), {"size": lambda self: size})
    pointer = kind()
    pointer.ptr = ctypes.addressof(pointer)
    pinned[pointer.ptr] = size
    weakref.finalize(pointer, pinned.pop, pointer.ptr, None)
    return pointer


def is_memory_pinned(data):
    """Whether an address, or an array's data, is in page-locked memory."""
    address = data if isinstance(data, int) else np.asarray(data).__array_interface__["data"][0]
    return any(start <= address < start + size for start, size in list(pinned.items()))


default_pinned_pool = PinnedMemoryPool()


def get_default_pinned_memory_pool():
    return default_pinned_pool


def alloc_pinned_memory(size):
    return default_pinned_pool.malloc(size)
