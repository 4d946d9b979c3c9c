"""Where a tensor's memory lies: in memory that forked processes share, or locked for transfers to a GPU."""

import functools

import numpy as np

from cygrad._core.access import array_of, bind, memory_of, tensor_of
from cygrad._core.device import device as device_of
from cygrad._kernels.gpu import allocating, library, pinned


@functools.cache
def shared_class():
    """The class of memory that stays the same memory in a forked process."""
    import mmap

    class Shared(mmap.mmap):
        """By its class `is_shared` tells it from a mapped file."""

    return Shared


def _owner(array):
    """What holds the memory of an array; None where the array itself does."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def is_shared(self):
    """Whether processes that are forked see each other's changes of this tensor: after `share_memory_()`."""
    return not self.is_cpu or isinstance(_owner(array_of(self)), shared_class())


def share_memory_(self):
    """Move the elements to memory that processes share which are forked from now on; returns the tensor.

    A view takes the tensor it was taken from along. Other views, and what `detach()` and `.data` gave, keep the former
    memory if they were made before. A process that is not forked (spawn, forkserver) gets a copy.

    >>> import cygrad
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    if is_shared(self):
        return self
    base = self if self._base is None else self._base
    array, former = array_of(self), array_of(base)
    memory = shared_class()(-1, max(former.nbytes, 1))
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
    return self.is_cpu and pinned.is_pinned(memory_of(self))


def pin_memory(self, device=None):
    """A copy in memory that is locked for transfers to a GPU: `x.pin_memory().to("cuda", non_blocking=True)` lets the
    CPU go on. Itself if it is there. Gradient: g.

    Raises RuntimeError without a GPU, and for a tensor on one.
    """
    if device is not None and device_of(device).type == "cpu":
        raise RuntimeError("CPU device type not an accelerator.")
    if not library.is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available.\n"
            "  leave `pin_memory` out, or ask `torch.cuda.is_available()` first"
        )
    if not self.is_cpu:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    array = memory_of(self)
    found = tensor_of(pinned.empty(array.shape, array.dtype, np.empty_like(array).strides))
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
    allocating.lend(array_of(self), s.device_index, s._stream)


bind({f.__name__: f for f in (is_shared, share_memory_, is_pinned, pin_memory, record_stream)})
