"""Backward passes of functions that run as they are written. See following.pyx."""

from cygrad._core.engine.run cimport Run
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.calls.schemes cimport Scheme

cdef class Followed:            # a kind of passes
    cdef Scheme scheme
    cdef readonly Program program       # None as long as it is not captured
    cdef readonly int stage
    cdef readonly str reason    # why it is left alone, or None
    cdef int failures           # to capture it
    cdef list places            # which result of the program leaves at each end; -1: none
    cdef readonly Py_ssize_t replays
    cdef Py_ssize_t since_check
    cdef int leave(self, str reason) except -1
    cdef list inner(self, Run run)
    cdef int capture(self, Run run, Py_ssize_t least) except -1
    cdef int compare(self, Run run) except -1
    cdef bint replay(self, Run run) except -1
    cdef int finish(self, Run run, list found) except -1

cdef class Follower:
    cdef readonly list kinds            # of Followed, the last used first
    cdef readonly str missed            # why the last pass was not replayed, or None
    cdef readonly Py_ssize_t replays    # of all passes
    cdef Py_ssize_t every               # check each replay with that number; 0: none
    cdef Py_ssize_t least               # elements of a node's result, on average
    cdef Py_ssize_t rests               # passes that are left alone
    cdef Py_ssize_t fruitless           # passes since the last replay
    cdef int rested
    cdef int captures
    cdef bint is_busy
    cdef int functions                  # that are running
    cdef bint follow(self, Run run) except -1
    cdef bint advance(self, Followed kind, Run run) except -1

# In this thread from now on; returns the former one. None: nothing is followed.
cdef object follow_by(object follower)

# The same while a function runs, and when it has ended: then the former one follows, unless its function has ended, too.
cdef Follower begin_to_follow(Follower follower)
cdef int end_to_follow(Follower follower, Follower former) except -1
