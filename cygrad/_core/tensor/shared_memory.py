"""Where a tensor's memory lies: in memory that processes share, or locked for transfers to a GPU."""

import functools
import os
import sys
import warnings

import numpy as np

from cygrad._core.graph.internals import array_of, bind, memory_of, tensor_of
from cygrad._core.types.device import device as device_of
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.runtime import allocator, pinned_memory


@functools.cache
def shared_class():
    """The class of memory that stays the same memory in another process."""
    import mmap

    class Shared(mmap.mmap):
        """By its class `is_shared` tells it from a mapped file."""

        file = None  # the descriptor by which a process that is no fork finds it

        def __del__(self, close=os.close):
            if self.file is not None:
                close(self.file)

    return Shared


def _shared(size):
    """New memory; without a file where the system has none for it, or half of the files a process may open are open."""
    try:
        file = os.memfd_create("cygrad")
    except (AttributeError, OSError):
        return shared_class()(-1, size)
    if file > os.sysconf("SC_OPEN_MAX") // 2:  # the lowest number that was free
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
    """Stands for an array in what is sent to a process that is about to start."""

    def __init__(self, array, owner):
        place = array.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data
        self.how = owner.file, len(owner), array.shape, array.dtype, place, array.strides

    def __reduce__(self):
        return _arrived, self.how


def _arrived(file, size, shape, dtype, place, strides):
    return np.ndarray(shape, dtype, _mapped(os.dup(file), size), place, strides)


def to_send(array):
    """What to pickle for an array: itself, but for shared memory that goes to a process which is being spawned."""
    contexts = sys.modules.get("multiprocessing.context")
    starting = None if contexts is None else contexts.get_spawning_popen()
    if starting is None:
        return array
    owner = _owner(array)
    if not isinstance(owner, shared_class()):
        return array
    files = getattr(starting, "_fds", None)
    if owner.file is None or files is None or starting.method != "spawn":
        warnings.warn(
            "a tensor in shared memory is copied for a new process, which then changes its copy: use the start method "
            "'fork', or 'spawn' on Linux with enough files (`ulimit -n`)",
            stacklevel=2,
        )
        return array
    if owner.file not in files:
        starting.duplicate_for_child(owner.file)
    return Handed(array, owner)


def _owner(array):
    """What holds the memory of an array; None where the array itself does."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def is_shared(self):
    """Whether processes see each other's changes of this tensor: after `share_memory_()`."""
    return not self.is_cpu or isinstance(_owner(array_of(self)), shared_class())


def share_memory_(self):
    """Move the elements to memory that is shared with processes forked from now on; returns the tensor.

    A view takes the tensor it was taken from along. Other views, and what `detach()` and `.data` gave, keep the former
    memory if they were made before. On Linux a spawned process shares what is in its arguments; what goes through a
    queue, or to a process of a fork server, is a copy.

    >>> import cygrad
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    if is_shared(self):
        return self
    base = self if self._base is None else self._base
    array, former = array_of(self), array_of(base)
    memory = _shared(max(former.nbytes, 1))
    shared = np.ndarray(former.shape, former.dtype, memory, strides=np.empty_like(former).strides)
    place = array.ctypes.data - former.ctypes.data
    if base is not self and (shared.strides != former.strides or not 0 <= place <= former.nbytes):
        raise RuntimeError("share_memory_() of a view: share the memory of the tensor it was taken from, then take it")
    own = np.ndarray(array.shape, array.dtype, memory, place, array.strides)
    shared[...] = former
    base.data = tensor_of(shared)
    if base is not self:
        self.data = tensor_of(own)
    return self


def is_pinned(self, device=None):
    """Whether the memory is locked for transfers to a GPU, which then need not wait."""
    return self.is_cpu and pinned_memory.is_pinned(memory_of(self))


def pin_memory(self, device=None):
    """A copy in memory that is locked for transfers to a GPU: `x.pin_memory().to("cuda", non_blocking=True)` lets the
    CPU go on. Itself if it is there. Gradient: g.

    Raises RuntimeError without a GPU, and for a tensor on one.
    """
    if device is not None and device_of(device).type == "cpu":
        raise RuntimeError("CPU device type not an accelerator.")
    if not cupy_library.is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available.\n"
            "  leave `pin_memory` out, or ask `torch.cuda.is_available()` first"
        )
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    array = memory_of(self)
    found = tensor_of(pinned_memory.empty(array.shape, array.dtype, np.empty_like(array).strides))
    return found.copy_(self)


def record_stream(self, s):
    """Say that another stream uses this tensor of a GPU: once it is gone, its memory goes to others only after what
    that stream has got by then is done. Raises NotImplementedError for a tensor on the CPU.
    """
    if self.is_cpu:
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend.\n"
            "  memory of the CPU has no streams"
        )
    allocator.lend(array_of(self), s.device_index, s._stream)


bind({f.__name__: f for f in (is_shared, share_memory_, is_pinned, pin_memory, record_stream)})
