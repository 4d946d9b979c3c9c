"""Programs: captured steps. See Note [Captured steps] in program.pyx."""

cimport numpy as cnp
from libc.stdint cimport uintptr_t

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.parts cimport Result
from cygrad._kernels.tape.programs cimport Launches
from cygrad._kernels.tape.tape cimport Tape

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
    cdef list pauses            # (unit, function): where a run gives former gradients up
    cdef list counts            # (VersionCounter, by how much, op name, code, instruction offset)
    cdef list given_counts      # the same for arguments, which are numbers in the place of counters
    cdef list given_changes     # of each argument: whether the step writes to it
    cdef list lives             # of Live
    cdef list streams           # of random numbers, which the loops draw from
    cdef list owners            # arrays that hold memory of the external slots, besides those in `outside`
    cdef list sizes             # of each slot of fresh memory, in bytes; 0: of one tensor, which has it all
    cdef dict bases             # {address of a tensor that results are views of, in the captured call: its Result}
    cdef list handed            # of each such slot: whether that tensor gets its array during the run
    cdef list changes           # of each external slot: whether the step writes to it
    cdef uintptr_t* lows        # of each external slot
    cdef uintptr_t* highs
    cdef Py_ssize_t n_ranges    # external slots; they follow those of the arguments
    cdef int first_made         # the first slot of fresh memory
    cdef unsigned int modes
    cdef object default         # dtype
    cdef list warned            # the arguments of `warn_explicit` for each warning
    cdef object casting         # by what ops were cast, or None
    cdef Py_ssize_t n_shown     # tensors that the caller gets; casts and tensors that numbers are read from follow
    cdef list casts             # of parameters, which runs put into the cache of autocast (Note [Casts] in casts.py)
    cdef readonly list values   # these parameters
    cdef bint is_running
    cdef str missed
    cdef const char* misfit(self, list arguments) noexcept
    cdef int choose_handed(self) except -1
    cdef int choose_pauses(self, Tape tape) except -1
    cdef list run(self, list arguments, tuple call)
    cdef int raise_versions(self, list arguments) except -1
    cdef bint is_plain(self) noexcept
    cdef Tensor part_of(self, Result r, Tensor argument)
    cdef Tensor made_tensor(self, Result r, list shared)
    cdef Tensor base_of(self, Result r, list shared)
    cdef list room_for_memory(self)
    cdef int fill_handed(self, list shared) except -1
    cdef Tensor gradient(self, Tensor owner, Result r, list shared)
    cdef cnp.ndarray shadow(self, Py_ssize_t i)
    cdef cnp.ndarray shadow_of_argument(self, Py_ssize_t i, Tensor argument)
    cdef str located(self, str failure)
    cdef list changed(self)
    cdef int take_casts(self, list found) except -1
    cdef bint warns(self) except -1
    cdef int put_back(self, list copies) except -1
    cdef str compared(self, list leaves, list arguments, list twins, list grads, list shadows)
    cdef str names_of(self, Py_ssize_t i)
