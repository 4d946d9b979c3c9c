"""Groups of elementwise loops that run block by block. See Note [Programs] in programs.pyx."""

import os

cimport cython

from cygrad._kernels.tape.tape cimport INNER_BLOCK, ITEMWISE, SCATTERS, WRITES, Block, Entry, Touch

cdef bint GROUPS = os.environ.get("CYGRAD_TAPE_GROUPS", "1") not in ("", "0")

cdef extern from "platform/fused_blocks.h":
    enum:
        BLOCK_ITEMS
        BLOCK_APART
        BLOCK_CONTEXTS
        BLOCK_ROOM

cdef enum:
    GROUPED = 1 << 12               # items; fewer stay in the cache anyway
    LATER = 32                      # small entries that a group lets wait


@cython.final
cdef class Group:

    def __init__(self, Py_ssize_t items):
        self.items, self.unit = items, 1
        self.entries, self.later, self.touched, self.written, self.sums = [], [], {}, set(), set()

    cdef bint takes(self, Entry entry) except -1:
        """Add an entry if it may run block by block together with the others; return whether it may."""
        cdef Touch touch
        cdef dict touched
        cdef set written, sums
        cdef Py_ssize_t size = len(entry.context)
        if entry.items != self.items or self.size() + aligned(size) > BLOCK_CONTEXTS or depends_on_any(entry, self.later):
            return False
        touched, written, sums = dict(self.touched), set(self.written), set(self.sums)
        for touch in entry.touches:
            if touch.block is None:
                continue
            how = touch.offset, (touch.high - touch.low) // self.items if touch.mode & ITEMWISE else 0
            if touch.low != touch.offset or touch.block in self.sums:
                return False
            if touch.mode & (WRITES | SCATTERS) and entry.piece:
                if touch.block in self.touched or touch.mode & ITEMWISE:
                    return False
                sums.add(touch.block)
            elif touch.mode & (WRITES | SCATTERS):
                written.add(touch.block)
            if touched.setdefault(touch.block, how) != how:
                touched[touch.block] = None             # in two ways
        for block in written:
            if touched[block] is None or touched[block][1] == 0:
                return False
        if entry.piece and not self.takes_sums(entry):
            return False
        self.touched, self.written, self.sums = touched, written, sums
        self.entries.append(entry)
        return True

    cdef bint takes_sums(self, Entry entry) except -1:
        """Choose pieces and blocks that suit the sums of an entry, too; return whether there are such ones."""
        cdef Py_ssize_t unit = least_multiple(self.unit, entry.unit), piece = max(self.piece, entry.piece)
        if unit > BLOCK_ITEMS or piece % entry.piece or self.piece and piece % self.piece or (
                piece % unit and piece < self.items):
            return False
        self.unit, self.piece = unit, piece
        return True

    cdef bint goes_before(self, Entry entry) except -1:
        """Whether an entry that came after this group's may run before them."""
        cdef Touch touch
        if entry.part != NULL and entry.items >= GROUPED:
            return False
        for touch in entry.touches:
            if touch.block in self.touched and (
                    touch.mode & (WRITES | SCATTERS) or touch.block in self.written or touch.block in self.sums):
                return False
        return not depends_on_any(entry, self.later)

    cdef bint comes_later(self, Entry entry) except -1:
        """Whether an entry is so small that others may join the group before it."""
        return entry.part != NULL and entry.items < GROUPED and entry.call is None and len(self.later) < LATER

    def size(self):
        """Bytes of all contexts."""
        return sum([aligned(len((<Entry>entry).context)) for entry in self.entries])

    cdef int choose_registers(self, dict elsewhere) except -1:
        """Put blocks that only this group touches into registers. `elsewhere` counts the entries that touch each block."""
        cdef Entry entry
        cdef Touch touch
        cdef Block block
        cdef Py_ssize_t i, most
        cdef dict last = {}, counts = {}
        cdef list free_rooms = [], ending
        for i, entry in enumerate(self.entries):
            for block in {touch.block for touch in entry.touches if touch.block is not None}:
                last[block] = i
                counts[block] = counts.get(block, 0) + 1
        suited = {block for block in counts
                  if (<Block>block).kind == INNER_BLOCK and (<Block>block).slot < 0 and block in self.written
                  and counts[block] == elsewhere[block] and self.touched[block][0] == 0}
        if not suited:
            return 0
        self.width = max([self.touched[block][1] for block in suited])
        most = BLOCK_ROOM // (BLOCK_ITEMS * self.width + BLOCK_APART)
        for i, entry in enumerate(self.entries):
            ending = []
            for block in {touch.block for touch in entry.touches if touch.block in suited}:
                if block.register < 0:
                    if not free_rooms and self.rooms == most:
                        suited.discard(block)           # stays in the arena
                        continue
                    if not free_rooms:
                        free_rooms.append(self.rooms)
                        self.rooms += 1
                    block.register = free_rooms.pop()
                if last[block] == i:
                    ending.append(block.register)
            free_rooms.extend(ending)
        return 0


cdef bint depends_on_any(Entry entry, list others) except -1:
    """Whether an entry must keep its order with one of the others: they touch a block that one of them changes."""
    cdef Entry other
    cdef Touch touch, its
    for other in others:
        for touch in entry.touches:
            for its in other.touches:
                if touch.block is its.block and touch.block is not None and (
                        (touch.mode | its.mode) & (WRITES | SCATTERS)):
                    return True
    return False


cdef Py_ssize_t least_multiple(Py_ssize_t a, Py_ssize_t b) noexcept:
    """The least common multiple."""
    cdef Py_ssize_t found = max(a, b)
    while found % a or found % b:
        found += max(a, b)
    return found


cdef list grouped(list entries):
    """The entries, with groups in the place of elementwise entries that may run together."""
    cdef Entry entry
    cdef Group group = None
    cdef list units = []
    cdef dict counts = None
    for entry in entries:
        if group is not None:
            if group.takes(entry):
                continue
            if group.goes_before(entry):
                units.insert(len(units) - 1, entry)
                continue
            if group.comes_later(entry):
                group.later.append(entry)
                continue
            units.extend(group.later)
            group = None
        if GROUPS and entry.part != NULL and entry.items >= GROUPED:
            group = Group(entry.items)
            if group.takes(entry):
                units.append(group)
                continue
            group = None
        units.append(entry)
    if group is not None:
        units.extend(group.later)
    for i, unit in enumerate(units):
        if isinstance(unit, Group):
            if len((<Group>unit).entries) == 1:
                units[i] = (<Group>unit).entries[0]
            else:
                counts = uses_of_blocks(entries) if counts is None else counts
                (<Group>unit).choose_registers(counts)
    return units


cdef dict uses_of_blocks(list entries):
    """{block: how many entries touch it}."""
    cdef Entry entry
    cdef dict found = {}
    for entry in entries:
        for block in {(<Touch>each).block for each in entry.touches}:
            found[block] = found.get(block, 0) + 1
    return found
