"""How a captured step has changed what existed before. See effects.pyx."""

from cygrad._core.replay.program cimport Program
from cygrad._core.replay.situation cimport Situation
from cygrad._kernels.tape.tape cimport Tape

cdef dict touched_extents(Tape tape)
cdef list changes_of(dict touched, list slots)
cdef int enter_changes(Program program, Tape tape, Situation now, dict touched, list kept, set ends) except -1
