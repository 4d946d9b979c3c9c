"""What is pickled for the array of a tensor: the elements, or a handle to shared memory for another process."""

import functools
import os
import sys

import numpy as np

from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import holding_memory
from cygrad._core.tensor.shared_memory import is_shared, map_of, share_memory_, shared_owner

_MOST_FILES = 200  # that a fork server takes for a process, less a reserve for others than tensors


class _Handle:
    """Stands in a pickle for an array in shared memory.

    `file.detach()` gives the receiver a descriptor of the memory; `copy` serves if the sender has ended before.
    """

    def __init__(self, array, owner, file, copy=None):
        place = array.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data
        self.how = file, len(owner), owner.was_asked_for, array.shape, array.dtype, place, array.strides, copy

    def __reduce__(self):
        return _arrived, self.how


def _arrived(file, size, was_asked_for, shape, dtype, place, strides, copy):
    try:
        descriptor = file.detach()
    except (OSError, EOFError) as error:
        if copy is not None:
            return copy
        error.add_note(
            "  the process that sent a tensor in shared memory has ended: keep it alive until the tensor has arrived, "
            "or send a copy: `x.clone()`"
        )
        raise
    return np.ndarray(shape, dtype, map_of(descriptor, size, was_asked_for), place, strides)


class _Bits:
    """Stands for an array of a dtype that NumPy lacks, whose elements NumPy would not let travel out of band."""

    def __init__(self, array):
        self.how = array.view(f"u{array.itemsize}"), array.dtype

    def __reduce__(self):
        return _of_bits, self.how


def _of_bits(bits, dtype):
    return bits.view(dtype)


class _Inherited:
    """A file that a spawned process has inherited, by its descriptor."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def detach(self):
        return os.dup(self.descriptor)


class _Served:
    """A file that a process of a fork server was given, by its place among them."""

    def __init__(self, place):
        self.place = place

    def detach(self):
        from multiprocessing.forkserver import get_inherited_fds  # only such a process needs it

        files = get_inherited_fds()
        assert files is not None, "this process was started by a fork server"
        return os.dup(files[self.place])


def _elements(array):
    return _Bits(array) if array.dtype.isbuiltin == 2 else array


def _process_being_started():
    contexts = sys.modules.get("multiprocessing.context")
    return None if contexts is None else contexts.get_spawning_popen()


def to_send(array):
    """Return what to pickle for an array: a handle if it is in shared memory and goes to a process being started."""
    starting = _process_being_started()
    owner = None if starting is None else shared_owner(array)
    if owner is None:
        return _elements(array)
    file = None if owner.file is None else _file_for(starting, owner.file)
    if file is None:
        warn(
            "a tensor in shared memory is copied for a new process, which then changes only its copy: use the start "
            "method 'fork', or another one on Linux with enough file descriptors (`ulimit -n`)"
        )
        return _elements(array)
    return _Handle(array, owner, file)


def _file_for(starting, file):
    """Hand a file to a process being started, and return what it is there; None if that is impossible."""
    files: list[int] | None = getattr(starting, "_fds", None)
    if files is None or starting.method not in ("spawn", "forkserver") or len(files) > _MOST_FILES:
        return None
    if file not in files:
        starting.duplicate_for_child(file)
    return _Inherited(file) if starting.method == "spawn" else _Served(files.index(file))


def to_any_process(array):
    """Return what to pickle for an array that goes through a queue or a pipe: a handle if it is in shared memory."""
    if _process_being_started() is not None:
        return to_send(array)
    owner = shared_owner(array)
    if owner is None or owner.file is None:
        return _elements(array)
    from multiprocessing import parent_process  # few programs need it
    from multiprocessing.reduction import DupFd  # and this

    is_brief = not owner.was_asked_for and parent_process() is not None  # such processes often end once they have sent
    return _Handle(array, owner, DupFd(owner.file), _elements(array) if is_brief else None)


def share_if_alone(t):
    """Move a tensor to shared memory because it is sent, unless others than itself use its memory, or it is a view."""
    if t.is_cpu and not is_shared(t) and t._base is None and _references(holding_memory(t)) <= _references_to_one():
        share_memory_(t)
        shared_owner(holding_memory(t)).was_asked_for = False


def _references(array):
    """Return how many references there are to an array, or to the one on whose memory it is if there are more."""
    most = 0
    while isinstance(array, np.ndarray):
        most = max(most, sys.getrefcount(array))
        array = array.base
    return most if array is None or type(array).__name__ == "PyCapsule" else sys.maxsize


@functools.cache
def _references_to_one():
    """What `_references` returns for an array that one object holds, as a tensor does."""
    held = [np.empty(1)]
    return _references(held[0])
