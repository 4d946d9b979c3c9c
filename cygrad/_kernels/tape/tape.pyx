"""The tape: notes the loops that a step runs, with the memory they touch, and runs them again without Python.

Note [The tape]
---------------
Compiled kernels prepare a loop (they check arguments, broadcast, allocate the result) and then start it. While a tape is
open, each such place also hands it over to `note`: a C function, a copy of the context that it takes, and which addresses
in this context reach which memory. A step, forward, backward and update, thus becomes a flat list that can be run again
(programs.pyx): the same functions on the same kinds of memory, in the same order, hence with the same bits. No op, rule or
module is known here.

What makes this safe:

    memory      While a tape is open, NumPy's allocator in this thread is the pool (memory_pool.h), and the freelist of small
                arrays is off. So the tape hears of all array memory that is given and taken. An address belongs to the
                newest *block* there that is alive, to an argument, or to an array that existed before (an *external* one).
                Memory of any other kind makes the step unfit.
    producers   Each byte that a loop reads must be an argument's or external, or written by an earlier entry of the list. A
                kernel that is not hooked leaves bytes nobody wrote on the tape, and its first reader makes the step unfit.
                The same holds for what the step returns. Extents of reads may be too large and those of writes too small,
                never the other way round.
    constants   Elements that a kernel sets to numbers (`note_constant`) are entries, too, and so are arrays that are made
                of Python's numbers alone (`noted_data`): a run copies them. Guards see to it that the numbers are the same.
    changes     An op that changes a tensor in place must have written to its memory by noted loops.
    calls       Kernels whose loops cannot be noted are called again as a whole (calls.pyx).
    values      What reads elements in order to decide something calls `refuse`. Python code above the kernels that is handed
                arrays might do so, too: all is refused but what vetted.py lists. What must hold of values for the step to
                go on at all (classes within bounds) is a *check*, which is repeated before each run.

The layer above, which knows tensors, compares a run with an eager step before it trusts the list (`_core/replay/`).
"""

import sys

cimport cython
cimport numpy as cnp
from libc.stdint cimport uintptr_t
from libc.string cimport memcmp, memcpy, memset
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from cygrad._kernels.platform.memory_pool cimport array_memory_from_pool, current_place, give_back_allocator

from cygrad._library import later

vetted = later("cygrad._kernels.tape.vetted")      # needed only to compile

cnp.import_array()

cdef extern from *:
    """
    #include <Python.h>
    #include <stdlib.h>
    #include "platform/tape.h"

    int cygrad_tape_open = 0;

    typedef struct { char *memory; size_t size; int kind; } tape_event;
    static struct {
        unsigned long thread;           /* whose step is being noted */
        tape_event *events;             /* memory given and taken since they were last looked at */
        Py_ssize_t count, room;
        int lost;                       /* no memory for events */
    } tape_state;

    /* Memory that any thread frees may have been the tape's; only that which its own thread gets can become so. */
    void cygrad_tape_memory(void *memory, size_t size, int kind)
    {
        tape_event *events = tape_state.events;
        if (kind != CYGRAD_DIED && PyThread_get_thread_ident() != tape_state.thread) return;
        if (tape_state.count == tape_state.room) {
            events = realloc(events, (2 * tape_state.room + 64) * sizeof *events);
            if (events == NULL) {
                tape_state.lost = 1;
                return;
            }
            tape_state.room = 2 * tape_state.room + 64;
            tape_state.events = events;
        }
        events[tape_state.count].memory = memory;
        events[tape_state.count].size = size;
        events[tape_state.count++].kind = kind;
    }
    """
    enum:
        CYGRAD_DIED
        CYGRAD_BORN
    ctypedef struct tape_event:
        char* memory
        size_t size
        int kind
    ctypedef struct tape_state_t:
        unsigned long thread
        tape_event* events
        Py_ssize_t count
        int lost
    tape_state_t tape_state

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    INNER = INNER_BLOCK
    ARGUMENT = ARGUMENT_BLOCK
    EXTERNAL = EXTERNAL_BLOCK
    MOST_DATA = 1 << 26         # bytes of an array that a program copies


# ------------------------------------------------------------------------------------------------- blocks


@cython.final
@cython.no_gc         # there are many, and none is part of a cycle
cdef class Block:
    """A piece of memory: an argument's, an external array's, or one that was given during the step."""

    def __cinit__(self):
        self.is_alive = True
        self.slot = self.first = self.register = -1

    cdef bint covers(self, Py_ssize_t low, Py_ssize_t high) except -1:
        """Whether entries have written all of these bytes."""
        cdef list span
        if self.kind != INNER or low >= high:
            return True
        for span in self.written or ():
            if span[0] <= low:
                if high <= span[1]:
                    return True
        return False

    cdef int write(self, Py_ssize_t low, Py_ssize_t high) except -1:
        cdef list span, kept = []
        if low < high:
            self.is_changed = True
        if self.kind != INNER or low >= high or self.covers(low, high):
            return 0
        for span in self.written or ():
            if span[1] < low or high < span[0]:
                kept.append(span)
            else:
                low = min(low, <Py_ssize_t>span[0])
                high = max(high, <Py_ssize_t>span[1])
        kept.append([low, high])
        self.written = kept
        return 0


cdef Block new_block(uintptr_t low, uintptr_t high, int kind, int index):
    cdef Block block = Block.__new__(Block)
    block.low, block.high, block.kind, block.index = low, high, kind, index
    return block


@cython.final
@cython.no_gc         # there are many, and none is part of a cycle
cdef class Touch:
    """An address in the context of an entry."""


@cython.final
@cython.no_gc         # its call, if any, refers to none
cdef class Entry:
    """A noted loop."""

    cdef Py_ssize_t reach(self, int modes) except -1:
        cdef Touch touch
        cdef Py_ssize_t found = 0
        for touch in self.touches:
            if touch.mode & modes:
                found += touch.high - touch.low
        return found

    @property
    def bytes_read(self):
        return self.reach(READS)

    @property
    def bytes_written(self):
        return self.reach(WRITES | SCATTERS)

    def difference(self, Entry other, dict blocks):
        """What distinguishes this entry from that of another tape, or None; `blocks` pairs the blocks of both."""
        cdef Touch x, y
        cdef bytearray mine = bytearray(self.context), its = bytearray(other.context)
        if self.data is not None and other.data is not None:
            mine, its = bytearray(self.data), bytearray(other.data)
            if mine != its:
                return f"other numbers in {self.kind}"
            return None if self.touches[0].offset == other.touches[0].offset else f"other memory in {self.kind}"
        if (self.function != other.function or len(self.touches) != len(other.touches) or len(mine) != len(its)
                or self.kind != other.kind):
            return f"another loop ({self.kind}, then {other.kind})"
        if self.call is not None and self.call.numbers() != other.call.numbers():
            return f"another argument of {self.kind}"
        for x, y in zip(self.touches, other.touches):
            if (x.at, x.offset, x.mode, x.low, x.high) != (y.at, y.offset, y.mode, y.low, y.high):
                return f"other memory in {self.kind}"
            if x.block is not None and y.block is not None:
                if blocks.setdefault(id(x.block), y.block) is not y.block or x.block.kind != y.block.kind:
                    return f"another array in {self.kind}"
            elif x.block is not y.block:
                return f"other memory in {self.kind}"
            mine[x.at:x.at + sizeof(void*)] = its[x.at:x.at + sizeof(void*)] = bytes(sizeof(void*))
        return None if mine == its else f"another number in {self.kind}"


# --------------------------------------------------------------------------------------------------- notes


@cython.final
cdef class Tape:
    """Notes a step: `open`, the step, `close`."""

    def __init__(self):
        self.entries = []
        self.lows, self.blocks, self.changing, self.replaced = [], {}, {}, {}

    def __dealloc__(self):
        PyMem_Free(self.external_lows)

    def open(self, list arguments, list externals):
        """Begin to note what this thread does. Both lists hold (low, high) addresses; external ranges do not overlap."""
        global _tape, tape_open
        cdef Py_ssize_t i
        if _tape is not None:
            raise RuntimeError("another tape is open")
        self.arguments = [new_block(low, high, ARGUMENT, i) for i, (low, high) in enumerate(arguments)]
        order = sorted(range(len(externals)), key=externals.__getitem__)
        self.externals = [new_block(externals[i][0], externals[i][1], EXTERNAL, i) for i in order]
        PyMem_Free(self.external_lows)
        self.external_lows = <uintptr_t*>PyMem_Malloc((len(externals) + 1) * sizeof(uintptr_t))
        if self.external_lows == NULL:
            raise MemoryError
        for i in range(len(self.externals)):
            self.external_lows[i] = (<Block>self.externals[i]).low
        tape_state.thread = PyThread_get_thread_ident()
        tape_state.count = tape_state.lost = 0
        _tape = self
        tape_open = 1
        self.former = array_memory_from_pool()

    def close(self):
        """Stop noting."""
        global _tape, tape_open
        give_back_allocator(self.former)
        self._look_at_memory()
        tape_open = 0
        _tape = None
        self.former = None

    cdef int _look_at_memory(self) except -1:
        """Enter what has been given and taken since the last time."""
        cdef Py_ssize_t i
        cdef tape_event* event
        if tape_state.lost:
            raise MemoryError
        for i in range(tape_state.count):
            event = &tape_state.events[i]
            if event.kind == CYGRAD_DIED:
                self._end_block(<uintptr_t>event.memory)
            elif event.size:
                self._begin_block(<uintptr_t>event.memory, event.size)
        tape_state.count = 0
        return 0

    cdef int _begin_block(self, uintptr_t low, size_t size) except -1:
        cdef Py_ssize_t i
        cdef Block block
        self._end_block(low)
        i = self.last_external(low + size - 1)
        while i >= 0 and (<Block>self.externals[i]).high > low:
            (<Block>self.externals[i]).is_alive = False     # freed during the step, and given again
            i -= 1
        block = new_block(low, low + size, INNER, -1)
        self.serial += 1
        block.serial = self.serial
        self.blocks[low] = block
        self.lows.insert(bisect_right(self.lows, low), low)
        return 0

    cdef int _end_block(self, uintptr_t low) except -1:
        cdef Block block = self.blocks.pop(low, None)
        if block is not None:
            block.is_alive = False
            del self.lows[bisect_right(self.lows, low) - 1]
        return 0

    cdef Block block_at(self, uintptr_t low, uintptr_t high):
        """The live block that holds these bytes, or None."""
        cdef Py_ssize_t i
        cdef Block block
        for block in self.arguments:
            if block.low <= low and high <= block.high:
                return block
        i = bisect_right(self.lows, low) - 1
        if i >= 0:
            block = self.blocks[self.lows[i]]
            if high <= block.high:
                return block
        i = self.last_external(low)
        if i >= 0:
            block = self.externals[i]
            if block.is_alive and high <= block.high:
                for other in self.arguments:
                    if low < (<Block>other).high and (<Block>other).low < high:
                        return None             # partly an argument
                return block
        return None

    cdef Block block_of(self, object array):
        """The live block that holds an array's first element, or None."""
        cdef uintptr_t low = <uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>array)
        self._look_at_memory()
        return self.block_at(low, low + cnp.PyArray_ITEMSIZE(<cnp.ndarray>array))

    cdef Py_ssize_t last_external(self, uintptr_t address) noexcept:
        """The number of the last external range that begins there or before; -1: there is none."""
        cdef Py_ssize_t low = 0, high = len(self.externals), middle
        while low < high:
            middle = (low + high) // 2
            if address < self.external_lows[middle]:
                high = middle
            else:
                low = middle + 1
        return low - 1

    cdef Block external_at(self, uintptr_t low, uintptr_t high):
        """The external range that holds these bytes, or None."""
        cdef Py_ssize_t i = self.last_external(low)
        cdef Block block
        if i >= 0:
            block = self.externals[i]
            if high <= block.high:
                return block
        return None

    cdef bint is_written(self, Block block, Py_ssize_t low, Py_ssize_t high) except -1:
        """Whether all of these bytes of a block come from entries, arguments or external arrays."""
        return block.covers(low, high)

    def refuse(self, str reason, op=None):
        """Note why the step cannot be replayed; the first reason counts."""
        if self.reason is None:
            self.reason, self.reason_op, self.reason_place = reason, op, current_place()
            self.may_be_noted_as_call = True

    cdef int enter(self, replay_t function, str kind, const void* context, size_t size, Word* words, int count,
                   part_t part=NULL, Py_ssize_t items=0, object call=None) except -1:
        cdef Entry entry = Entry.__new__(Entry)
        cdef Touch touch
        cdef uintptr_t address
        cdef int i
        if self.reason is not None:
            return 0
        self._look_at_memory()
        entry.function = function
        entry.part, entry.items = part, items
        entry.kind, entry.call = kind, call
        entry.context = PyBytes_FromStringAndSize(<const char*>context, size)
        entry.place = current_place()
        entry.touches = []
        for i in range(count):
            address = (<uintptr_t*>(<const char*>context + words[i].at))[0]
            if address == 0:
                continue
            touch = Touch.__new__(Touch)
            touch.at, touch.mode = words[i].at, words[i].mode
            if <uintptr_t>context <= address < <uintptr_t>context + size:
                touch.offset = address - <uintptr_t>context
                touch.mode = 0
            elif words[i].low >= words[i].high:
                continue                        # of no elements: never followed
            else:
                touch.block = self.block_at(address + words[i].low, address + words[i].high)
                if touch.block is None:
                    self.refuse(f"{kind} reads or writes memory of unknown origin")
                    return 0
                touch.offset = address - touch.block.low
                touch.low, touch.high = touch.offset + words[i].low, touch.offset + words[i].high
                if touch.mode & READS and not touch.block.covers(touch.low, touch.high):
                    self.refuse(f"{kind} reads what no noted loop has computed")
                    return 0
            entry.touches.append(touch)
        for touch in entry.touches:
            if touch.mode & (WRITES | SCATTERS) and touch.block is not None:
                touch.block.writes += 1
                if touch.mode & WRITES:
                    touch.block.write(touch.low, touch.high)
                else:
                    touch.block.is_changed = True
        self.entries.append(entry)
        return 0

    cdef int check(self, check_t function, str kind, const void* context, size_t size, Word* values) except -1:
        cdef Entry entry
        cdef Touch touch
        self.enter(<replay_t>function, kind, context, size, values, 1)
        if self.reason is not None or values.low >= values.high:
            return 0
        entry = self.entries[len(self.entries) - 1]
        entry.is_check = True
        for touch in entry.touches:
            if touch.block is None or touch.block.kind == INNER or touch.block.is_changed:
                self.refuse("checks values that the step itself computes")
        return 0

    cdef int data(self, object array) except -1:
        cdef Data d
        cdef Word w
        cdef Block block
        cdef Entry entry
        cdef uintptr_t at = <uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>array)
        cdef Py_ssize_t size = cnp.PyArray_NBYTES(<cnp.ndarray>array)
        if self.reason is not None or size == 0 or size > MOST_DATA or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>array):
            return 0
        self._look_at_memory()
        block = self.block_at(at, at + size)
        if block is None or block.kind != INNER or block.covers(at - block.low, at - block.low + size):
            return 0
        copy = PyBytes_FromStringAndSize(<const char*>at, size)
        d.to, d.source, d.size = <char*>at, PyBytes_AS_STRING(copy), size
        w = word(&d, &d.to, WRITES, 0, size)
        self.enter(_write_data, "data", &d, sizeof(d), &w, 1)
        entry = self.entries[len(self.entries) - 1]
        entry.data = copy                       # which keeps it alive
        return 0

    cdef int constant(self, uintptr_t to, const void* element, Py_ssize_t itemsize, Py_ssize_t count) except -1:
        cdef Constant c
        cdef Word w
        if itemsize > <Py_ssize_t>sizeof(c.element):
            self.refuse("a constant of a wide type")
            return 0
        memset(&c, 0, sizeof(c))
        c.to = <char*>to
        c.itemsize = itemsize
        c.count = count
        memcpy(c.element, element, itemsize)
        w = word(&c, &c.to, WRITES, 0, itemsize * count)
        cdef Entry entry = Entry.__new__(Entry)
        cdef Touch touch = Touch.__new__(Touch)
        if self.reason is not None:
            return 0
        entry.function = _write_constant
        entry.kind = "constant"
        entry.context = PyBytes_FromStringAndSize(<const char*>&c, sizeof(c))
        entry.place = current_place()
        touch.block = self.block_at(to, to + itemsize * count)
        if touch.block is None:
            self.refuse("a constant is written to memory of unknown origin")
            return 0
        touch.at, touch.mode = w.at, WRITES
        touch.offset = touch.low = to - touch.block.low
        touch.high = touch.low + itemsize * count
        touch.block.write(touch.low, touch.high)
        touch.block.writes += 1
        entry.touches = [touch]
        self.entries.append(entry)
        return 0


cdef struct Data:
    char* to
    const char* source
    Py_ssize_t size


cdef void _write_data(void* context) noexcept nogil:
    cdef Data* d = <Data*>context
    memcpy(d.to, d.source, d.size)


cdef struct Constant:
    char* to
    Py_ssize_t itemsize
    Py_ssize_t count
    char[32] element


cdef void _write_constant(void* context) noexcept nogil:
    cdef Constant* c = <Constant*>context
    cdef Py_ssize_t i
    if c.itemsize == 1:
        memset(c.to, c.element[0], c.count)
        return
    for i in range(c.count):
        memcpy(c.to + i * c.itemsize, c.element, c.itemsize)


def is_one(Entry entry):
    """Whether an entry sets one element to 1.0, in single or double precision."""
    cdef Constant* c = <Constant*>PyBytes_AS_STRING(entry.context)
    cdef float single = 1
    cdef double double_ = 1
    return entry.function == _write_constant and c.count == 1 and (
        c.itemsize == sizeof(float) and memcmp(c.element, &single, sizeof(float)) == 0
        or c.itemsize == sizeof(double) and memcmp(c.element, &double_, sizeof(double)) == 0)


cdef Tape _tape = None


cdef Py_ssize_t bisect_right(list values, uintptr_t x) except -1:
    """Where to insert an address among ascending ones, after equal ones; importing `bisect` takes half a millisecond."""
    cdef Py_ssize_t low = 0, high = len(values), middle
    while low < high:
        middle = (low + high) // 2
        if x < <uintptr_t>values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


cdef inline bint _is_here() noexcept:
    """Whether this thread's step is being noted, and not within a call that is noted as a whole."""
    return _tape is not None and _tape.depth == 0 and tape_state.thread == PyThread_get_thread_ident()


cdef Tape current_tape():
    return _tape if _is_here() and _tape.reason is None else None


cdef void note(replay_t replay, str kind, const void* context, size_t size, Word* words, int count) noexcept:
    if not _is_here():
        return
    try:
        _tape.enter(replay, kind, context, size, words, count)
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void note_loop(replay_t replay, part_t part, str kind, const void* context, size_t size, Word* words, int count,
                    Py_ssize_t items) noexcept:
    if not _is_here():
        return
    try:
        _tape.enter(replay, kind, context, size, words, count, part, items)
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void note_sums(replay_t replay, part_t part, replay_t finish, str kind, const void* context, size_t size, Word* words,
                    int count, Py_ssize_t items, Py_ssize_t piece, Py_ssize_t unit) noexcept:
    cdef Py_ssize_t before
    cdef Entry entry
    if not _is_here():
        return
    try:
        before = len(_tape.entries)
        _tape.enter(replay, kind, context, size, words, count, part, items)
        if len(_tape.entries) > before:
            entry = <Entry>_tape.entries[before]
            entry.finish, entry.piece, entry.unit = finish, piece, unit
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void note_constant(void* to, const void* element, Py_ssize_t itemsize, Py_ssize_t count) noexcept:
    if not _is_here():
        return
    try:
        _tape._look_at_memory()
        _tape.constant(<uintptr_t>to, element, itemsize, count)
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cpdef object noted_data(object array):
    if tape_open and _is_here() and type(array) is cnp.ndarray:
        try:
            _tape.data(array)
        except BaseException as error:
            _tape.refuse(f"noting failed ({error})")
    return array


cdef void note_check(check_t check, str kind, const void* context, size_t size, Word* values) noexcept:
    if not _is_here():
        return
    try:
        _tape.check(check, kind, context, size, values)
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void refuse(str reason, object op=None) noexcept:
    if not _is_here():
        return
    try:
        _tape.refuse(reason, op)
    except BaseException:
        _tape.reason = reason


cdef void refuse_always(str reason, object op=None) noexcept:
    if _tape is None or tape_state.thread != PyThread_get_thread_ident():
        return
    try:
        _tape.refuse(reason, op)
    except BaseException:
        _tape.reason = reason
    _tape.may_be_noted_as_call = False


cdef void note_begin_of_change(object array) noexcept:
    cdef Block block
    if not _is_here():
        return
    try:
        if type(array) is not cnp.ndarray:
            refuse("changes a tensor that is not in main memory")
        elif cnp.PyArray_SIZE(<cnp.ndarray>array):
            block = _tape.block_of(array)
            _tape.changing[<uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>array)] = 0 if block is None else block.writes
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void note_end_of_change(object array, str op) noexcept:
    cdef Block block
    if not _is_here():
        return
    try:
        if type(array) is cnp.ndarray and cnp.PyArray_SIZE(<cnp.ndarray>array):
            block = _tape.block_of(array)
            before = _tape.changing.pop(<uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>array), None)
            if block is None or before is None or block.writes == before:
                refuse("changes a tensor by other means than noted loops", op)
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


cdef void note_grad(object owner) noexcept:
    if not _is_here():
        return
    try:
        _tape.replaced.setdefault(<uintptr_t><void*>owner, (owner, len(_tape.entries)))
    except BaseException as error:
        _tape.refuse(f"noting failed ({error})")


def look_at_caller():
    """The layer above hands an array to Python code: refuse callers that may read its values."""
    if _is_here() and not vetted.may_have_arrays(sys._getframe()):
        refuse("reads an array in Python", sys._getframe().f_code.co_name)


def look_at_kernels_caller():
    """A kernel hands its results to Python code: refuse code of this package that may read their values."""
    if _is_here() and not vetted.may_have_results(sys._getframe()):
        refuse("reads a kernel's result in Python", sys._getframe().f_code.co_name)


def look_at_offset(object part, object whole):
    """Python code learns where an array lies in another one: refuse if the next step may be given another part of it."""
    cdef Block block
    if not tape_open or not _is_here() or type(part) is not cnp.ndarray or type(whole) is not cnp.ndarray:
        return
    block = _tape.block_of(part)
    if block is not None and block.kind == ARGUMENT and <uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>whole) != block.low:
        refuse("tells where in its memory an argument lies", "storage_offset")


def is_open():
    """Whether this thread's step is being noted."""
    return _is_here()


def refuse_step(str reason, op=None):
    """What happens now cannot be replayed, for this reason; nothing happens unless a step is being noted."""
    refuse(reason, op)
