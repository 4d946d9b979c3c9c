"""Where a tensor's memory lies: in memory that forked processes share, or locked for transfers to a GPU."""

import functools

import numpy as np

from cygrad._core.access import array_of, bind, tensor_of
from cygrad._core.device import device as device_of


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

    Views made before keep the former memory, so a view itself can not be moved: RuntimeError. A process that is not
    forked (spawn, forkserver) gets a copy.

    >>> import cygrad
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    if is_shared(self):
        return self
    if self._base is not None:
        raise RuntimeError("share_memory_() of a view: share the memory of the tensor it was taken from, then take it")
    array = array_of(self)
    memory = shared_class()(-1, max(array.nbytes, 1))
    shared = np.ndarray(array.shape, array.dtype, memory, strides=np.empty_like(array).strides)
    shared[...] = array
    self.data = tensor_of(shared)
    return self


def is_pinned(self, device=None):
    """Whether the memory is locked for transfers to a GPU: False."""
    return False


def pin_memory(self, device=None):
    """A copy in memory that is locked for transfers to a GPU. Raises RuntimeError, as there is none."""
    if device is not None and device_of(device).type == "cpu":
        raise RuntimeError("CPU device type not an accelerator.")
    raise RuntimeError(
        "Cannot access accelerator device when none is available.\n"
        "  leave `pin_memory` out, or ask `torch.cuda.is_available()` first"
    )


bind({"is_shared": is_shared, "share_memory_": share_memory_, "is_pinned": is_pinned, "pin_memory": pin_memory})
