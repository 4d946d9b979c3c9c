"""Noting loops on the tape. See Note [The tape] in tape.pyx."""

from libc.stdint cimport uintptr_t

cdef extern from "platform/tape.h" nogil:
    int tape_open "cygrad_tape_open"        # test this first: all that follows is for an open tape

ctypedef void (*part_t)(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil     # as in thread_pool.pxd

# Runs a noted loop again, from a copy of its context. Does not need the GIL.
ctypedef void (*replay_t)(void* context) noexcept nogil

cdef enum:                  # Word.mode
    READS = 1
    WRITES = 2              # each byte of the extent
    SCATTERS = 4            # some of them
    ITEMWISE = 8            # in an elementwise loop: the extent is one piece for each item; else it is there for all

ctypedef struct Word:       # an address in a context, and the extent of the memory that is reached through it
    Py_ssize_t at           # offset of the address in the context
    int mode
    Py_ssize_t low          # the extent, relative to the address
    Py_ssize_t high

# Note a loop: `kind` for explanations, a context that is copied, and the addresses in it. An address that points into the
# context itself needs no Word.mode. Never fails: what cannot be noted makes the tape refuse the step.
cdef void note(replay_t replay, str kind, const void* context, size_t size, Word* words, int count) noexcept

# The same for an elementwise loop over `items` items: `part` runs it for some of them, so that several such loops can run
# block by block.
cdef void note_loop(replay_t replay, part_t part, str kind, const void* context, size_t size, Word* words, int count,
                    Py_ssize_t items) noexcept

# The same for sums of such items, whose results no loop over the items may see. `part` gets items in their order: it begins
# anew at multiples of `piece` items, and is given multiples of `unit` items until a piece ends. `finish`, unless NULL,
# follows when all pieces are done; the part has a copy of the context, but the same memory.
cdef void note_sums(replay_t replay, part_t part, replay_t finish, str kind, const void* context, size_t size, Word* words,
                    int count, Py_ssize_t items, Py_ssize_t piece, Py_ssize_t unit) noexcept

# Note that bytes were set to constants: `count` copies of one element.
cdef void note_constant(void* to, const void* element, Py_ssize_t itemsize, Py_ssize_t count) noexcept

# Note that a fresh array holds what Python's numbers tell, whatever loop has written it; return the array.
cpdef object noted_data(object array)

# Note that the step went on only because values fulfil a condition: `check` must hold before each replay begins. The values
# must be an argument's, or those that an external array has at the beginning.
ctypedef bint (*check_t)(void* context) noexcept nogil
cdef void note_check(check_t check, str kind, const void* context, size_t size, Word* values) noexcept

# What happens now cannot be replayed, for this reason.
cdef void refuse(str reason, object op=*) noexcept

# An array begins to be changed in place, and has been changed: by noted loops, or the step is refused.
cdef void note_begin_of_change(object array) noexcept
cdef void note_end_of_change(object array, str op) noexcept

# The same for what changes state out of sight, also within a call that is noted as a whole (calls.pyx).
cdef void refuse_always(str reason, object op=*) noexcept

# The `grad` of a tensor is replaced.
cdef void note_grad(object owner) noexcept

# The tape on which this thread's step is being noted, unless it is refused already or within a noted call; or None.
cdef Tape current_tape()

cdef inline Word word(const void* context, const void* place, int mode, Py_ssize_t low, Py_ssize_t high) noexcept:
    """The address that stands at `place` in the context."""
    cdef Word w
    w.at = <const char*>place - <const char*>context
    w.mode = mode
    w.low = low
    w.high = high
    return w

cdef enum:                  # Block.kind
    INNER_BLOCK
    ARGUMENT_BLOCK
    EXTERNAL_BLOCK

cdef class Block:           # a piece of memory
    cdef readonly uintptr_t low
    cdef readonly uintptr_t high
    cdef readonly int kind
    cdef readonly int index             # among the arguments, or the external ranges
    cdef Py_ssize_t serial              # counts the blocks of the tape
    cdef list written                   # [low, high] of the bytes that entries wrote, apart; of INNER ones, or None
    cdef readonly bint is_alive
    cdef readonly bint is_changed       # whether an entry writes to it
    cdef Py_ssize_t writes              # how many do
    cdef Py_ssize_t first               # entries that touch it, set by Launches
    cdef Py_ssize_t last
    cdef Py_ssize_t place               # in the arena
    cdef int slot                       # or the slot; -1: in the arena
    cdef int register                   # or the register of its group (groups.pyx); -1: it has none
    cdef bint covers(self, Py_ssize_t low, Py_ssize_t high) except -1
    cdef int write(self, Py_ssize_t low, Py_ssize_t high) except -1

cdef class Touch:
    cdef readonly Py_ssize_t at
    cdef readonly Block block           # None: an address within the context itself
    cdef readonly Py_ssize_t offset     # in the block, or the context
    cdef readonly int mode
    cdef readonly Py_ssize_t low        # the extent, in the block
    cdef readonly Py_ssize_t high

cdef class Entry:
    cdef replay_t function              # or a check_t, of a check
    cdef readonly bint is_check
    cdef part_t part                    # of an elementwise loop
    cdef readonly Py_ssize_t items      # 0: not elementwise
    cdef replay_t finish                # of sums
    cdef Py_ssize_t piece               # 0: no sums
    cdef Py_ssize_t unit
    cdef readonly str kind
    cdef bytes context
    cdef bytes data                     # what it writes, if Python's numbers tell it (`noted_data`)
    cdef readonly list touches
    cdef readonly object call           # a Call (calls.pyx), or None
    cdef readonly object place          # (code object, instruction offset) of the user's line
    cdef readonly bint is_live
    cdef Py_ssize_t reach(self, int modes) except -1    # bytes that are touched in any of these modes

cdef class Tape:
    cdef readonly list entries
    cdef readonly str reason            # why the step cannot be replayed, or None
    cdef readonly object reason_op
    cdef readonly object reason_place
    cdef bint may_be_noted_as_call      # whether the kernel that is running may be, in spite of the reason
    cdef int depth                      # nonzero within a call that is noted as a whole
    cdef Py_ssize_t serial              # of the last block
    cdef list arguments                 # blocks
    cdef list externals                 # blocks, by address
    cdef uintptr_t* external_lows       # their addresses
    cdef list lows                      # addresses of the live blocks that were given during the step, sorted
    cdef dict blocks                    # {address: block}, the same
    cdef dict changing                  # {address of an array that an op changes: `writes` of its block before}
    cdef readonly dict replaced         # {id of a tensor: (the tensor, entries when its `grad` was first replaced)}
    cdef object former                  # NumPy's allocator before
    cdef int _look_at_memory(self) except -1
    cdef int _begin_block(self, uintptr_t low, size_t size) except -1
    cdef int _end_block(self, uintptr_t low) except -1
    cdef Block block_at(self, uintptr_t low, uintptr_t high)
    cdef Block block_of(self, object array)
    cdef Py_ssize_t last_external(self, uintptr_t address) noexcept
    cdef Block external_at(self, uintptr_t low, uintptr_t high)
    cdef bint is_written(self, Block block, Py_ssize_t low, Py_ssize_t high) except -1
    cdef int enter(self, replay_t function, str kind, const void* context, size_t size, Word* words, int count,
                   part_t part=*, Py_ssize_t items=*, object call=*) except -1
    cdef int check(self, check_t function, str kind, const void* context, size_t size, Word* values) except -1
    cdef int data(self, object array) except -1
    cdef int constant(self, uintptr_t to, const void* element, Py_ssize_t itemsize, Py_ssize_t count) except -1
