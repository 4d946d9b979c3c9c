"""Work on a GPU that waits to be launched together with what follows; see waiting.pyx."""

cdef bint any_waits                     # whether some capture, in any thread, has such work
cdef int settle() except -1             # launch what waits in this thread: callers are about to use arrays by other means
