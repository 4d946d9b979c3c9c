"""The parts of a captured step. See parts.pyx."""

cimport numpy as cnp

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

cdef enum:                      # External.before: how `grad` must be found
    NONE
    KEPT                        # the very tensor
    REPLACED                    # any tensor, which the step does not read
    UNSEEN                      # any tensor, or None: the step neither reads nor changes it

cdef enum:                      # Result.kind
    MADE                        # a fresh tensor; `index` is its slot, counted from the first of these
    AN_ARGUMENT
    AN_EXTERNAL
    SAME                        # as an earlier result
    A_PART                      # of an argument: on its memory

cdef enum:
    MAXDIMS = 64

cdef bint matters(const char* reason) noexcept      # whether a guard may fail for this reason: always, but in tests of tests

cdef bint is_plain_now(unsigned int modes, bint is_pass) noexcept     # whether the thread's modes are these, and no others
# Whether they are these, and ops are cast as `casting` tells, but parameters were not cast before (Note [Casts]).
cdef bint is_as_before(unsigned int modes, bint is_pass, object casting, list values) noexcept

cdef class Given:               # what an argument must be like, apart from its array
    cdef type cls
    cdef unsigned int flags
    cdef bint is_view
    cdef bint is_of_pass        # taken by a backward pass, which computes the same from a gradient that is a view
    cdef int before             # NONE, KEPT (some tensor) or UNSEEN
    cdef bint has_history
    cdef int take(self, Tensor t, bint sees_grads, bint is_of_pass) except -1
    cdef const char* misfit_of_class(self, object value) noexcept
    cdef const char* misfit_of_history(self, Tensor t) noexcept

cdef class Argument(Given):     # what an argument in main memory must be like
    cdef int typenum
    cdef int ndim
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef cnp.npy_intp[MAXDIMS] steps
    cdef Py_ssize_t low         # the bytes that it spans, relative to its address
    cdef Py_ssize_t high
    cdef const char* misfit(self, object value) noexcept

cdef class External:            # a tensor outside of the step, and what it must be like
    cdef Tensor tensor
    cdef object array
    cdef char* data             # of an array of NumPy, else NULL
    cdef unsigned int flags
    cdef int before
    cdef Tensor grad
    cdef bint is_bare           # no attributes; the state of Python, which a pass does not read, has others
    cdef bint may_have_hooks
    cdef bint is_of_pass        # read by a backward pass, which does not ask whether it requires grad
    cdef const char* misfit(self) noexcept

cdef class Result:              # a tensor that the step returns, or a new gradient
    cdef readonly int kind
    cdef readonly Py_ssize_t index
    cdef int typenum
    cdef int ndim
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef cnp.npy_intp[MAXDIMS] steps
    cdef bint is_row_major
    cdef Py_ssize_t offset      # in the memory of its slot
    cdef Node grad_fn
    cdef int output_nr
    cdef unsigned int flags
    cdef long long version
    cdef tuple origin
    cdef Result base            # of a view that may not be changed in place as others may: what it lies in, or None
    cdef tuple made             # of such a view: creation_meta, code, instruction offset
    cdef Py_ssize_t number      # of what views lie in: its place after the memory in `shared` of `Program.made_tensor`
    cdef int describe(self, Tensor t) except -1
    cdef Tensor tensor(self, cnp.ndarray memory)
    cdef Tensor around(self, object array)
    cdef cnp.ndarray array(self, cnp.ndarray memory, Py_ssize_t offset)
    cdef int become_view(self, Tensor t, Tensor base) except -1
    cdef bint fits(self, Tensor t) except -1

# What a tensor outside of the step must be like, whose `grad` was `former` before the step; raises Unfit.
cdef External external_of(Tensor t, Tensor former, bint sees_grads, bint is_of_pass)
