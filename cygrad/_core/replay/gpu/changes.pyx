"""What a captured call on a GPU changes of the tensors that existed before it."""

cimport cython

from cygrad._core.graph.inplace cimport set_grad
from cygrad._core.graph.tensor cimport IS_INFERENCE, Tensor, VersionCounter, version_of
from cygrad._core.replay.gpu.twins cimport is_here
from cygrad._core.replay.graphs cimport Graph

import gc

from numpy import ndarray

from cygrad._core.replay.histories import objects_kept_by
from cygrad._core.replay.parts import Unfit
from cygrad._core.replay.results import add_arguments, has_others
from cygrad._core.replay.situation import living_tensors


@cython.final
@cython.no_gc
cdef class Former:
    """A tensor that existed before a call, and what it was like."""

    def __init__(self, Tensor t not None):
        self.tensor, self.flags = t, t.flags
        self.array, self.grad, self.grad_fn, self.counter = t.array, t.grad_, t.grad_fn_, t.counter
        self.version = version_of(t)
        if t.counter is not None:
            self.op_name, self.code, self.lasti = t.counter.op_name, t.counter.code, t.counter.lasti

    cdef int put_back(self) except -1:
        """Let the tensor be what it was."""
        cdef Tensor t = self.tensor
        cdef VersionCounter counter = t.counter
        t.array, t.flags, t.grad_fn_ = self.array, self.flags, self.grad_fn
        if t.grad_ is not self.grad:
            set_grad(t, self.grad)
        if counter is not None:
            counter.version, counter.op_name, counter.code, counter.lasti = (
                self.version, self.op_name, self.code, self.lasti)
        return 0


cdef dict formers():
    return {id(t): Former(t) for t in living_tensors()}


cdef tuple changes_of(dict before, list arguments, int device, object counts_of_steps):
    """([(Former, new grad) of each tensor whose `grad` was changed], {id of a counter: its change}); raises Unfit.

    `counts_of_steps` are ids of arrays in main memory that may change; None if that is not known yet."""
    cdef Former seen
    cdef Tensor t
    cdef dict counts = {}
    cdef list grads = []
    cdef set given = {id(t) for t in arguments}
    for seen in before.values():
        t = seen.tensor
        if t.array is not seen.array and id(t) not in given:
            raise Unfit("a tensor outside of the step gets other memory")
        if t.flags != seen.flags or t.grad_fn_ is not seen.grad_fn:
            raise Unfit("a tensor outside of the step gets a history, or requires grad from now on, or no more")
        if seen.counter is not None and t.counter is not seen.counter:
            raise Unfit("a tensor outside of the step gets another version counter")
        if version_of(t) != seen.version and not t.flags & IS_INFERENCE:
            if id(t) in given:
                raise Unfit("an argument is changed in place")
            if not is_here(t.array, device) and not (type(t.array) is ndarray and (
                    counts_of_steps is None or id(t.array) in counts_of_steps)):
                raise Unfit("a tensor that is not in the memory of the GPU is changed")
            counts[id(t.counter)] = (t.counter, version_of(t) - seen.version, (<VersionCounter>t.counter).op_name,
                                     (<VersionCounter>t.counter).code, (<VersionCounter>t.counter).lasti)
        if t.grad_ is not seen.grad:
            if id(t) in given:
                raise Unfit("an argument gets a gradient")
            if t.grad_ is not None and id(t.grad_) in before:
                raise Unfit("a tensor outside of the step becomes a gradient")
            grads.append((seen, t.grad_))
    return grads, counts


cdef int check_leftovers(dict before, list leaves, list grads, Graph graph) except -1:
    """Raise if a new tensor lives on that is neither a result nor a gradient."""
    cdef set known = {id(t) for t in leaves}
    known.update([id(t) for t in ([] if graph is None else objects_kept_by(graph, leaves)) if isinstance(t, Tensor)])
    known.update([id((<Tensor>t).view.base) for t in leaves if (<Tensor>t).view is not None])
    for t in leaves:
        add_arguments((<Tensor>t).grad_fn_, known)
    known.update([id(grad) for _, grad in grads])
    if has_others(living_tensors(), before, known):
        gc.collect()
        if has_others(living_tensors(), before, known):
            raise Unfit("a new tensor outlives the step")
    return 0
