"""Runs the loops that a tape has noted: their contexts, their memory, and groups of elementwise loops.

Note [Programs]
---------------
`Launches` holds what remains of a tape: a list of C functions with copies of their contexts, in the order of the step.

    slots       Memory that may lie elsewhere in the next run: arguments, external arrays, results. `set_base` changes the
                addresses in the contexts that point there.
    arena       Other blocks get places in one arena, or in the memory of results before that is used (Note [Places] in
                arena.pyx). With CYGRAD_TAPE_POISON=1 in the environment both are filled with NaN before each run.
    own memory  If there are calls, which give memory in each run, large blocks get theirs in each run, too, and only for as
                long as they are used: an arena for the whole run would lie beside what calls give later. So do large
                gradients (`late`), and the former ones are given up where the step clears them (`pauses` of `run`). Without
                calls, this is done where a large arena and the gradients take more.
    calls       Kernels that are called again as a whole (Note [Noted calls] in calls.pyx) give memory in each run, which is
                a slot, too. A call may fail, or return something else than before. The run then stops, and the memory of
                arguments and external arrays that it has changed is restored, so that the step can be done as it is written.
    dead loops  Loops whose results nobody reads are left out, and products with 1: what read them reads the other factor.
    groups      Elementwise loops over the same number of items that follow each other, and sums of their results, run block
                by block (fused_blocks.h), with the very functions that an eager step calls: chunks may begin anywhere (Note
                [Pieces] in thread_pool.pyx), and sums are added up in the same order, so results have the same bits. Arrays
                that only the group touches become registers, which stay in the nearest cache. A group ends at a loop that
                sees an array of the group in another way than item by item, if either writes to it, or that needs a sum.
                Small ops in between wait until it has ended, or run before it.
"""

import itertools
import os

cimport cython
cimport numpy as cnp
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from cygrad._kernels.platform.memory_pool cimport empty_pooled
from cygrad._kernels.platform.thread_pool cimport share
from cygrad._kernels.tape.arena cimport entries_of, in_order_of_use, lend, place
from cygrad._kernels.tape.calls cimport Call, Made
from cygrad._kernels.tape.groups cimport Group, aligned, grouped
from cygrad._kernels.tape.pruning cimport live, without_products_with_one
from cygrad._kernels.tape.tape cimport (
    INNER_BLOCK, ITEMWISE, READS, SCATTERS, WRITES, Block, Entry, Tape, Touch, check_t, part_t, replay_t)

POISONS = os.environ.get("CYGRAD_TAPE_POISON", "0") not in ("", "0")

cdef extern from "platform/fused_blocks.h":
    ctypedef struct block_register:
        Py_ssize_t at
        Py_ssize_t step
        int number
    ctypedef struct block_loop:
        part_t part
        Py_ssize_t context
        replay_t finish
    ctypedef struct block_stream:
        Py_ssize_t at
        Py_ssize_t step
        int writes
    ctypedef struct block_program:
        char* contexts
        Py_ssize_t size
        Py_ssize_t items
        Py_ssize_t room
        block_loop* loops
        block_register* registers
        block_stream* streams
        Py_ssize_t* inner
        Py_ssize_t n_loops
        Py_ssize_t n_registers
        Py_ssize_t n_inner
        Py_ssize_t n_streams
        Py_ssize_t block
        Py_ssize_t piece
    enum:
        BLOCK_ITEMS
        BLOCK_APART
    void run_blocks_of(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil

cdef extern from *:
    """
    #if defined(_WIN32)
    static void *aligned_room(size_t size) { return malloc(size); }     /* 16 bytes: `free` must take it */
    #else
    #include <stdlib.h>
    static void *aligned_room(size_t size) { void *p = NULL; return posix_memalign(&p, 64, size) ? NULL : p; }
    #endif
    """
    void* aligned_room(size_t) noexcept

cdef struct Step:
    replay_t function
    char* context


cdef struct Patch:              # an address to change when its slot moves
    char** where
    Py_ssize_t offset


cdef enum:
    ALIGNMENT = 64
    RELEASE_ABOVE_BYTES = 1 << 18   # of work; below this, releasing the GIL costs more than it gains
    PIECE = 1 << 14                 # items for a thread
    OWN_MEMORY = 1 << 15            # bytes of a block that gets memory in each run
    LARGE_ARENA = 1 << 20           # bytes that are worth it, without calls


cdef bint is_large(Block block) noexcept:
    return block.high - block.low >= OWN_MEMORY


cdef Py_ssize_t total(list blocks) except -1:
    return sum([(<Block>each).high - (<Block>each).low for each in blocks])


cdef Py_ssize_t least_memory(Py_ssize_t units, list inner, list late) except -1:
    """What blocks take at most at a time, if each has memory of its own: `inner` ones as long as they are used, `late` ones
    from their first use on."""
    cdef Block block
    cdef list changes = [0] * (units + 1)
    for block in inner:
        changes[block.first] += block.high - block.low
        changes[block.last + 1] -= block.high - block.low
    for block in late:
        changes[block.first] += block.high - block.low
    return max(itertools.accumulate(changes))


cdef char* new_room(Py_ssize_t size) except NULL:
    """Zeroed memory, aligned like the pool's."""
    cdef Py_ssize_t padded = aligned(max(size, 1)) + ALIGNMENT
    cdef void* memory = aligned_room(padded)
    if memory == NULL:
        raise MemoryError
    memset(memory, 0, padded)
    return <char*>memory


# ----------------------------------------------------------------------------------------------- launches


@cython.final
cdef class Launches:
    """The entries of a tape that matter, with their contexts and memory (Note [Programs]).

    Slots are numbered: the arguments, the external ranges that are touched (`externals`, their indices on the tape), and the
    blocks that outlive a run (`kept`), and the memory that calls give.
    """

    def __cinit__(self):
        self.contexts = self.arena = NULL
        self.steps = self.patches = NULL
        self.first_patch = NULL
        self.bases = NULL
        self.rooms, self.handed = [], {}

    def __dealloc__(self):
        free(self.contexts)
        free(self.arena)
        free(self.steps)
        free(self.patches)
        free(self.first_patch)
        free(self.bases)
        for address in self.rooms or ():
            free(<void*><uintptr_t>address)

    def __init__(self, Tape tape not None, list kept not None, list externals not None, list late not None):
        """`late`: those of the kept blocks that may get their memory late."""
        cdef Block block
        cdef Py_ssize_t i
        cdef Py_ssize_t size
        cdef dict numbers = {index: len(tape.arguments) + i for i, index in enumerate(externals)}
        for block in tape.arguments:
            block.slot = block.index
        for block in tape.externals:
            block.slot = numbers.get(block.index, -1)
        for i, block in enumerate(kept):
            block.slot = <int>(len(tape.arguments) + len(externals) + i)
        self.slots = <int>(len(tape.arguments) + len(externals) + len(kept))
        self.entries = without_products_with_one(live(tape.entries))
        self.first_given = self.slots
        for entry in self.entries:
            if (<Entry>entry).call is not None:
                self.slots = give_slots(entry, self.slots)
        self.checked = sum([1 for each in self.entries if (<Entry>each).is_check])
        self.units = grouped(self.entries)
        self.count = len(self.units)
        self.arrange(kept, [each for each in late if is_large(each)])
        for entry in self.entries:
            self.work += (<Entry>entry).reach(READS) + (<Entry>entry).reach(WRITES | SCATTERS)
        size = sum([aligned(len((<Entry>each).context)) for each in self.entries])
        self.contexts = new_room(size)
        self.arena = new_room(self.memory)
        self.steps = new_room(self.count * sizeof(Step))
        self.first_patch = <Py_ssize_t*>new_room((self.slots + 1) * sizeof(Py_ssize_t))
        self.bases = <char**>new_room((self.slots + 1) * sizeof(char*))
        self.fill()

    cdef int fill(self) except -1:
        """Copy the contexts, and collect the addresses that move with slots."""
        cdef char* context = self.contexts
        cdef char* begin
        cdef Step* step
        cdef Py_ssize_t i
        self.make_room_for_patches()
        for i, unit in enumerate(self.units):
            step = &(<Step*>self.steps)[i]
            begin = context
            if isinstance(unit, Group):
                for entry in (<Group>unit).entries:
                    context = self.fill_entry(entry, context)
                self.fill_group(unit, begin, context - begin, step)
            else:
                step.function, step.context = (<Entry>unit).function, context
                context = self.fill_entry(unit, context)
        for i in range(self.slots, 0, -1):      # each now points behind the patches of its slot
            self.first_patch[i] = self.first_patch[i - 1]
        self.first_patch[0] = 0
        self.plan_calls()
        return 0

    cdef int make_room_for_patches(self) except -1:
        """Have the patches of each slot follow those of the one before; `first_patch` is where its next one goes."""
        cdef Touch touch
        cdef Py_ssize_t i, n = 0, count
        for entry in self.entries:
            for touch in (<Entry>entry).touches:
                if touch.block is not None and touch.block.register < 0 and touch.block.slot >= 0:
                    self.first_patch[touch.block.slot] += 1
        for i in range(self.slots + 1):
            count = self.first_patch[i]
            self.first_patch[i] = n
            n += count
        self.patches = new_room(n * sizeof(Patch))
        return 0

    cdef int arrange(self, list kept, list late) except -1:
        """Choose where blocks lie. `late` are those kept ones that may get their memory late."""
        cdef Block block
        cdef list blocks = in_order_of_use(self.units)
        self.own, self.late = [], {}
        if not any([(<Entry>each).call is not None for each in self.entries]):
            self.lent = lend(self.units, kept)
            self.memory = place(self.units)
            if self.memory < LARGE_ARENA or least_memory(self.count, blocks, late) >= self.memory + total(late):
                return 0
            for block in blocks:
                block.slot, block.place = -1, 0
        self.lent = lend(self.units, [each for each in kept if each not in late])
        self.give_own_memory(late)
        self.memory = place(self.units)
        return 0

    cdef int give_own_memory(self, list late) except -1:
        """Number large blocks that live only within a run; see Note [Programs]."""
        cdef Touch touch
        cdef Block block
        cdef Py_ssize_t i
        for i, unit in enumerate(self.units):
            for entry in entries_of(unit):
                for touch in (<Entry>entry).touches:
                    block = touch.block
                    if block is None:
                        continue
                    if block.slot < 0 and block.register < 0 and block.kind == INNER_BLOCK and is_large(block):
                        block.slot = self.slots
                        self.own.append((i, block.slot, block.high - block.low))
                        self.slots += 1
                    elif block in late and block.slot not in self.late:
                        self.late[block.slot] = None
                        self.own.append((i, block.slot, block.high - block.low))
        return 0

    cdef int take(self, int slot, cnp.npy_intp size) except -1:
        """Get the memory of a large block for this run."""
        cdef cnp.ndarray memory
        if slot in self.handed:
            return 0                                    # by a call
        if slot in self.late:
            memory = self.late[slot]()
        else:
            memory = empty_pooled(cnp.PyArray_DescrFromType(cnp.NPY_UINT8), 1, &size, NULL, <size_t>size)
        self.held[slot] = memory
        if POISONS or self.poisons:
            memset(cnp.PyArray_DATA(memory), 0xFF, cnp.PyArray_NBYTES(memory))
        self.set_base(slot, cnp.PyArray_BYTES(memory))
        return 0

    cdef int plan_calls(self) except -1:
        """List the calls, when memory is taken and given back, and what has to be restored if a call fails."""
        cdef Py_ssize_t i, n
        cdef Touch touch
        cdef Block block
        cdef dict last = {}
        cdef set changed = set()
        self.calls, self.held, self.restored, self.events = [], [None] * self.slots, [], []
        for i, unit in enumerate(self.units):
            if isinstance(unit, Entry) and (<Entry>unit).call is not None:
                self.calls.append((i, (<Entry>unit).call))
        if not self.calls and not self.own:
            return 0
        n = self.calls[len(self.calls) - 1][0] if self.calls else -1
        for i, unit in enumerate(self.units):
            for entry in entries_of(unit):
                for touch in (<Entry>entry).touches:
                    block = touch.block
                    if block is not None and block.slot >= self.first_given:
                        last[block.slot] = i
                    if block is not None and block.kind != INNER_BLOCK and i <= n and touch.mode & (WRITES | SCATTERS):
                        changed.add((block.slot, block.high - block.low))
        self.restored = sorted(changed)
        takes, drops, calls = {}, {}, dict(self.calls)
        for i, slot, size in self.own:
            takes.setdefault(i, []).append((slot, size))
        for slot, i in last.items():
            drops.setdefault(i + 1, []).append(slot)
        self.events = [(i, calls.get(i), takes.get(i, ()), drops.get(i, ()))
                       for i in sorted(calls.keys() | takes.keys() | drops.keys()) if i < self.count]
        return 0

    cdef char* fill_entry(self, Entry entry, char* context) except NULL:
        """Copy the context of an entry; return where the next one goes."""
        cdef Touch touch
        cdef Patch* patch
        cdef char** where
        memcpy(context, PyBytes_AS_STRING(entry.context), len(entry.context))
        for touch in entry.touches:
            where = <char**>(context + touch.at)
            if touch.block is None:
                where[0] = context + touch.offset
            elif touch.block.register >= 0:
                where[0] = NULL                         # set for each block
            elif touch.block.slot < 0:
                where[0] = self.arena + touch.block.place + touch.offset
            else:
                where[0] = NULL
                patch = &(<Patch*>self.patches)[self.first_patch[touch.block.slot]]
                patch.where, patch.offset = where, touch.block.place + touch.offset
                self.first_patch[touch.block.slot] += 1
        return context + aligned(len(entry.context))

    cdef int fill_group(self, Group group, char* contexts, size_t size, void* step) except -1:
        """Make the program of a group."""
        cdef Entry entry
        cdef Touch touch
        cdef Py_ssize_t touches = sum([len((<Entry>each).touches) for each in group.entries]), at = 0, i
        cdef Py_ssize_t head = aligned(sizeof(block_program)), loops = aligned(len(group.entries) * sizeof(block_loop))
        cdef Py_ssize_t registers = aligned(touches * sizeof(block_register))
        cdef Py_ssize_t streams = aligned(touches * sizeof(block_stream))
        cdef char* room = new_room(head + loops + registers + streams + touches * sizeof(Py_ssize_t))
        cdef set seen = set()
        cdef block_program* p = <block_program*>room
        self.rooms.append(<uintptr_t>room)
        p.contexts, p.size, p.items = contexts, size, group.items
        p.room = BLOCK_ITEMS * group.width + BLOCK_APART
        p.loops = <block_loop*>(room + head)
        p.registers = <block_register*>(room + head + loops)
        p.streams = <block_stream*>(room + head + loops + registers)
        p.inner = <Py_ssize_t*>(room + head + loops + registers + streams)
        p.block = BLOCK_ITEMS // group.unit * group.unit
        p.piece = PIECE if group.piece == 0 else group.piece * max(1, PIECE // group.piece)
        p.n_loops = len(group.entries)
        for i, entry in enumerate(group.entries):
            p.loops[i].part, p.loops[i].context, p.loops[i].finish = entry.part, at, entry.finish
            for touch in entry.touches:
                if touch.block is None:
                    p.inner[p.n_inner] = at + touch.at
                    p.n_inner += 1
                elif touch.block.register >= 0:
                    p.registers[p.n_registers].at = at + touch.at
                    p.registers[p.n_registers].step = (touch.high - touch.low) // group.items
                    p.registers[p.n_registers].number = touch.block.register
                    p.n_registers += 1
                elif touch.mode & ITEMWISE and touch.block not in seen:
                    seen.add(touch.block)
                    p.streams[p.n_streams].at = at + touch.at
                    p.streams[p.n_streams].step = (touch.high - touch.low) // group.items
                    p.streams[p.n_streams].writes = touch.block in group.written
                    p.n_streams += 1
            at += aligned(len(entry.context))
        (<Step*>step).function, (<Step*>step).context = run_group, room
        return 0

    cdef void set_base(self, int slot, char* base) noexcept nogil:
        """The memory of a slot begins there from now on."""
        cdef Py_ssize_t i
        if self.bases[slot] == base:
            return
        for i in range(self.first_patch[slot], self.first_patch[slot + 1]):
            (<Patch*>self.patches)[i].where[0] = base + (<Patch*>self.patches)[i].offset
        self.bases[slot] = base

    cdef bint hands_over(self, int slot, int typenum, int ndim, cnp.npy_intp* dims, cnp.npy_intp* steps) except -1:
        """Have a call's array become what a slot of memory that outlives a run holds, if it is just that array; return
        whether it does: `taken` then has it after the run. Otherwise the call's array is copied there."""
        cdef Call call
        cdef Made made
        cdef Py_ssize_t n
        for _, call in self.calls:
            n = len(call.inputs)
            for made in [each for each in call.results if type(each) is Made]:
                if made.word < n or made.offset or call.slots[made.word - n] != slot:
                    continue
                if not made.is_like(typenum, ndim, dims, steps) or slot in self.handed:
                    return False
                call.fresh[made.word - n] = slot
                self.handed[slot] = made
                return True
        return False

    cdef bint takes_late(self, int slot, make) except -1:
        """Have `make()` give the array that holds a slot's memory, when a run first uses it; return whether the slot gets
        its memory late. `taken` then has the array after the run."""
        if slot not in self.late:
            return False
        self.late[slot] = make
        return True

    cdef object taken(self, int slot):
        """The array that a call, or `make`, has made in the last run for such a slot."""
        array = self.held[slot]
        self.held[slot] = None
        return array

    cdef bint may_run(self) noexcept:
        """Whether all checks hold. Every slot must have a base."""
        cdef Step* step = <Step*>self.steps
        cdef Py_ssize_t i
        for i in range(self.checked):
            if not (<check_t>step[i].function)(step[i].context):
                return False
        return True

    cdef bint may_fail(self) noexcept:
        """Whether a run has calls."""
        return len(self.calls) > 0

    cdef bint takes_memory(self) noexcept:
        """Whether a run takes memory in its course."""
        return len(self.events) > 0

    cdef Py_ssize_t after_calls(self, Tape tape, Py_ssize_t entries) except -1:
        """The first unit behind all calls that are among the first entries of the tape."""
        cdef set before = {id(each) for each in tape.entries[:entries] if (<Entry>each).call is not None}
        return max([i + 1 for i, _ in self.calls if id(self.units[i]) in before], default=0)

    cdef str run(self, list pauses):
        """Run all entries in order. Every slot must have a base. Return why a call failed, with nothing done, or None.
        `pauses` are (unit, function), in ascending order: each function is called once the units before have run. They are
        for programs that take memory in the run."""
        cdef list before
        cdef Py_ssize_t i
        if POISONS:
            self.poison()
        if not self.events:
            self.run_range(self.checked, self.count)
            return None
        before = [PyBytes_FromStringAndSize(self.bases[<int>slot], size) for slot, size in self.restored]
        self.failed_at = None
        failure = "was interrupted"
        try:
            failure = self.run_with_events(pauses)
        finally:
            if failure is not None:
                for i in range(len(before)):
                    memcpy(self.bases[<int>self.restored[i][0]], PyBytes_AS_STRING(before[i]), self.restored[i][1])
                for slot in [*self.handed, *self.late]:
                    self.held[<int>slot] = None
            for i in range(self.first_given, self.slots):
                self.held[i] = None
            self.poisons = False
        return failure

    cdef str run_with_events(self, list pauses):
        cdef Py_ssize_t at = self.checked, i, paused = 0
        for i, call, takes, drops in self.events:
            self.run_range(at, i)
            at = i
            while paused < len(pauses) and pauses[paused][0] <= i:
                pauses[paused][1]()
                paused += 1
            for slot in drops:
                self.held[<int>slot] = None
            for slot, size in takes:
                self.take(slot, size)
            if call is not None:
                failure = (<Call>call).run(self, <char**>(<Step*>self.steps)[i].context, self.held)
                if failure is not None:
                    self.failed_at = (<Entry>self.units[i]).place
                    return failure
                at = i + 1
        self.run_range(at, self.count)
        return None

    cdef int run_range(self, Py_ssize_t first, Py_ssize_t end) except -1:
        """Run the steps in between, none of which is a call."""
        cdef Step* step = <Step*>self.steps + first
        if first == end:
            return 0
        if self.work > RELEASE_ABOVE_BYTES:
            with nogil:
                run_steps(step, end - first)
        else:
            run_steps(step, end - first)
        return 0

    cdef int poison(self) except -1:
        """Fill the arena with NaN, and what the next run gets besides. Every slot must have a base."""
        self.poisons = True
        memset(self.arena, 0xFF, self.memory)
        for slot, size in self.lent:
            memset(self.bases[<int>slot], 0xFF, size)
        return 0


cdef void run_steps(Step* step, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        step[i].function(step[i].context)


cdef void run_group(void* context) noexcept nogil:
    cdef block_program* p = <block_program*>context
    cdef Py_ssize_t i
    share(run_blocks_of, context, p.items, p.piece)
    for i in range(p.n_loops):
        if p.loops[i].finish != NULL:
            p.loops[i].finish(p.contexts + p.loops[i].context)


cdef int give_slots(Entry entry, int slots) except -1:
    """Number the memory that a call gives, unless it is kept and so has a slot; return how many slots there are now."""
    cdef Touch touch
    cdef Call call = entry.call
    cdef Py_ssize_t n = len(call.inputs), i
    for touch in entry.touches:
        i = touch.at // <Py_ssize_t>sizeof(char*) - n
        if i >= 0:
            call.slots[i] = touch.block.slot
        if i >= 0 and touch.block.slot < 0:
            touch.block.slot = slots
            call.fresh[i] = slots
            slots += 1
    return slots
