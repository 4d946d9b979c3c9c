"""Programs: captured steps. See Note [Captured steps] in program.pyx."""

cimport numpy as cnp
from libc.stdint cimport uintptr_t

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.tape.programs cimport Launches

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

cdef bint is_plain_now(unsigned int modes, bint is_pass) noexcept     # whether the thread's modes are these

cdef class Argument:            # what an argument must be like
    cdef type cls
    cdef int typenum
    cdef int ndim
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef cnp.npy_intp[MAXDIMS] steps
    cdef Py_ssize_t low         # the bytes that it spans, relative to its address
    cdef Py_ssize_t high
    cdef unsigned int flags
    cdef bint is_view
    cdef bint is_of_pass        # taken by a backward pass, which computes the same from a gradient that is a view
    cdef int before             # NONE, KEPT (some tensor) or UNSEEN
    cdef bint has_history
    cdef const char* misfit(self, object value) noexcept

cdef class External:            # a tensor outside of the step, and what it must be like
    cdef Tensor tensor
    cdef object array
    cdef char* data
    cdef unsigned int flags
    cdef int before
    cdef Tensor grad
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

cdef class History:             # of results whose backward pass comes later; its methods are in histories.pyx
    cdef readonly Py_ssize_t n_results      # further results of the program are memory for the backward pass
    cdef public bint keeps_former           # whether a run keeps the bytes of what it changes, as they were before
    cdef list attached(self, list found, list arguments, tuple call, tuple states)
    cdef str difference(self, list leaves, list found, list arguments)

cdef class Program:
    cdef Launches launches
    cdef readonly History history           # None if results have none, or one that has been used up
    cdef readonly bint is_pass              # whether this is the backward pass of a history: arguments are only read
    cdef list guards            # an Argument for each argument, or None for one that is not used
    cdef list outside           # of External
    cdef list results           # of Result
    cdef list grads             # (External, Result, or None to clear it)
    cdef list counts            # (VersionCounter, by how much, op name, code, instruction offset)
    cdef list lives             # of Live
    cdef list streams           # of random numbers, which the loops draw from
    cdef list owners            # arrays that hold the memory of the external slots
    cdef list sizes             # of each slot of fresh memory, in bytes; 0: of one tensor, which has it all
    cdef dict bases             # {address of a tensor that results are views of, in the captured call: its Result}
    cdef list handed            # of each such slot: whether a call's array becomes that tensor's
    cdef list changes           # of each external slot: whether the step writes to it
    cdef uintptr_t* lows        # of each external slot
    cdef uintptr_t* highs
    cdef Py_ssize_t n_ranges    # external slots; they follow those of the arguments
    cdef int first_made         # the first slot of fresh memory
    cdef unsigned int modes
    cdef object default         # dtype
    cdef bint is_running
    cdef str missed
    cdef const char* misfit(self, list arguments) noexcept
    cdef int choose_handed(self) except -1
    cdef list run(self, list arguments, tuple call)
    cdef bint is_plain(self) noexcept
    cdef Tensor part_of(self, Result r, Tensor argument)
    cdef Tensor made_tensor(self, Result r, list shared)
    cdef Tensor base_of(self, Result r, list shared)
    cdef list room_for_memory(self)
    cdef int fill_handed(self, list shared) except -1
    cdef Tensor gradient(self, Tensor owner, Result r, list shared)
    cdef cnp.ndarray shadow(self, Py_ssize_t i)
    cdef list changed(self)
    cdef int put_back(self, list copies) except -1
    cdef str compared(self, list leaves, list arguments, list twins, list grads, list shadows)
    cdef str names_of(self, Py_ssize_t i)
