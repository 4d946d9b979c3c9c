"""Captures a step: runs it once, with the tape open, and makes a program of what the tape holds."""

import functools
import sys

cimport numpy as cnp
from cpython.mem cimport PyMem_Malloc
from libc.stdint cimport uintptr_t

from cygrad._core.engine.run cimport passes_begun
from cygrad._core.graph.tensor cimport Tensor, grad_fn_of, version_of, wrap
from cygrad._core.replay.effects cimport changes_of, enter_changes, touched_extents
from cygrad._core.replay.numbers cimport Numbers
from cygrad._core.replay.parts cimport MADE, Argument, Result
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.results cimport check_leftovers, enter_results
from cygrad._core.replay.situation cimport Seen, Situation
from cygrad._core.runtime.thread_state cimport thread_state
from cygrad._core.types.dtypes cimport default_dtype
from cygrad._kernels.tape.programs cimport Launches
from cygrad._kernels.tape.tape cimport EXTERNAL_BLOCK, INNER_BLOCK, READS, SCATTERS, WRITES, Block, Entry, Tape, Touch

import numpy as np

from cygrad._core.errors.sites import Heard
from cygrad._core.replay import numbers
from cygrad._core.replay.casts import added, known, situation, situation_of_pass
from cygrad._core.replay.extents import span_of
from cygrad._core.replay.histories import arrays_kept_by, further_blocks, graph_of, kept_by, leaves_of, past_of
from cygrad._core.replay.parts import Refusal, Unfit, is_plain_state
from cygrad._core.replay.situation import Census, resting_collector
from cygrad._kernels.cpu.base.arrays import drop_spares
from cygrad._kernels.cpu.random.twister import take_streams

cnp.import_array()


def capture(call, list arguments not None, flatten, further=None, *, bint sees_grads=True, bint reads_grads=True,
            tuple layouts=(), bint is_pass=False, census=None):
    """Run `call()` once, and return (its value, a Program or a Refusal).

    `arguments` are the tensors among the arguments of the step, `flatten` lists the tensors of its value, `further` those
    that numbers in it were read from. If not `sees_grads`, the step looks at no `grad` but by means of a backward pass; if
    not `reads_grads`, only functions of this package do. `layouts` are those of the gradients of a later backward pass,
    besides dense ones. `is_pass`: the step is such a pass itself. `census`: the tensors that lived a while ago.
    """
    cdef Situation now = Situation()
    now.arguments, now.flatten, now.is_pass, now.layouts = arguments, flatten, is_pass, layouts
    now.sees_grads, now.reads_grads = sees_grads, reads_grads
    reason = unfit_arguments(arguments) or is_plain_state(may_cast=True)
    if not getattr(sys, "_is_gil_enabled", bool)() and hasattr(sys, "_is_gil_enabled"):
        reason = "Python runs without its global lock"
    if reason:
        return call(), Refusal(reason, None, None)
    with resting_collector():
        now.census = Census() if census is None else census
        return noted(call, now, further)


cdef tuple noted(object call, Situation now, object further):
    """Run `call()` with a tape open; return its value, and a Program or a Refusal."""
    cdef unsigned long long passes
    cdef Program program
    tape = Tape()
    now.begin()
    drop_spares()
    try:
        tape.open([span_of((<Tensor>t).array) for t in now.arguments], now.ranges)
    except RuntimeError:
        return call(), Refusal("another capture is open", None, None)
    take_streams()
    numbers.begin()
    passes = passes_begun()
    before = known()
    heard = Heard(True)
    try:
        with heard:
            value = call()
    finally:
        tape.close()
        now.lives = numbers.end()
    if tape.reason is not None:
        return value, Refusal(tape.reason, tape.reason_op, tape.reason_place)
    now.has_passed = passes_begun() != passes
    try:
        read = [] if further is None else further(value)
        program = made_program(tape, now, now.flatten(value), added(before), read)
        program.warned = heard.calls
        return value, program
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


cdef Program made_program(Tape tape, Situation now, list leaves, list casts, list read):
    """A program of what a tape holds; raises Unfit. `casts` are those that the step has left (Note [Casts] in casts.py),
    `read` are tensors that Python's numbers were read from (Note [Returned numbers] in returned.py)."""
    cdef Program program = Program.__new__(Program)
    cdef dict before = now.before, touched = touched_extents(tape)
    cdef list slots = sorted(touched), kept = [], arguments = now.arguments, ranges = now.ranges
    cdef list outputs
    cdef Py_ssize_t i, n = len(slots)
    now.n_shown = len(leaves)
    leaves = [*leaves, *[cast.tensor for cast in casts], *read]
    program.n_shown = now.n_shown
    outputs = [] if now.has_passed else [i for i, t in enumerate(leaves) if is_new_output(t, before)]
    program.casting = situation_of_pass() if now.is_pass else situation()
    program.casts, program.values = casts, [cast.value for cast in casts]
    program.modes, program.default, program.is_pass = thread_state().modes, default_dtype(), now.is_pass
    if now.has_passed and not now.is_pass:
        now.sees_grads = True
        for t in arguments:
            if (<Tensor>t).grad_fn_ is not None:
                raise Unfit("an argument has a history, which a backward pass of the step may reach")
    graph = graph_of([grad_fn_of(leaves[i]) for i in outputs], arguments, before) if outputs else None
    program.guards = [Argument(t, now.sees_grads and not now.is_pass, now.is_pass) for t in arguments]
    program.outside, program.grads, program.counts, program.results, program.sizes = [], [], [], [], []
    program.bases, program.given_counts = {}, []
    program.given_changes = [(<Block>block).is_changed for block in tape.arguments]
    if any(program.given_changes) and (now.is_pass or graph is not None):
        raise Unfit("an argument is changed in place, and a backward pass comes later")
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
    program.changes = changes_of(touched, slots)
    if graph is not None:
        enter_history(program, tape, now, graph, leaves, outputs, kept)
    program.launches = Launches(tape, kept, slots, [kept[r.index] for _, r in program.grads if is_alone(program, r)])
    program.choose_handed()
    program.pauses = []
    if program.launches.takes_memory() and not (now.reads_grads and program.launches.may_fail()):
        program.choose_pauses(tape)
    for i in range(n):
        program.lows[i], program.highs[i] = ranges[slots[i]]
        program.launches.set_base(<int>(len(arguments) + i), <char*>program.lows[i])
    return program


cdef bint is_alone(Program program, Result grad) noexcept:
    """Whether a gradient is fresh, and the only tensor on its memory."""
    return grad is not None and grad.index >= 0 and program.sizes[grad.index] == 0


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
                              functools.partial(capture, census=now.census), now.layouts, now.flatten, now.n_shown)
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
