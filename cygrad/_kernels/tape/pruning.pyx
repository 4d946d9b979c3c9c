"""Leaves out loops that a program need not run; see Note [Programs] in programs.pyx."""

from cygrad._kernels.tape.calls cimport Call
from cygrad._kernels.tape.tape cimport INNER_BLOCK, ITEMWISE, READS, SCATTERS, WRITES, Entry, Touch

from cygrad._kernels.tape.tape import is_one


cdef list live(list entries):
    cdef Entry entry
    cdef Touch touch
    cdef set needed = set()
    cdef list kept = []
    for entry in reversed(entries):
        entry.is_live = (entry.is_check or entry.kind == "draw"
                         or entry.call is not None and (<Call>entry.call).must_run)
        for touch in entry.touches:
            if touch.block is not None and touch.mode & (WRITES | SCATTERS):
                if touch.block.slot >= 0 or touch.block.kind != INNER_BLOCK or touch.block in needed:
                    entry.is_live = True
        if entry.is_live:
            kept.append(entry)
            for touch in entry.touches:
                if touch.block is not None:
                    needed.add(touch.block)
    kept.reverse()
    return [each for each in kept if (<Entry>each).is_check] + [each for each in kept if not (<Entry>each).is_check]


cdef list without_products_with_one(list entries):
    cdef Entry entry
    cdef Touch touch, one, factor, out
    cdef Py_ssize_t i, end
    cdef dict writers = {}, readers = {}        # by block: (entry's number, touch), in order
    cdef set ones = set()
    cdef list seen
    for entry in entries:
        if entry.kind == "constant" and is_one(entry):
            ones.add((<Touch>entry.touches[0]).block)
    if not ones:
        return entries
    for i, entry in enumerate(entries):
        for touch in entry.touches:
            (writers if touch.mode & (WRITES | SCATTERS) else readers).setdefault(touch.block, []).append((i, touch))
    for i, entry in enumerate(entries):
        if entry.kind != "multiply" or len(entry.touches) != 3:
            continue
        out = entry.touches[2]
        one, factor = entry.touches[:2] if (<Touch>entry.touches[0]).block in ones else (entry.touches[1], entry.touches[0])
        if (one.block not in ones or one.block.writes != 1 or one.mode & ITEMWISE or factor.block is None
                or not factor.mode & out.mode & ITEMWISE or factor.low != factor.offset
                or out.block.kind != INNER_BLOCK or out.block.slot >= 0 or out.offset or out.low
                or out.high != factor.high - factor.low or writers[out.block][0][0] != i
                or any([k >= i for k, _ in writers.get(factor.block, ())])):
            continue
        end = len(entries)
        if len(writers[out.block]) > 1:         # often one of the readers works in place
            end, touch = writers[out.block][1]
            if touch.low or touch.high != out.high or not touch.mode & WRITES or touch.mode & READS:
                continue
        seen = [each for each in readers.get(out.block, ()) if each[0] <= end]
        if not all([(<Entry>entries[k]).part != NULL for k, _ in seen]):
            continue
        for _, touch in seen:
            touch.block = factor.block
            touch.offset += factor.offset
            touch.low += factor.low
            touch.high += factor.low
        entry.is_live = False
    return [each for each in entries if (<Entry>each).is_live]
