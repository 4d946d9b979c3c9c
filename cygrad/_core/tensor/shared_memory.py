"""Shared and pinned memory: `share_memory_`, `pin_memory`, and transfer of tensors to other processes."""

import functools
import os
import sys

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, bind, holding_memory, shows_opposite, tensor_of
from cygrad._core.graph.opdef import shown
from cygrad._core.types.device import device as device_of
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.unresolved import opposite
from cygrad._library import later

allocator = later("cygrad._kernels.gpu.runtime.allocator")  # both are needed only with a GPU
pinned_memory = later("cygrad._kernels.gpu.runtime.pinned_memory")


@functools.cache
def shared_class():
    """Return the class of memory maps that stay shared with other processes."""
    import mmap  # few programs need it

    class Shared(mmap.mmap):
        """A memory map that `is_shared` can tell from a mapped file by its class."""

        file = None  # the descriptor through which a process that is not a fork maps the memory

        def __del__(self, close=os.close):
            if self.file is not None:
                close(self.file)

    return Shared


def _shared(size):
    """Allocate shared memory; anonymous if memfd is unavailable or half of the process's descriptors are in use."""
    try:
        file = os.memfd_create("cygrad")
    except (AttributeError, OSError):
        return shared_class()(-1, size)
    if file > os.sysconf("SC_OPEN_MAX") // 2:  # the lowest free number
        os.close(file)
        return shared_class()(-1, size)
    try:
        os.ftruncate(file, size)
        return _mapped(file, size)
    except BaseException:
        os.close(file)
        raise


def _mapped(file, size):
    memory = shared_class()(file, size)
    memory.file = file
    return memory


class Handed:
    """Stands for an array in the pickle sent to a process that is being spawned."""

    def __init__(self, array, owner):
        place = array.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data
        self.how = owner.file, len(owner), array.shape, array.dtype, place, array.strides

    def __reduce__(self):
        return _arrived, self.how


def _arrived(file, size, shape, dtype, place, strides):
    return np.ndarray(shape, dtype, _mapped(os.dup(file), size), place, strides)


class _Bits:
    """Stands for an array of a dtype that NumPy lacks, whose elements NumPy would not let travel out of band."""

    def __init__(self, array):
        self.how = array.view(f"u{array.itemsize}"), array.dtype

    def __reduce__(self):
        return _of_bits, self.how


def _of_bits(bits, dtype):
    return bits.view(dtype)


def to_send(array):
    """Return what to pickle for an array: itself, or a handle for shared memory sent to a process being spawned."""
    return _shared_handle(array) or (_Bits(array) if array.dtype.isbuiltin == 2 else array)


def _shared_handle(array):
    """The handle of an array in shared memory, if a process is being spawned; else None."""
    contexts = sys.modules.get("multiprocessing.context")
    starting = None if contexts is None else contexts.get_spawning_popen()
    if starting is None:
        return None
    owner = _owner(array)
    if not isinstance(owner, shared_class()):
        return None
    files = getattr(starting, "_fds", None)
    if owner.file is None or files is None or starting.method != "spawn":
        warn(
            "a tensor in shared memory is copied for a new process, which then changes only its copy: use the start "
            "method 'fork', or 'spawn' on Linux with enough file descriptors (`ulimit -n`)"
        )
        return None
    if owner.file not in files:
        starting.duplicate_for_child(owner.file)
    return Handed(array, owner)


def _owner(array):
    """Return the object that owns the memory of an array; None if it is the array itself."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


@shown
def is_shared(self):
    """Whether changes of this tensor are visible in other processes, as after `share_memory_()`.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> x.is_shared(), x.share_memory_().is_shared()
    (False, True)
    """
    return not self.is_cpu or isinstance(_owner(holding_memory(self)), shared_class())


@shown
def share_memory_(self):
    """Move the elements to memory shared with processes that are forked from now on; return the tensor.

    A view moves its base along with it. Other views, and the results of `detach()` and `.data`, keep the former memory
    if they were made before. On Linux a spawned process shares the tensors among its arguments; tensors that pass
    through a queue, or to a process of a fork server, are copied.

    >>> import cygrad
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    if is_shared(self):
        return self
    base = self if self._base is None else self._base
    array, former = holding_memory(self), holding_memory(base)
    memory = np.ndarray(former.nbytes // former.itemsize, former.dtype, _shared(max(former.nbytes, 1)))
    shared = np.ndarray(former.shape, former.dtype, memory, strides=np.empty_like(former).strides)
    place = array.ctypes.data - former.ctypes.data
    if base is not self and (shared.strides != former.strides or not 0 <= place <= former.nbytes):
        raise RuntimeError("share_memory_() of a view: share the memory of its base first, then make the view")
    own = np.ndarray(array.shape, array.dtype, memory, place, array.strides)
    shared[...] = former
    base.data = _seen_as(base, shared)
    if base is not self:
        self.data = _seen_as(self, own)
    return self


def _seen_as(t, memory):
    """Return a tensor on other memory that holds what the memory of `t` holds."""
    return tensor_of(opposite(memory) if shows_opposite(t) else memory)


@shown
def is_pinned(self, device=None):
    """Whether the memory is pinned (page-locked), so that transfers to a GPU can be asynchronous.

    >>> import cygrad
    >>> cygrad.ones(2).is_pinned()
    False
    """
    return self.is_cpu and pinned_memory.is_pinned(holding_memory(self))


@shown
def pin_memory(self, device=None):
    """Return a copy in pinned (page-locked) memory: `x.pin_memory().to("cuda", non_blocking=True)` returns while the
    transfer is in progress. Returns the tensor itself if it is already pinned. Gradient: g.

    Raises RuntimeError without a GPU, and for a tensor on one.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     assert cygrad.ones(2).pin_memory().is_pinned()
    """
    if device is not None and device_of(device).type == "cpu":
        raise RuntimeError("CPU device type not an accelerator.")
    if not cupy_library.is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available.\n"
            "  leave out `pin_memory`, or check `torch.cuda.is_available()` first"
        )
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    array = holding_memory(self)
    found = tensor_of(pinned_memory.empty(array.shape, array.dtype, np.empty_like(array).strides))
    return found.copy_(self)


@shown
def record_stream(self, s):
    """Declare that another stream uses this GPU tensor: after the tensor is freed, its memory is reused only once the
    work queued in that stream at that time has finished. Raises NotImplementedError for a tensor on the CPU.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     cygrad.ones(2, device="cuda").record_stream(cygrad.cuda.Stream())
    """
    if self.is_cpu:
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend.\n  CPU memory has no streams"
        )
    allocator.lend(array_of(self), s.device_index, s._stream)


bind({f.__name__: f for f in (is_shared, share_memory_, is_pinned, pin_memory, record_stream)})
