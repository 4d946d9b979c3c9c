"""What a captured step returns. See results.pyx."""

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.replay.parts cimport Result
from cygrad._core.replay.program cimport Program
from cygrad._core.replay.situation cimport Situation
from cygrad._kernels.tape.tape cimport Tape

cdef int enter_memory(Program program, Tape tape, Result r, Tensor t, list kept) except -1
cdef int enter_results(Program program, Tape tape, list arguments, list leaves, dict before, list kept,
                       bint has_history) except -1
cdef int check_leftovers(Program program, list leaves, Situation now, list more) except -1

# Whether what a view lies in can be made for it alone: nothing is known of it but its memory.
cdef bint can_be_made_again(Tensor view) noexcept
