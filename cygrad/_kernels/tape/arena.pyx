"""Where the blocks of a program lie.

Note [Places]
-------------
A block that lives only within a run gets a part of the arena, and blocks that are in use at the same time lie apart. The
arena stays between runs, beside the gradients and results, which an eager step has only when it has freed most other
blocks. So a block lies in the memory of such a *lender* if it has been read for the last time before the lender is touched:
all memory of a run is there when it begins.

Large blocks are placed by size, which leaves few gaps; small ones, of which there may be thousands, as they are used.
"""

cimport cython

from cygrad._kernels.tape.groups cimport Group, aligned
from cygrad._kernels.tape.tape cimport SCATTERS, WRITES, Block, Entry, Touch

cdef enum:
    LARGE = 1 << 12             # bytes; lenders have as many, at least
    MOST_LARGE = 1000           # beyond these, all are placed as they are used
    MOST_LENDERS = 64

cdef Py_ssize_t UNLIMITED = 1 << 62


@cython.final
cdef class Space:
    """Memory that blocks share in turn: `size` bytes, of which `used` are, until the unit with the number `end`."""
    cdef int slot
    cdef Py_ssize_t size, used, end
    cdef list taken             # blocks, by place

    def __init__(self, int slot, Py_ssize_t size, Py_ssize_t end):
        self.slot, self.size, self.end, self.taken = slot, size, end, []

    cdef bint takes(self, Block block) except -1:
        """Give a block the lowest place that is free while it is in use; return whether there is one."""
        cdef Py_ssize_t at = 0, i, n = len(self.taken), size = aligned(block.high - block.low)
        cdef Block other
        if block.last >= self.end or size > self.size:
            return False
        for other in self.taken:
            if other.last < block.first or block.last < other.first:
                continue
            if other.place - at >= size:
                break
            at = max(at, other.place + aligned(other.high - other.low))
        if at + size > self.size:
            return False
        block.place, block.slot = at, self.slot
        i = n
        while i > 0 and (<Block>self.taken[i - 1]).place > at:
            i -= 1
        self.taken.insert(i, block)
        self.used = max(self.used, at + size)
        return True

    cdef int forget(self, Py_ssize_t now) except -1:
        """No block that is placed from now on is in use before that unit."""
        self.taken = [other for other in self.taken if (<Block>other).last >= now]
        return 0


cdef list lend(list units, list kept):
    cdef Block block, lender
    cdef Space space
    cdef list blocks, spaces = []
    if not kept:
        return spaces
    blocks, given = in_order_of_use(units), blocks_of_calls(units)
    for lender in sorted(kept, key=by_size)[:MOST_LENDERS]:
        if lender.first > 0 and lender.high - lender.low >= LARGE and lender not in given:
            spaces.append(Space(lender.slot, lender.high - lender.low, lender.first))
    spaces.reverse()            # the smallest that is large enough
    for block in sorted([each for each in blocks if is_large(each)], key=by_size)[:MOST_LARGE]:
        for space in spaces:
            if space.takes(block):
                break
    return [(space.slot, space.used) for space in spaces if space.used]


cdef Py_ssize_t place(list units) except -1:
    cdef Block block
    cdef Space arena = Space(-1, UNLIMITED, UNLIMITED), rest = Space(-1, UNLIMITED, UNLIMITED)
    cdef list blocks = in_order_of_use(units), large = [each for each in blocks if is_large(each)], small = blocks
    if len(large) <= MOST_LARGE:
        small = [each for each in blocks if not is_large(each)]
        for block in sorted(large, key=by_size):
            arena.takes(block)
    for block in small:
        rest.forget(block.first)
        rest.takes(block)
    for block in small:
        block.place += arena.used       # they follow the large ones
    return arena.used + rest.used


cdef list in_order_of_use(list units):
    cdef Touch touch
    cdef Block block
    cdef Py_ssize_t i
    cdef list found = []
    cdef set seen = set()
    for i, unit in enumerate(units):
        for entry in entries_of(unit):
            for touch in (<Entry>entry).touches:
                block = touch.block
                if block is None:
                    continue
                if block not in seen:
                    seen.add(block)
                    block.first = i
                    if block.slot < 0 and block.register < 0:
                        found.append(block)
                block.last = i
    return found


cdef set blocks_of_calls(list units):
    """The blocks that calls write to, whose memory may be theirs."""
    cdef Touch touch
    return {touch.block for unit in units for entry in entries_of(unit) if (<Entry>entry).call is not None
            for touch in (<Entry>entry).touches if touch.mode & (WRITES | SCATTERS)}


cdef list entries_of(unit):
    return (<Group>unit).entries if isinstance(unit, Group) else [unit]


cdef bint is_large(Block block) noexcept:
    return block.high - block.low >= LARGE


def by_size(Block block not None):
    """The sort key of blocks, the largest first."""
    return <Py_ssize_t>block.low - <Py_ssize_t>block.high
