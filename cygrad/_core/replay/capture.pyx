"""Captures a step: runs it once, with the tape open, and makes a program of what the tape holds."""

import functools
import gc
import sys

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Malloc
from libc.stdint cimport uintptr_t

from cygrad._core.graph.accumulate_grad cimport AccumulateGrad
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.opdef cimport OpNode
from cygrad._core.graph.saved_slots cimport value_in
from cygrad._core.engine.run cimport passes_begun
from cygrad._core.graph.tensor cimport (
    IS_INFERENCE, REQUIRES_GRAD, VIEW_DEFAULT, Tensor, VersionCounter, grad_fn_of, version_of, wrap)
from cygrad._core.replay.program cimport (
    A_PART, AN_ARGUMENT, AN_EXTERNAL, KEPT, MADE, NONE, REPLACED, SAME, UNSEEN, Argument, External, Program, Result)
from cygrad._core.replay.numbers cimport Numbers
from cygrad._core.runtime.thread_state cimport thread_state
from cygrad._core.types.dtypes cimport default_dtype
from cygrad._kernels.tape.tape cimport (
    ARGUMENT_BLOCK, EXTERNAL_BLOCK, INNER_BLOCK, READS, SCATTERS, WRITES, Block, Entry, Tape, Touch)
from cygrad._kernels.tape.programs cimport Launches

import numpy as np

from cygrad._core.replay import numbers
from cygrad._core.replay.histories import arrays_kept_by, further_blocks, graph_of, kept_by, leaves_of, past_of
from cygrad._core.replay.program import Refusal, Unfit, is_plain_state
from cygrad._kernels.cpu.base.arrays import drop_spares
from cygrad._kernels.cpu.random.twister import take_streams

cnp.import_array()


@cython.final
@cython.no_gc         # there are many for a short while: let them not wake the garbage collector
cdef class Seen:
    """A tensor that existed before the step, and what it was like."""

    cdef Tensor tensor
    cdef object array, grad, grad_fn, counter
    cdef long long version
    cdef unsigned int flags

    def __init__(self, Tensor tensor not None):
        self.tensor = tensor
        self.array, self.grad, self.grad_fn = tensor.array, tensor.grad_, tensor.grad_fn_
        self.counter, self.version, self.flags = tensor.counter, version_of(tensor), tensor.flags


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


def owner_of(cnp.ndarray array not None):
    """The array that owns the memory of an array, as far as NumPy knows."""
    while isinstance((<object>array).base, cnp.ndarray):
        array = (<object>array).base
    return array


def span_of(cnp.ndarray array not None):
    """The addresses (low, high) that the elements of an array span."""
    cdef uintptr_t low = <uintptr_t>cnp.PyArray_BYTES(array), high = low
    cdef int i
    if cnp.PyArray_SIZE(array) == 0:
        return low, low
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_STRIDES(array)[i] < 0:
            low += (cnp.PyArray_DIMS(array)[i] - 1) * cnp.PyArray_STRIDES(array)[i]
        else:
            high += (cnp.PyArray_DIMS(array)[i] - 1) * cnp.PyArray_STRIDES(array)[i]
    return low, high + cnp.PyArray_ITEMSIZE(array)


def joined_ranges(list arrays):
    """The memory of arrays as ranges that do not overlap, sorted: (low, high)."""
    cdef list found = []
    for low, high in sorted({span_of(owner_of(array)) for array in arrays}):
        if low == high:
            continue
        if found and low < found[len(found) - 1][1]:
            found[len(found) - 1] = found[len(found) - 1][0], max(high, found[len(found) - 1][1])
        else:
            found.append((low, high))
    return found


def capture(call, list arguments not None, flatten, *, bint sees_grads=True, tuple layouts=(), bint is_pass=False,
            census=None):
    """Run `call()` once, and return (its value, a Program or a Refusal).

    `arguments` are the tensors among the arguments of the step, `flatten` lists the tensors of its value. If not
    `sees_grads`, the step looks at no `grad` but by means of a backward pass. `layouts` are those of the gradients of a
    later backward pass, besides dense ones. `is_pass`: the step is such a pass itself. `census`: the tensors that lived a
    while ago.
    """
    cdef Situation now = Situation()
    now.arguments, now.flatten, now.sees_grads, now.is_pass, now.layouts = arguments, flatten, sees_grads, is_pass, layouts
    reason = unfit_arguments(arguments) or is_plain_state()
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        reason = "Python runs without its global lock"
    if reason:
        return call(), Refusal(reason, None, None)
    with resting_collector():
        now.census = Census() if census is None else census
        return noted(call, now)


cdef tuple noted(object call, Situation now):
    """Run `call()` with a tape open; return its value, and a Program or a Refusal."""
    cdef unsigned long long passes
    tape = Tape()
    now.before = {id(t): Seen(t) for t in now.census.again()}
    now.ranges = joined_ranges([(<Seen>seen).array for seen in now.before.values()
                                if isinstance((<Seen>seen).array, cnp.ndarray)])
    drop_spares()
    try:
        tape.open([span_of((<Tensor>t).array) for t in now.arguments], now.ranges)
    except RuntimeError:
        return call(), Refusal("another capture is open", None, None)
    take_streams()
    numbers.begin()
    passes = passes_begun()
    try:
        value = call()
    finally:
        tape.close()
        now.lives = numbers.end()
    if tape.reason is not None:
        return value, Refusal(tape.reason, tape.reason_op, tape.reason_place)
    now.has_passed = passes_begun() != passes
    try:
        return value, made_program(tape, now, now.flatten(value))
    except Unfit as unfit:
        return value, Refusal(str(unfit), None, None)


def unfit_arguments(list arguments):
    """Why these tensors cannot be arguments of a captured step, or None."""
    cdef Tensor t
    spans = []
    for t in arguments:
        if type(t.array) is not cnp.ndarray or not (<object>t.array).flags.aligned:
            return "an argument is not in main memory"
        if t.attributes:
            return "an argument has attributes, which may be others in the next call"
        if t.tangents is not None:
            return "an argument has a tangent"
        spans.append(span_of(t.array))
    spans.sort()
    for first, second in zip(spans, spans[1:]):
        if second[0] < first[1]:
            return "two arguments share memory"
    return None


# --------------------------------------------------------------------------------------- making a program


cdef class Situation:
    """What is known of a call that has been noted, besides the tape."""
    cdef list arguments, ranges, lives      # external ranges of the tape; what the step reads anew
    cdef dict before                        # {id: Seen} of each tensor
    cdef object flatten, census
    cdef bint sees_grads, is_pass, has_passed       # whether a backward pass has run
    cdef tuple layouts


cdef Program made_program(Tape tape, Situation now, list leaves):
    """A program of what a tape holds; raises Unfit."""
    cdef Program program = Program.__new__(Program)
    cdef dict before = now.before, touched = touched_extents(tape)
    cdef list slots = sorted(touched), kept = [], arguments = now.arguments, ranges = now.ranges
    cdef list outputs = [] if now.has_passed else [i for i, t in enumerate(leaves) if is_new_output(t, before)]
    cdef Py_ssize_t i, n = len(slots)
    program.modes, program.default, program.is_pass = thread_state().modes, default_dtype(), now.is_pass
    if now.has_passed and not now.is_pass:
        now.sees_grads = True
        for t in arguments:
            if (<Tensor>t).grad_fn_ is not None:
                raise Unfit("an argument has a history, which a backward pass of the step may reach")
    graph = graph_of([grad_fn_of(leaves[i]) for i in outputs], arguments, before) if outputs else None
    program.guards = [Argument(t, now.sees_grads and not now.is_pass, now.is_pass) for t in arguments]
    program.outside, program.grads, program.counts, program.results, program.sizes = [], [], [], [], []
    program.bases = {}
    program.lives, program.streams = checked_lives(now.lives, before), take_streams()
    check_streams(program.lives, program.streams)
    enter_changes(program, tape, now, touched, kept, set() if graph is None else set(map(id, leaves_of(graph))))
    enter_results(program, tape, arguments, leaves, before, kept, graph is not None)
    check_leftovers(program, leaves, now, [] if graph is None else kept_by(graph))
    program.n_ranges = n
    program.lows = <uintptr_t*>PyMem_Malloc((n + 1) * sizeof(uintptr_t))
    program.highs = <uintptr_t*>PyMem_Malloc((n + 1) * sizeof(uintptr_t))
    if program.lows == NULL or program.highs == NULL:
        raise MemoryError
    program.first_made = <int>(len(arguments) + n)
    program.changes = [touched[index][1] for index in slots]
    program.owners = owners_of(tape, before, touched)
    if graph is not None:
        enter_history(program, tape, now, graph, leaves, outputs, kept)
    program.launches = Launches(tape, kept, slots)
    program.choose_handed()
    for i in range(n):
        program.lows[i], program.highs[i] = ranges[slots[i]]
        program.launches.set_base(<int>(len(arguments) + i), <char*>program.lows[i])
    return program


cdef bint is_new_output(Tensor t, dict before) except -1:
    return id(t) not in before and grad_fn_of(t) is not None


cdef int enter_history(Program program, Tape tape, Situation now, graph, list leaves, list outputs, list kept) except -1:
    """Have the backward pass of results captured, and enter the memory that it reads as further results."""
    cdef list blocks = [], places = []
    cdef Block block
    cdef Result r
    if program.grads:
        raise Unfit("it changes gradients, and returns a result with a history")
    for array in arrays_kept_by(graph, leaves):
        low, high = span_of(array)
        block = tape.block_at(low, high) if low < high else None
        if block is not None and block.kind == INNER_BLOCK and block not in blocks:
            blocks.append(block)
    for block in blocks:
        places.append(None)
        for i in outputs:
            r = program.results[i]
            if r.kind == MADE and r.index >= 0 and kept[r.index] is block and program.sizes[r.index] == 0:
                places[len(places) - 1] = i
    program.history = past_of(program, graph, now.arguments, leaves, outputs, blocks, places,
                              functools.partial(capture, census=now.census), now.layouts, now.flatten)
    for block in further_blocks(program.history, len(now.arguments), blocks):
        r = Result(MADE, len(kept))
        r.describe(wrap(np.empty(block.high - block.low, np.uint8)))
        if block in kept:
            r.index = kept.index(block)
            program.sizes[r.index] = block.high - block.low
        else:
            kept.append(block)
            program.sizes.append(0)
        program.results.append(r)
    program.history.keeps_former = reads_changes(tape, kept)
    return 0


cdef bint reads_changes(Tape tape, list kept) except -1:
    """Whether what the step changes outside of it may decide what it returns: then the function, called once more, would not
    return the same."""
    cdef Entry entry
    cdef Touch touch
    cdef set after = set()
    for entry in tape.entries:
        for touch in entry.touches:
            if touch.block is not None and touch.mode & READS and (
                    touch.block in after or touch.block.kind == EXTERNAL_BLOCK and touch.block.is_changed):
                after.update([t.block for t in entry.touches
                              if t.mode & (WRITES | SCATTERS) and t.block is not None and t.block.kind == INNER_BLOCK])
                break
    return not after.isdisjoint(kept)


cdef list checked_lives(list found, dict before):
    """What the step reads anew; raises Unfit if it computed a number itself, since a replay reads them first."""
    cdef Seen seen
    for each in found:
        for t in (<Numbers>each).tensors if isinstance(each, Numbers) else ():
            seen = before.get(id(t))
            if seen is None or version_of(<Tensor>t) != seen.version:
                raise Unfit("a tensor with a number of an optimizer is changed by the step")
    return found


cdef int check_streams(list lives, list streams) except -1:
    """Raise unless each stream that loops draw from is followed."""
    followed = [id(each.stream) for each in lives if not isinstance(each, Numbers)]
    for stream in streams:
        if id(stream) not in followed:
            raise Unfit("random numbers are drawn from a stream of an unknown generator")
    return 0


cdef dict touched_extents(Tape tape):
    """{index of an external range: ([(low, high) addresses that loops reach], whether any writes)}."""
    cdef Entry entry
    cdef Touch touch
    cdef dict found = {}
    for entry in tape.entries:
        for touch in entry.touches:
            if touch.block is None or touch.block.kind != EXTERNAL_BLOCK:
                continue
            if not touch.block.is_alive:
                raise Unfit("a tensor outside of the step was freed during the step")
            extents = found.setdefault(touch.block.index, (set(), touch.block.is_changed))[0]
            extents.add((touch.block.low + touch.low, touch.block.low + touch.high))
    return found


cdef list owners_of(Tape tape, dict before, dict touched):
    """The arrays that own the memory of the external ranges that loops reach."""
    cdef dict found = {}
    cdef Block block
    for seen in before.values():
        if type((<Seen>seen).array) is cnp.ndarray:
            owner = owner_of((<Seen>seen).array)
            low, high = span_of(owner)
            block = tape.external_at(low, high)
            if block is not None and block.index in touched:
                found[id(owner)] = owner
    return list(found.values())


cdef bint meets(set extents, uintptr_t low, uintptr_t high) except -1:
    for first, last in extents:
        if low < last and first < high:
            return True
    return False


cdef int enter_changes(Program program, Tape tape, Situation now, dict touched, list kept, set ends) except -1:
    """Enter the tensors outside of the step that it uses, and how it changed them. `ends` are those at which the graph of
    its results ends."""
    cdef Seen seen
    cdef Tensor t
    cdef Block block
    cdef External e
    cdef dict counters = {}
    cdef uintptr_t low = 0, high = 0
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
        if type(t.array) is cnp.ndarray and cnp.PyArray_SIZE(<cnp.ndarray>t.array):
            low, high = span_of(t.array)
            block = tape.external_at(low, high)
            if block is not None and block.index in touched:
                is_used = is_used or meets(touched[block.index][0], low, high)
        if version_of(t) != seen.version and not t.flags & IS_INFERENCE:
            if block is None and tape.block_at(low, high) is not None:
                raise Unfit("an argument is changed in place")
            if block is None or not block.is_changed:
                raise Unfit("a tensor outside of the step is changed by other means than noted loops")
            counters[id(t.counter)] = (t.counter, version_of(t) - seen.version, (<VersionCounter>t.counter).op_name,
                                       (<VersionCounter>t.counter).code, (<VersionCounter>t.counter).lasti)
        if not is_used:
            continue
        if t.grad_ is not seen.grad and id(t) in given:
            raise Unfit("an argument gets a gradient")
        if id(t) in theirs:
            raise Unfit("the grad of an argument is used, and may be another in the next call")
        if t.grad_fn_ is not None or t.tangents is not None:
            raise Unfit("a tensor outside of the step has a history")
        if type(t.array) is not cnp.ndarray:
            raise Unfit("a tensor outside of the step is not in main memory")
        e = External.__new__(External)
        e.is_of_pass, e.may_have_hooks = now.is_pass, now.is_pass or not now.sees_grads
        if t.accumulator is not None and t.accumulator.hooks is not None and not e.may_have_hooks:
            raise Unfit("a tensor outside of the step has hooks")
        e.tensor, e.array, e.data, e.flags = t, t.array, cnp.PyArray_BYTES(<cnp.ndarray>t.array), t.flags
        e.grad = None
        e.before = NONE if seen.grad is None else KEPT if seen.grad is t.grad_ else REPLACED
        if t.grad_ is seen.grad and (now.is_pass or not now.sees_grads):
            e.before = UNSEEN
        if e.before == KEPT:
            e.grad = seen.grad
        program.outside.append(e)
        if t.grad_ is not seen.grad:
            enter_gradient(program, tape, e, seen.grad, now.before, touched, kept)
    program.counts.extend(counters.values())
    return 0


cdef int enter_gradient(Program program, Tape tape, External e, Tensor former, dict before, dict touched,
                        list kept) except -1:
    """Enter a new gradient of a tensor."""
    cdef Tensor grad = e.tensor.grad_
    cdef Block block
    cdef Result r
    if former is not None and type(former.array) is cnp.ndarray:
        low, high = span_of(former.array)
        block = tape.external_at(low, high)
        if block is not None and block.index in touched and meets(touched[block.index][0], low, high):
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


cdef int enter_memory(Program program, Tape tape, Result r, Tensor t, list kept) except -1:
    """Give a new tensor a slot of fresh memory."""
    cdef Block block = None
    cdef cnp.ndarray array
    cdef bint is_restricted = t.view is not None and t.view.creation_meta != VIEW_DEFAULT and not program.is_pass
    if type(t) is not Tensor or is_restricted and not can_be_made_again(t):
        raise Unfit("a view of a tensor with a history, or a tensor of a subclass, is returned")
    if type(t.array) is not cnp.ndarray or t.grad_ is not None or t.tangents is not None or t.attributes:
        raise Unfit("a tensor of an unusual kind is returned")
    array = t.array
    low, high = span_of(array)
    r.describe(t)
    if low == high:                         # no elements: memory of its own, which no slot knows
        if is_restricted:
            raise Unfit("a view without elements is returned")
        r.index = -1
        return 0
    block = tape.block_at(low, high)
    if block is None or block.kind != INNER_BLOCK:
        raise Unfit("a tensor on memory that is not its own is returned")
    if not tape.is_written(block, low - block.low, high - block.low):
        raise Unfit("a tensor that no noted loop has computed is returned")
    r.offset = cnp.PyArray_BYTES(array) - <char*>block.low
    if block in kept and not program.is_pass and (t.view is not None or is_viewed(program, kept.index(block))) and (
            not is_restricted or id(t.view.base) not in program.bases):
        raise Unfit("two results share memory, one of which is a view")
    if is_restricted:
        enter_base(program, tape, r, t, block, kept)
        return 0
    if block in kept:
        r.index = kept.index(block)
        program.sizes[r.index] = block.high - block.low
        return 0
    r.index = len(kept)
    kept.append(block)
    is_whole = cnp.PyArray_NBYTES(array) == block.high - block.low == high - low and (
        low == <uintptr_t>cnp.PyArray_BYTES(array))
    program.sizes.append(0 if is_whole else block.high - block.low)
    return 0


cdef bint can_be_made_again(Tensor view) noexcept:
    """Whether what a view lies in can be made for it alone: nothing is known of it but its memory."""
    cdef Tensor base = view.view.base
    return (type(base) is Tensor and not base.flags & REQUIRES_GRAD and base.grad_fn_ is None and base.grad_ is None
            and view.grad_fn_ is None and base.tangents is None and not base.attributes)


cdef bint is_viewed(Program program, Py_ssize_t index) except -1:
    """Whether results are views of a tensor on this memory."""
    cdef Result base
    for base in program.bases.values():
        if base.index == index:
            return True
    return False


cdef int enter_base(Program program, Tape tape, Result r, Tensor t, Block block, list kept) except -1:
    """Enter a view that may not be changed in place as others may, and what it lies in."""
    cdef Tensor of = t.view.base
    cdef Result base = program.bases.get(id(of))
    low, high = span_of(of.array)
    if tape.block_at(low, high) is not block or not tape.is_written(block, low - block.low, high - block.low):
        raise Unfit("a view of a tensor that no noted loop has computed is returned")
    if base is None:
        base = program.bases[id(of)] = Result(MADE, len(kept))
        base.describe(of)
        base.offset = cnp.PyArray_BYTES(<cnp.ndarray>of.array) - <char*>block.low
        base.number = len(program.bases) - 1
        kept.append(block)
        program.sizes.append(block.high - block.low)
    r.index, r.base = base.index, base
    r.made = t.view.creation_meta, t.view.code, t.view.lasti
    return 0


cdef int enter_results(Program program, Tape tape, list arguments, list leaves, dict before, list kept,
                       bint has_history) except -1:
    cdef Tensor t
    cdef Result r
    cdef dict at = {}
    cdef dict places = {id(t): i for i, t in enumerate(arguments)}
    cdef dict outside = {id((<External>e).tensor): i for i, e in enumerate(program.outside)}
    cdef dict grads = {id((<External>e).tensor.grad_): i for i, (e, made) in enumerate(program.grads) if made is not None}
    for i, t in enumerate(leaves):
        if t.view is not None and id(t.view.base) in at and not program.is_pass:
            raise Unfit("a tensor and a view of it are returned")
        if id(t) in at:
            r = Result(SAME, at[id(t)])
        elif id(t) in places:
            r = Result(AN_ARGUMENT, places[id(t)])
        elif id(t) in outside:
            r = Result(AN_EXTERNAL, outside[id(t)])
        elif id(t) in before:
            raise Unfit("a tensor that the step does not use is returned")
        elif id(t) in grads:
            raise Unfit("a new gradient is returned")
        elif program.is_pass and enter_part(program, tape, arguments, t):
            at[id(t)] = i
            continue
        else:
            r = Result(MADE, 0)
            if t.flags & REQUIRES_GRAD and t.grad_fn_ is None:
                raise Unfit("a new leaf is returned")
            if t.grad_fn_ is not None and not has_history:
                check_graph(t.grad_fn_)
            enter_memory(program, tape, r, t, kept)
            if has_history:
                r.grad_fn = None
        at[id(t)] = i
        program.results.append(r)
    return 0


cdef bint enter_part(Program program, Tape tape, list arguments, Tensor t) except -1:
    """Enter a result of a pass that is a part of an argument, as expanded gradients are; return whether it is one."""
    cdef Block block
    cdef Result r
    if type(t) is not Tensor or type(t.array) is not cnp.ndarray or not cnp.PyArray_SIZE(<cnp.ndarray>t.array):
        return False
    low, high = span_of(t.array)
    block = tape.block_at(low, high)
    if block is None or block.kind != ARGUMENT_BLOCK or t.grad_fn_ is not None:
        return False
    r = Result(A_PART, block.index)
    r.describe(t)
    argument = (<Tensor>arguments[r.index]).array
    r.offset = cnp.PyArray_BYTES(<cnp.ndarray>t.array) - cnp.PyArray_BYTES(<cnp.ndarray>argument)
    program.results.append(r)
    return True


cpdef int check_graph(Node root) except -1:
    """Raise unless the graph of a result has been used up, so that its nodes hold no values."""
    cdef list todo = [root]
    cdef set seen = set()
    cdef Node node
    cdef Py_ssize_t i
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            continue
        if type(node) is not OpNode or node.hooks is not None:
            raise Unfit("a result carries a graph with nodes of other kinds than built-in ops, or with hooks")
        for i in range(node.n_places()):
            if holds_values(value_in(node, i)):
                raise Unfit("a result carries a graph")
        if node.freed_by is None and holds_values((<OpNode>node).arguments):
            raise Unfit("a result carries a graph")         # else it can only raise the error that it was freed
        for i in range(node.n_edges):
            target = node.target(<int>i)
            if isinstance(target, Node):
                todo.append(target)
    return 0


cdef bint holds_values(object value) except -1:
    if value is None or isinstance(value, (int, float, complex, str, bytes)):
        return False
    if isinstance(value, (tuple, list)):
        for each in value:
            if holds_values(each):
                return True
        return False
    return True


cdef int check_leftovers(Program program, list leaves, Situation now, list more) except -1:
    """Raise if a new tensor lives on that is neither a result nor a gradient, nor one of `more`."""
    known = {id(t) for t in (*leaves, *more)}
    known.update([id((<Tensor>t).view.base) for t in (*leaves, *more) if (<Tensor>t).view is not None])
    for t in leaves:
        add_arguments((<Tensor>t).grad_fn_, known)
    known.update([id((<External>e).tensor.grad_) for e, _ in program.grads])
    if has_others(now.census.again(), now.before, known):
        gc.collect()
        if has_others(now.census.again(), now.before, known):
            raise Unfit("a new tensor outlives the step")
    return 0


cpdef int add_arguments(Node root, set known) except -1:
    """Add the tensors among the arguments of the nodes of a graph that has been used up."""
    cdef list todo = [] if root is None else [root]
    cdef set seen = set()
    cdef Node node
    cdef int i
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is OpNode and (<OpNode>node).arguments is not None:
            known.update([id(value) for value in (<OpNode>node).arguments if isinstance(value, Tensor)])
        for i in range(node.n_edges):
            target = node.target(i)
            if isinstance(target, Node):
                todo.append(target)
    return 0


cpdef bint has_others(list tensors, dict before, set known) except -1:
    """Whether tensors are among these that are neither in `before` nor `known`, both by their ids."""
    for t in tensors:
        if id(t) not in before and id(t) not in known:
            return True
    return False
