"""What was there before a step was captured, and what is there after it."""

import gc

cimport cython
cimport numpy as cnp

from cygrad._core.graph.tensor cimport Tensor, version_of
from cygrad._core.replay.extents cimport joined_ranges

cnp.import_array()


@cython.final
@cython.no_gc         # there are many for a short while: let them not wake the garbage collector
cdef class Seen:
    """A tensor that existed before the step, and what it was like."""

    cdef int describe(self, Tensor tensor) except -1:
        self.tensor = tensor
        self.array, self.grad, self.grad_fn = tensor.array, tensor.grad_, tensor.grad_fn_
        self.counter, self.version, self.flags = tensor.counter, version_of(tensor), tensor.flags
        return 0


class resting_collector:
    """A block in which the garbage collector does not begin by itself: of many new objects, it finds none to free."""

    def __enter__(self):
        self.was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *error):
        if self.was_on:
            gc.enable()


class Census:
    """The tensors that live. To look at all objects takes milliseconds. So only young ones are looked at again, as long as
    no garbage was collected in between, which makes objects old: for that long, the collector should rest."""

    def __init__(self):
        self.runs = runs_of_collector()
        self.known = living_tensors()

    def again(self):
        """All tensors that live now, and perhaps some that would not without the census."""
        if runs_of_collector() != self.runs:
            self.__init__()
        return [*self.known, *tensors_among(gc.get_objects(0))]


def runs_of_collector():
    """How often garbage of each age has been collected."""
    return [stats["collections"] for stats in gc.get_stats()]


def living_tensors():
    """All tensors that the garbage collector knows."""
    return tensors_among(gc.get_objects())


cdef list tensors_among(list objects):
    return [value for value in objects if isinstance(value, Tensor)]


@cython.final
cdef class Situation:

    cdef int begin(self) except -1:
        """Look at all tensors; see `before` and `ranges`."""
        cdef Seen seen
        cdef list arrays = []
        self.before = {}
        for t in self.census.again():
            seen = Seen.__new__(Seen)
            seen.describe(<Tensor>t)
            if isinstance(seen.array, cnp.ndarray):
                arrays.append(seen.array)
            self.before[id(t)] = seen
        self.ranges = joined_ranges(arrays)
        return 0
