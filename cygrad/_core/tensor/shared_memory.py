"""Shared and pinned memory: `share_memory_` and `pin_memory`."""

import functools
import os
import weakref

import numpy as np

from cygrad._core.graph.internals import array_of, bind, holding_memory, shows_opposite, tensor_of
from cygrad._core.graph.opdef import shown
from cygrad._core.types.device import device as device_of
from cygrad._kernels.device import cupy_library
from cygrad._kernels.device.unresolved import opposite
from cygrad._library import later

allocator = later("cygrad._kernels.gpu.runtime.allocator")  # both are needed only with a GPU
pinned_memory = later("cygrad._kernels.gpu.runtime.pinned_memory")

# Of this process, by the device and inode of their files.
_maps: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


@functools.cache
def shared_class():
    """Return the class of memory maps that stay shared with other processes."""
    import mmap  # few programs need it

    class Shared(mmap.mmap):
        """A memory map that `is_shared` can tell from a mapped file by its class."""

        file = None  # the descriptor through which a process that is not a fork maps the memory
        was_asked_for = True  # by `share_memory_`; else a tensor moved because it was sent

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
    found = os.fstat(file)
    _maps[found.st_dev, found.st_ino] = memory
    return memory


def map_of(file, size, was_asked_for):
    """Return the map of a file; if this process maps it already, close the file: one memory keeps one address."""
    found = os.fstat(file)
    memory = _maps.get((found.st_dev, found.st_ino))
    if memory is not None:
        os.close(file)
        return memory
    memory = _mapped(file, size)
    memory.was_asked_for = was_asked_for
    return memory


def shared_owner(array):
    """Return the shared memory in which an array is, or None."""
    owner = _owner(array)
    return owner if isinstance(owner, shared_class()) else None


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
    return not self.is_cpu or shared_owner(holding_memory(self)) is not None


@shown
def share_memory_(self):
    """Move the elements to memory shared with processes that are forked from now on; return the tensor.

    A view moves its base along with it. Other views, and the results of `detach()` and `.data`, keep the former memory
    if they were made before. On Linux the memory stays shared when the tensor is an argument of a spawned process;
    with `cygrad.multiprocessing` imported, also when it passes through a queue or a pipe. Elsewhere it is copied then.

    >>> import cygrad
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    if is_shared(self):
        if self.is_cpu:
            shared_owner(holding_memory(self)).was_asked_for = True
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
