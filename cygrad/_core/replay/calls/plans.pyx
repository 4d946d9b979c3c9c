"""The plans of a compiled function, and the call that finds the one to replay.

Note [Trials]
-------------
A replay spends some tenths of a microsecond on comparing and on making tensors. One or two ops on few elements take less
as they are written. So when such a plan has been replayed a while, some calls are done in either way and timed; both
leave the same behind. If replays are slower, the plan stays, and only tells that its calls are to run as they are
written. Where results have a history, they must be slower by half, since their backward pass, which is not timed, is
faster.
"""

from time import perf_counter_ns

cimport cython
from cpython.dict cimport PyDict_Size
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from cygrad._core.replay.calls.following cimport Follower, begin_to_follow, end_to_follow, follow_by
from cygrad._core.replay.parts cimport Argument
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.guards.signature cimport Signature
from cygrad._core.replay.guards.state cimport Guard

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) Py_ssize_t cygrad_compiled_depth;
    #else
    static __thread Py_ssize_t cygrad_compiled_depth;
    #endif
    """
    Py_ssize_t cygrad_compiled_depth        # how many compiled functions are running in this thread

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept
    object PyObject_Call(object function, tuple args, PyObject* kwargs)

cdef enum:
    TRIED_AFTER = 64                # replays
    TRIALS = 32                     # in either way
    SMALL_WORK = 1 << 14            # bytes that a run reads and writes
    FEW_STEPS = 4

cdef unsigned long _watching = 0     # the thread whose call is being watched, if any
cdef object _aside = None            # what followed its passes before

MISS = object()     # what `Plans.run` returns if no plan fits
MOST = 64           # plans of one function


def watching(bint on):
    """Tell that a call of this thread is being watched: what it calls of compiled functions is part of it, so that
    nothing is replayed, or that it ended."""
    global _watching, _aside
    _watching = PyThread_get_thread_ident() if on else 0
    _aside = follow_by(None if on else _aside)


cdef inline bint is_watched() noexcept:
    """Whether a call of this thread is being watched."""
    return _watching != 0 and _watching == PyThread_get_thread_ident()


def is_running():
    """Whether a compiled function is running in this thread."""
    return cygrad_compiled_depth > 0


def entered(int by):
    """Count that a compiled function begins (1) or ends (-1) in this thread."""
    global cygrad_compiled_depth
    cygrad_compiled_depth += by


@cython.final
cdef class Plan:
    """One way in which a function was called, and the program that does what it did.

    `shape` makes the value of a call from its tensors; None if it is the only one.
    """
    cdef readonly Signature signature
    cdef readonly Guard guard
    cdef readonly object program, key
    cdef object shape, replay, unfit
    cdef bint has_history
    cdef object __weakref__
    cdef public Py_ssize_t replays, failures, since_check
    cdef public str missed
    cdef readonly bint is_slower            # than the call as it is written (Note [Trials])
    cdef Py_ssize_t trials                  # that are left
    cdef object least, least_written        # nanoseconds, of those done

    def __init__(self, key, Signature signature not None, Guard guard not None, program, shape, unfit):
        self.key, self.signature, self.guard, self.program, self.shape = key, signature, guard, program, shape
        self.replay, self.unfit, self.has_history = program.replay, unfit, program.history is not None
        if isinstance(program, Program) and (<Program>program).launches.count <= FEW_STEPS and (
                (<Program>program).launches.work <= SMALL_WORK):
            self.trials = 2 * TRIALS
        self.least = self.least_written = 1 << 62

    cdef bint suits(self, tuple args, dict kwargs) except -1:
        """Whether the arguments are such as it was timed on."""
        cdef Py_ssize_t i
        cdef list guards = (<Program>self.program).guards
        if PyDict_Size(kwargs) or PyTuple_GET_SIZE(args) != PyList_GET_SIZE(guards):
            args = tuple(self.signature.match(args, kwargs) or ())
            if len(args) != len(guards):
                return False
        if not (<Program>self.program).is_plain():
            return False
        for i in range(PyList_GET_SIZE(guards)):
            if <object>PyList_GET_ITEM(guards, i) is not None and (<Argument>PyList_GET_ITEM(guards, i)).misfit(
                    <object>PyTuple_GET_ITEM(args, i)) != NULL:
                return False
        return True

    def rebuilt(self, list tensors):
        """Return the value of a call from its tensors."""
        return tensors[0] if self.shape is None else self.shape(tensors)


@cython.final
cdef class Plans:
    """The plans of one function, the last used first. `every`: check each call with that number; 0: none."""
    cdef readonly list plans
    cdef readonly Py_ssize_t every
    cdef public Follower follower   # of the backward passes of calls that run as they are written, or None
    cdef public bint open           # False while calls are not to be replayed
    cdef object function
    cdef public Py_ssize_t rests    # calls that run as they are written if no plan fits
    cdef public Py_ssize_t calls    # that were not replayed

    def __init__(self, function, Py_ssize_t every=0):
        self.plans, self.every, self.open, self.function = [], every, True, function

    def run(self, tuple args, dict kwargs):
        """Replay the plan that fits a call and return its value, or run it as it is written where that is to be done
        anyway; `MISS` otherwise: then nothing has happened."""
        cdef Py_ssize_t i
        cdef Plan plan
        cdef list plans = self.plans        # which is replaced, never changed
        if not self.open or is_watched():
            return self.rested(args, kwargs)
        for i in range(PyList_GET_SIZE(plans)):
            plan = <Plan>PyList_GET_ITEM(plans, i)
            if plan.is_slower:
                if plan.suits(args, kwargs):
                    return self.as_written(args, kwargs)
                continue
            given = plan.signature.match(args, kwargs)
            if given is None:
                continue
            if self.every:
                plan.since_check += 1
                if plan.since_check >= self.every:
                    return MISS             # and have it checked
            if not plan.guard.holds():
                plan.failures += 1
                plan.missed = None
                continue
            if plan.trials and plan.replays >= TRIED_AFTER and not self.every:
                return self.tried(plan, args, kwargs)
            found = plan.replay(given, (args, kwargs)) if plan.has_history else plan.replay(given)
            if found is plan.unfit:
                plan.failures += 1
                plan.missed = "program"
                continue
            plan.replays += 1
            plan.failures = 0
            if i:
                self.first(plan)
            return plan.rebuilt(<list?>found)
        return self.rested(args, kwargs)

    cdef object rested(self, tuple args, dict kwargs):
        if self.rests == 0:
            return MISS
        self.rests -= 1
        return self.as_written(args, kwargs)

    cpdef object as_written(self, tuple args, dict kwargs):
        """Do a call without plans. Its backward passes may be replayed (following.pyx)."""
        global cygrad_compiled_depth
        cdef Follower follower = self.follower if self.open and not is_watched() else None
        cdef Follower outer = begin_to_follow(follower)
        self.calls += 1
        cygrad_compiled_depth += 1
        try:
            return PyObject_Call(self.function, args, <PyObject*>kwargs if PyDict_Size(kwargs) else NULL)
        finally:
            cygrad_compiled_depth -= 1
            end_to_follow(follower, outer)

    cdef object tried(self, Plan plan, tuple args, dict kwargs):
        """Do a call in one of the two ways in turn, and time it (Note [Trials])."""
        cdef bint is_written = plan.trials % 2
        cdef list given
        begin = perf_counter_ns()
        if is_written and plan.suits(args, kwargs):
            value = self.as_written(args, kwargs)
            plan.least_written = min(plan.least_written, perf_counter_ns() - begin)
        else:
            given = plan.signature.match(args, kwargs)
            plan.guard.holds()
            found = plan.replay(given, (args, kwargs)) if plan.has_history else plan.replay(given)
            if found is plan.unfit:
                plan.failures += 1
                plan.missed = "program"
                return MISS
            value = plan.rebuilt(<list?>found)
            plan.replays += 1
            plan.least = min(plan.least, perf_counter_ns() - begin)
        plan.trials -= 1
        plan.is_slower = plan.trials == 0 and plan.least_written * (1.5 if plan.has_history else 1) < plan.least
        return value

    def first(self, Plan plan not None):
        """Put a plan, new or known, at the front; the one that was not used for longest may leave."""
        self.plans = [plan, *[other for other in self.plans if other is not plan][:MOST - 1]]

    def drop(self, Plan plan not None):
        """Forget a plan."""
        self.plans = [other for other in self.plans if other is not plan]

    def clear(self):
        """Forget all plans, and all kinds of passes."""
        self.plans = []
        if self.follower is not None:
            self.follower = Follower(self.every)

    def __len__(self):
        return len(self.plans)
