"""How tensors travel through the queues and pipes of `multiprocessing`: as handles to shared memory, where possible."""

from __future__ import annotations

import os
from multiprocessing.reduction import ForkingPickler
from typing import Any
from weakref import ref

import numpy as np

from cygrad import Tensor
from cygrad._core.graph.internals import holding_memory
from cygrad._core.tensor.convert import reduced
from cygrad._core.tensor.transfer import share_if_alone, to_any_process
from cygrad.nn.parameter import Buffer, Parameter

__all__ = ["StorageWeakRef", "fd_id", "init_reductions", "reduce_tensor"]


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """Return how the receiver of a tensor rebuilds it. Moves the tensor to shared memory if nothing else uses its own.

    Raises RuntimeError for a result of recorded ops, as graphs do not reach over to another process.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> rebuild, arguments = cygrad.multiprocessing.reductions.reduce_tensor(x)
    >>> x.is_shared()
    True
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    share_if_alone(tensor)
    return reduced(tensor, to_any_process)


def _reduce_parameter(parameter: Tensor) -> Any:
    share_if_alone(parameter)
    return parameter.__reduce_ex__(2)  # whose data is a tensor


def init_reductions() -> None:
    """Let queues and pipes hand over tensors in shared memory. `import cygrad.multiprocessing` does it.

    >>> import cygrad
    >>> cygrad.multiprocessing.reductions.init_reductions()
    """
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Buffer, reduce_tensor)
    ForkingPickler.register(Parameter, _reduce_parameter)


def fd_id(fd: int) -> tuple[int, int]:
    """Return what tells files apart whatever their descriptors: the inode and the device.

    >>> import os
    >>> import cygrad
    >>> read, write = os.pipe()
    >>> other = os.dup(read)
    >>> cygrad.multiprocessing.reductions.fd_id(read) == cygrad.multiprocessing.reductions.fd_id(other)
    True
    >>> for file in (read, write, other):
    ...     os.close(file)
    """
    found = os.fstat(fd)
    return found.st_ino, found.st_dev


class StorageWeakRef:
    """Names the memory of a storage without keeping it alive. Equal for storages of the same memory.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> name = cygrad.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    >>> name.expired()
    False
    >>> del x
    >>> name.expired()
    True
    """

    __slots__ = ("_memory", "_number")

    def __init__(self, storage: Any) -> None:
        self._number: int = storage._cdata
        memory = holding_memory(storage._flat)
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        self._memory = ref(memory)

    @property
    def cdata(self) -> int:
        """A number that storages of the same memory share."""
        return self._number

    def expired(self) -> bool:
        """Whether the memory has been freed."""
        return self._memory() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata
