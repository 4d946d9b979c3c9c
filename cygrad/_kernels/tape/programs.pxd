"""Noted loops, ready to run. See programs.pyx."""

cimport numpy as cnp

from cygrad._kernels.tape.groups cimport Group
from cygrad._kernels.tape.tape cimport Entry, Tape

cdef class Launches:
    cdef char* contexts
    cdef char* arena
    cdef void* steps                # struct Step[]
    cdef Py_ssize_t count
    cdef Py_ssize_t checked         # the first of the steps are checks
    cdef void* patches              # struct Patch[], by slot
    cdef Py_ssize_t* first_patch    # of each slot, and the end
    cdef char** bases               # of each slot: where the patched addresses point now
    cdef list rooms                 # memory of the groups' programs: addresses, to be freed
    cdef readonly int slots
    cdef int first_given                # the first of the slots of memory that calls give
    cdef list calls                     # (the step of a call, the call)
    cdef object failed_at               # the place of the call at which the last run stopped, or None
    cdef list held                      # what keeps such memory alive, by slot
    cdef dict handed                    # {slot of memory that outlives a run: the Made that a call returns there}
    cdef dict late                      # {such a slot that gets memory only when it is used: a function that makes an array}
    cdef list own                       # (the unit that uses it first, slot, bytes) of blocks with memory of their own
    cdef list lent                      # (slot, bytes) of memory that outlives a run, but is used by others before
    cdef list events                    # (unit, its call or None, what is taken before it, slots that are given back)
    cdef bint poisons                   # whether the next run fills that with NaN
    cdef list restored                  # slots that a run changes before its last call, which may fail
    cdef readonly Py_ssize_t memory
    cdef readonly Py_ssize_t work   # bytes that one run reads and writes
    cdef readonly list entries      # in the order of a run
    cdef list units                 # the same, with groups in the place of their entries
    cdef int fill(self) except -1
    cdef int make_room_for_patches(self) except -1
    cdef char* fill_entry(self, Entry entry, char* context) except NULL
    cdef int fill_group(self, Group group, char* contexts, size_t size, void* step) except -1
    cdef void set_base(self, int slot, char* base) noexcept nogil
    cdef bint may_run(self) noexcept
    cdef bint may_fail(self) noexcept
    cdef bint takes_memory(self) noexcept
    cdef int arrange(self, list kept, list late) except -1
    cdef str run(self, list pauses)
    cdef str run_with_events(self, list pauses)
    cdef Py_ssize_t after_calls(self, Tape tape, Py_ssize_t entries) except -1
    cdef bint takes_late(self, int slot, make) except -1
    cdef bint hands_over(self, int slot, int typenum, int ndim, cnp.npy_intp* dims, cnp.npy_intp* steps) except -1
    cdef object taken(self, int slot)
    cdef int run_range(self, Py_ssize_t first, Py_ssize_t end) except -1
    cdef int give_own_memory(self, list late) except -1
    cdef int take(self, int slot, cnp.npy_intp size) except -1
    cdef int plan_calls(self) except -1
    cdef int poison(self) except -1
