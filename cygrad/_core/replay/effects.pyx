"""Finds out how a captured step has changed what existed before: tensors, their versions and their gradients."""

cimport cython
cimport numpy as cnp
from libc.stdint cimport uintptr_t

from cygrad._core.graph.tensor cimport IS_INFERENCE, Tensor, VersionCounter, version_of
from cygrad._core.replay.extents cimport Span, extent_of, owner_of
from cygrad._core.replay.parts cimport MADE, External, Result, external_of
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.results cimport enter_memory
from cygrad._core.replay.situation cimport Seen, Situation
from cygrad._kernels.tape.tape cimport EXTERNAL_BLOCK, Block, Entry, Tape, Touch

from cygrad._core.replay.parts import Unfit

cnp.import_array()


@cython.final
@cython.no_gc         # there are many, and none is part of a cycle
cdef class Extents:
    """What loops reach of an external range."""
    cdef uintptr_t low, high    # the first extent
    cdef set others             # (low, high) of further ones, or None
    cdef bint is_changed        # whether any loop writes there

    cdef int add(self, uintptr_t low, uintptr_t high) except -1:
        if low != self.low or high != self.high:
            if self.others is None:
                self.others = set()
            self.others.add((low, high))
        return 0

    cdef bint meet(self, Span span) except -1:
        if span.low < self.high and self.low < span.high:
            return True
        for each in self.others or ():
            if span.low < <uintptr_t>(<tuple>each)[1] and <uintptr_t>(<tuple>each)[0] < span.high:
                return True
        return False


cdef dict touched_extents(Tape tape):
    """{index of an external range: Extents}, for those that loops reach."""
    cdef Entry entry
    cdef Touch touch
    cdef Extents extents
    cdef dict found = {}
    for entry in tape.entries:
        for touch in entry.touches:
            if touch.block is None or touch.block.kind != EXTERNAL_BLOCK:
                continue
            if not touch.block.is_alive:
                raise Unfit("a tensor outside of the step was freed during the step")
            extents = found.get(touch.block.index)
            if extents is None:
                extents = found[touch.block.index] = Extents.__new__(Extents)
                extents.low, extents.high = touch.block.low + touch.low, touch.block.low + touch.high
                extents.is_changed = touch.block.is_changed
            else:
                extents.add(touch.block.low + touch.low, touch.block.low + touch.high)
    return found


cdef list changes_of(dict touched, list slots):
    """Whether loops write to each of these external ranges."""
    return [(<Extents>touched[index]).is_changed for index in slots]


cdef bint are_reached(dict touched, Block block, Span span) except -1:
    """Whether loops reach any of these bytes, of an external range."""
    cdef Extents extents = touched.get(block.index)
    return extents is not None and extents.meet(span)


cdef int keep_owner(Tape tape, cnp.ndarray array, dict touched, dict owners) except -1:
    """Enter the array that owns the memory of an array, if loops reach the external range it lies in."""
    cdef cnp.ndarray owner = owner_of(array)
    cdef Span span = extent_of(owner)
    cdef Block block = tape.external_at(span.low, span.high)
    if block is not None and block.index in touched:
        owners[id(owner)] = owner
    return 0


cdef int enter_changes(Program program, Tape tape, Situation now, dict touched, list kept, set ends) except -1:
    """Enter the tensors outside of the step that it uses, and how it changed them, and what owns further memory that loops
    reach. `ends` are the tensors at which the graph of its results ends."""
    cdef Seen seen
    cdef Tensor t
    cdef Block block
    cdef External e
    cdef dict counters = {}, owners = {}
    cdef Span span
    cdef dict of_arguments = {id((<Tensor>t).counter): i for i, t in enumerate(now.arguments)
                              if (<Tensor>t).counter is not None}
    cdef set given = set() if now.is_pass else {id(t) for t in now.arguments}
    cdef set theirs = set() if now.is_pass else {id(t.grad_) for t in now.arguments if t.grad_ is not None}
    for seen in now.before.values():
        t = seen.tensor
        if t.array is not seen.array:
            raise Unfit("a tensor outside of the step gets other memory")
        if t.flags != seen.flags or t.grad_fn_ is not seen.grad_fn:
            raise Unfit("a tensor outside of the step gets a history, or requires grad from now on, or no more")
        if seen.counter is not None and t.counter is not seen.counter:
            raise Unfit("a tensor outside of the step gets another version counter")
        is_used = t.grad_ is not seen.grad or id(t) in ends
        block = None
        span.low = span.high = 0
        if type(t.array) is cnp.ndarray and cnp.PyArray_SIZE(<cnp.ndarray>t.array):
            span = extent_of(<cnp.ndarray>t.array)
            block = tape.external_at(span.low, span.high)
            if block is not None:
                is_used = is_used or are_reached(touched, block, span)
        if version_of(t) != seen.version and not t.flags & IS_INFERENCE and id(t.counter) in of_arguments:
            enter_change_of_argument(program, tape, of_arguments[id(t.counter)], t.counter, version_of(t) - seen.version)
        elif version_of(t) != seen.version and not t.flags & IS_INFERENCE:
            if block is None or not block.is_changed:
                raise Unfit("a tensor outside of the step is changed by other means than noted loops")
            counters[id(t.counter)] = (t.counter, version_of(t) - seen.version, (<VersionCounter>t.counter).op_name,
                                       (<VersionCounter>t.counter).code, (<VersionCounter>t.counter).lasti)
        if not is_used or now.is_pass and is_part_of_leaf(t, now.before):
            if type(t.array) is cnp.ndarray:
                keep_owner(tape, <cnp.ndarray>t.array, touched, owners)
            continue
        if t.grad_ is not seen.grad and id(t) in given:
            raise Unfit("an argument gets a gradient")
        if id(t) in theirs:
            raise Unfit("the grad of an argument is used, and may be another in the next call")
        e = external_of(t, seen.grad, now.sees_grads, now.is_pass)
        if e.data == NULL:
            raise Unfit("a tensor outside of the step is not in main memory")
        program.outside.append(e)
        if t.grad_ is not seen.grad:
            enter_gradient(program, tape, e, seen.grad, now.before, touched, kept)
    program.counts.extend(counters.values())
    program.owners = list(owners.values())
    return 0


cdef int enter_change_of_argument(Program program, Tape tape, Py_ssize_t i, VersionCounter counter, long long by) except -1:
    """Enter that the version of an argument goes up."""
    if not (<Block>tape.arguments[i]).is_changed:
        raise Unfit("an argument is changed by other means than noted loops")
    for each in program.given_counts:
        if (<tuple>each)[0] == i:
            return 0
    program.given_counts.append((i, by, counter.op_name, counter.code, counter.lasti))
    return 0


cdef bint is_part_of_leaf(Tensor t, dict before) except -1:
    """Whether a tensor, such as a transposed weight that a graph has saved, is a view of a leaf, which is guarded."""
    return (t.grad_fn_ is not None and t.view is not None and t.view.base.grad_fn_ is None
            and t.view.base.tangents is None and id(t.view.base) in before)


cdef int enter_gradient(Program program, Tape tape, External e, Tensor former, dict before, dict touched,
                        list kept) except -1:
    """Enter a new gradient of a tensor."""
    cdef Tensor grad = e.tensor.grad_
    cdef Block block
    cdef Result r
    cdef Span span
    if former is not None and type(former.array) is cnp.ndarray:
        span = extent_of(<cnp.ndarray>former.array)
        block = tape.external_at(span.low, span.high)
        if block is not None and are_reached(touched, block, span):
            raise Unfit("a gradient is used, and then replaced")
    if grad is None:
        program.grads.append((e, None))
        return 0
    if id(grad) in before:
        raise Unfit("a tensor outside of the step becomes a gradient")
    if grad.grad_fn_ is not None:
        raise Unfit("a new gradient has a history")
    r = Result(MADE, 0)
    enter_memory(program, tape, r, grad, kept)
    program.grads.append((e, r))
    return 0
