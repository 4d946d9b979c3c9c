"""The plans of a compiled function, and the call that finds the one to replay."""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE

from cygrad._core.replay.signature cimport Signature
from cygrad._core.replay.state cimport Guard

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef unsigned long _watching = 0     # the thread whose call is being watched, if any

MISS = object()     # what `Plans.run` returns if no plan fits
MOST = 64           # plans of one function


def watching(bint on):
    """Tell that a call of this thread is being watched: what it calls of compiled functions is part of it, so that
    nothing is replayed, or that it ended."""
    global _watching
    _watching = PyThread_get_thread_ident() if on else 0


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

    def __init__(self, key, Signature signature not None, Guard guard not None, program, shape, unfit):
        self.key, self.signature, self.guard, self.program, self.shape = key, signature, guard, program, shape
        self.replay, self.unfit, self.has_history = program.replay, unfit, program.history is not None

    def rebuilt(self, list tensors):
        """Return the value of a call from its tensors."""
        return tensors[0] if self.shape is None else self.shape(tensors)


@cython.final
cdef class Plans:
    """The plans of one function, the last used first. `every`: check each call with that number; 0: none."""
    cdef readonly list plans
    cdef readonly Py_ssize_t every
    cdef public bint open           # False while calls are not to be replayed

    def __init__(self, Py_ssize_t every=0):
        self.plans, self.every, self.open = [], every, True

    def run(self, tuple args, dict kwargs):
        """Replay the plan that fits a call and return its value; `MISS` if none fits: then nothing has happened."""
        cdef Py_ssize_t i
        cdef Plan plan
        cdef list plans = self.plans        # which is replaced, never changed
        if not self.open or _watching and _watching == PyThread_get_thread_ident():
            return MISS
        for i in range(PyList_GET_SIZE(plans)):
            plan = <Plan>PyList_GET_ITEM(plans, i)
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
        return MISS

    def first(self, Plan plan not None):
        """Put a plan, new or known, at the front; the one that was not used for longest may leave."""
        self.plans = [plan, *[other for other in self.plans if other is not plan][:MOST - 1]]

    def drop(self, Plan plan not None):
        """Forget a plan."""
        self.plans = [other for other in self.plans if other is not plan]

    def clear(self):
        """Forget all plans."""
        self.plans = []

    def __len__(self):
        return len(self.plans)
