"""Replays backward passes of compiled functions that run as they are written.

Note [Followed passes]
----------------------
Where something prevents replaying a function (it prints, counts or reads a value), its ops run one by one. The backward
passes that it starts can be replayed all the same: no code of the user runs between their nodes, as long as there are no
hooks and no nodes but those of built-in ops. So `carry_out` (engine/backward.pyx) first asks the `Follower` of the function
that is running:

    seen        A large pass is described (Note [Schemes] in schemes.pyx).
    captured    The second pass that is like it is run once more beforehand, with a tape open, and without adding to leaves.
                The memory of saved values and the gradients that come from outside are its arguments, the gradients that
                arrive its results. It must touch nothing else that existed before.
    compared    The third one runs the program, too, and compares all bits.
    replayed    From then on the program computes the gradients. What remains is done as the engine does it: graphs are
                released, and gradients added to leaves, in the same order and by the same functions.
    otherwise   If anything is not like before, the engine runs the pass as always, from its beginning, with eager's errors.
                Nothing has been changed until then.

A pass is left alone if little of its work is in loops that join. A follower that finds nothing to replay rests ever longer.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF

from cygrad._core.engine.backward cimport carry_out, follow_passes
from cygrad._core.engine.run cimport Run
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.calls.schemes cimport scheme_of, twin_of
from cygrad._core.runtime.thread_state cimport NO_GRAD, ThreadState, thread_state
from cygrad._kernels.tape.groups cimport Group
from cygrad._kernels.tape.tape cimport Entry, tape_open

from cygrad._core.replay.capture import capture
from cygrad._core.replay.histories import are_there
from cygrad._core.replay.parts import Unfit, is_plain_state
from cygrad._core.replay.program import MISS
from cygrad._core.replay.calls.schemes import CHANGED
from cygrad._core.types.device import cpu_device, default_device, defaults

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) PyObject *cygrad_follower;
    #else
    static __thread PyObject *cygrad_follower;
    #endif
    """
    PyObject* cygrad_follower           # that of the compiled function which is running in this thread, or NULL; owned

cdef enum:                      # Followed.stage
    SEEN
    CAPTURED
    TRUSTED
    LEFT

cdef enum:
    LEAST = 1 << 15             # elements of a node's result, on average; below this, comparing nodes costs too much
    LEAST_NODES = 8             # of as many elements
    MOST_KINDS = 4              # of one function
    MOST_CAPTURES = 12
    MOST_FAILURES = 3           # of capturing one kind
    FRUITLESS = 16              # passes without a replay, before the first rest
    REST = 64                   # passes: the first rest; each is twice as long as the last one
    MOST_RESTS = 8

cdef object _miss = MISS


cdef object follow_by(object follower):
    global cygrad_follower
    cdef PyObject* former = cygrad_follower
    cygrad_follower = NULL if follower is None else <PyObject*>follower
    Py_XINCREF(cygrad_follower)
    if former == NULL:
        return None
    found = <object>former
    Py_XDECREF(former)
    return found


cdef Follower begin_to_follow(Follower follower):
    if follower is not None:
        follower.functions += 1
    return follow_by(follower)


cdef int end_to_follow(Follower follower, Follower former) except -1:
    # Functions that greenlets run need not end in the order in which they began.
    if follower is not None:
        follower.functions -= 1
    follow_by(None if former is None or former.functions == 0 else former)
    return 0


cdef bint may_be_followed(Run run) except -1:
    """Whether a pass is of the usual kind: not within another one, and over a graph that no other thread is using."""
    return (thread_state().run == NULL and not run.has_streams and run.oldest == 0 and run.ends is None
            and run.foreign is None and (not defaults.in_use or default_device() == cpu_device))


cdef bint follow_run(Run run) except -1:
    """Do a pass that is about to begin, if it can be replayed; return whether it is done."""
    cdef Follower follower
    if cygrad_follower == NULL or tape_open:
        return False
    PyErr_CheckSignals()                # a handler may change anything, so before the comparison
    follower = <Follower>cygrad_follower
    if follower.rests:
        follower.rests -= 1
        return False
    if follower.is_busy or not may_be_followed(run):
        return False
    follower.is_busy = True
    try:
        return follower.follow(run)
    finally:
        follower.is_busy = False


follow_passes(follow_run)


class following:
    """A block in which a `Follower` follows the passes of this thread, whether a compiled function is running or not."""

    def __init__(self, Follower follower not None):
        self.follower = follower

    def __enter__(self):
        self.former = begin_to_follow(self.follower)

    def __exit__(self, *error):
        end_to_follow(self.follower, self.former)


@cython.final
cdef class Followed:
    """A kind of passes; see Note [Followed passes]."""

    cdef int leave(self, str reason) except -1:
        """Leave such passes alone from now on."""
        self.stage, self.reason, self.program = LEFT, reason, None
        return 0

    cdef list inner(self, Run run):
        """The gradients that leave a pass, or None for each: from a run of its own, which changes nothing."""
        cdef Run twin = twin_of(run)
        cdef Py_ssize_t i, entry
        cdef int nr
        twin.keep_graph, twin.captures, twin.captured = True, {}, [None] * len(self.scheme.ends)
        for i, (entry, nr) in enumerate(self.scheme.ends):
            twin.entries[entry].captured = True
            twin.captures.setdefault((entry, nr), []).append(i)
        for i in range(run.n_entries):
            if run.entries[i].grad == NULL:
                continue
            value = <object>run.entries[i].grad
            for nr, grad in enumerate(value if type(value) is list else (value,)):
                if grad is not None:
                    twin.give(i, nr, grad)
        twin.select()
        carry_out(twin, False)
        return twin.captured

    cdef int capture(self, Run run, Py_ssize_t least) except -1:
        """Capture a pass that is like the one before."""
        cdef Entry entry
        cdef list arguments = [*self.scheme.given(run), *self.scheme.memory()]
        cdef Py_ssize_t k = 0
        try:
            found, made = capture(lambda: self.inner(run), arguments, are_there, is_pass=True)
        except Exception as error:              # the engine will raise it, too
            return self.leave(f"it raised {type(error).__name__}")
        if not isinstance(made, Program):       # perhaps only because of what another thread did at the same time
            self.failures += 1
            return self.leave(str(made)) if self.failures == MOST_FAILURES else 0
        self.program = made
        if (self.program.outside or self.program.n_ranges or self.program.counts or self.program.grads
                or self.program.lives or self.program.streams):
            return self.leave("it reads or changes tensors that the graph does not keep")
        for entry in self.program.launches.entries:
            if entry.call is not None and entry.call.has_constants:
                return self.leave(f"`{entry.call.name}` reads an array that the graph does not keep")
        if least and not gains(self.program):
            return self.leave("little of its work is in loops that join")
        self.places = []
        for grad in found:
            self.places.append(-1 if grad is None else k)
            k += grad is not None
        self.stage = CAPTURED
        return 0

    cdef int compare(self, Run run) except -1:
        """Compare the program with a run of the pass."""
        try:
            _, text = self.program.check(
                lambda: self.inner(run), [*self.scheme.given(run), *self.scheme.memory()], are_there)
        except Exception as error:
            return self.leave(f"it raised {type(error).__name__}")
        if text is not None:
            return self.leave(f"two passes did not do the same: {text}")
        self.stage, self.since_check = TRUSTED, 0
        return 0

    cdef bint replay(self, Run run) except -1:
        """Do the pass; return False if it cannot be replayed, with nothing done."""
        cdef list given = self.scheme.given(run)
        cdef Py_ssize_t i
        given.extend(self.scheme.memory())
        found = self.program.replay(given)
        given = self.scheme.owners = None       # so that gradients on nobody else's memory are found to be so
        if found is _miss:
            return False
        for i in range(run.n_entries):
            Py_XDECREF(run.entries[i].grad)
            run.entries[i].grad = NULL
        self.finish(run, [None if place < 0 else (<list>found)[place] for place in self.places])
        return True

    cdef int finish(self, Run run, list found) except -1:
        """Do what the engine does besides computing gradients, in its order."""
        cdef ThreadState* state = thread_state()
        cdef unsigned int modes = state.modes
        cdef Node node
        cdef Py_ssize_t i, entry
        cdef Tensor grad
        state.modes = modes | NO_GRAD           # as in the engine, also for finalizers of what is released
        state.run = <void*>run
        try:
            if not run.keep_graph:
                for each in self.scheme.done:
                    node = <Node>run.entries[<Py_ssize_t>each].node
                    with cython.critical_section(node):
                        node.release_variables(run.freed_by)
            if run.captures is not None:
                for i, end in enumerate(self.scheme.ends):
                    for position in run.captures[end]:
                        run.captured[position] = found[i]
                return 0
            for i in range(len(found)):
                entry = (<tuple>self.scheme.ends[i])[0]
                grad = found[i]
                found[i] = None                 # now `grad` is the only reference, unless a further leaf gets it, too
                if grad is not None:
                    node = <Node>run.entries[entry].node
                    with cython.critical_section(node):
                        node.call(grad)
        finally:
            state.modes = modes
            state.run = NULL
        return 0


cdef bint gains(Program program) except -1:
    """Whether at least half of the bytes that a program reads and writes are touched in groups of loops."""
    cdef Entry entry
    cdef Py_ssize_t joined = 0, all_bytes = 0
    for unit in program.launches.units:
        for entry in (<Group>unit).entries if isinstance(unit, Group) else (unit,):
            all_bytes += entry.bytes_read + entry.bytes_written
            if isinstance(unit, Group):
                joined += entry.bytes_read + entry.bytes_written
    return 2 * joined >= all_bytes > 0


cdef bint is_large(Run run, Py_ssize_t least) noexcept:
    """Whether a pass has enough work for comparing its graph: nodes with so many elements on average."""
    cdef Py_ssize_t i, work = 0, size
    cdef Node node
    cdef int k
    for i in range(run.n_entries):
        node = <Node>run.entries[i].node
        if node.metas is not None or node.n_edges == 0:
            continue
        size = 1
        for k in range(node.meta.ndim):
            size *= node.meta.dims[k]
        work += size
    return work >= least * max(run.n_entries, LEAST_NODES)


@cython.final
cdef class Follower:
    """Follows the backward passes of one function. `every`: each replay with that number is compared with the engine's;
    `least`: elements of a node's result, on average, or 0: passes are followed even if that gains nothing."""

    def __init__(self, Py_ssize_t every=0, Py_ssize_t least=LEAST):
        self.kinds, self.every, self.least = [], every, least

    cdef bint follow(self, Run run) except -1:
        cdef Followed kind
        cdef list kinds = self.kinds
        cdef bint is_changed = False
        self.fruitless += 1
        if self.fruitless > FRUITLESS:
            self.fruitless = 0
            self.rests = REST << self.rested
            self.rested = min(self.rested + 1, MOST_RESTS)
        if not is_large(run, self.least):
            return False
        for kind in kinds:
            try:
                self.missed = kind.scheme.misfit(run)
                if self.missed is None:
                    if kind is not kinds[0]:
                        self.kinds = [kind, *[other for other in kinds if other is not kind]]
                    return self.advance(kind, run)
                is_changed = is_changed or self.missed == CHANGED
            finally:
                kind.scheme.owners = None       # they belong to the user
        if is_changed:                          # the engine raises an error: no kind of its own
            self.missed = CHANGED
            return False
        kind = Followed()
        try:
            kind.scheme = scheme_of(run)
        except Unfit as reason:
            self.missed = str(reason)
            return False
        if len(kinds) == MOST_KINDS:
            untrusted = [other for other in kinds if (<Followed>other).stage != TRUSTED]
            leaves = untrusted.pop() if untrusted else kinds[len(kinds) - 1]
            kinds = [other for other in kinds if other is not leaves]
        self.kinds = [kind, *kinds]
        return False

    cdef bint advance(self, Followed kind, Run run) except -1:
        """Do what comes next with a pass of a known kind; return whether it is done."""
        self.missed = kind.reason if kind.stage == LEFT else is_plain_state()
        if self.missed is not None:
            return False
        if kind.stage == SEEN:
            self.captures += 1
            if self.captures > MOST_CAPTURES:
                kind.leave("there are too many kinds of passes")
            else:
                kind.capture(run, self.least)
            return False
        kind.since_check += 1
        if kind.stage == CAPTURED or self.every and kind.since_check > self.every:
            kind.compare(run)
            return False
        if not kind.replay(run):
            self.missed = kind.program.why_missed()
            return False
        kind.replays += 1
        self.replays += 1
        self.fruitless = self.rested = 0
        return True
