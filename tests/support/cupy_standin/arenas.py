"""How CuPy's pool cuts the driver's memory into chunks, without memory: which sizes it asks for, and what it keeps.

A chunk that is freed joins free neighbors. The smallest free chunk that is large enough is taken, and what it has too
much is cut off. The free chunks of each stream are apart. Only whole allocations go back to the driver.
"""

import bisect
import threading
from collections import deque


class Chunk:
    """A part of an allocation, between its neighbors."""

    __slots__ = ("size", "stream", "before", "after")

    def __init__(self, size, stream, before=None, after=None):
        self.size, self.stream, self.before, self.after = size, stream, before, after

    @property
    def is_whole(self):
        return self.before is None and self.after is None


class Arenas:
    """The chunks of one device."""

    def __init__(self):
        self._total = self._used = 0
        self._lock = threading.RLock()
        self._freed = deque()  # by finalizers, which may run in the midst of anything
        self._free = {}  # by stream: (sorted sizes of free chunks, the chunks by size)

    @property
    def total(self):
        """The size of all allocations."""
        return self._total

    @property
    def used(self):
        """The size of the chunks in use."""
        with self._lock:
            self._settle()
            return self._used

    def take(self, size, stream):
        """Return a free chunk of this size, or None."""
        with self._lock:
            self._settle()
            return self._taken(size, stream)

    def grow(self, size, stream):
        """Return a chunk that is a new allocation."""
        with self._lock:
            self._total += size
            self._used += size
            return Chunk(size, stream)

    def give_back(self, chunk):
        """Free a chunk."""
        self._freed.append(chunk)

    def release(self):
        """Give free allocations back to the driver."""
        with self._lock:
            self._settle()
            for sizes, by_size in self._free.values():
                for size in list(sizes):
                    for chunk in [chunk for chunk in by_size[size] if chunk.is_whole]:
                        self._remove(chunk)
                        self._total -= size

    def _settle(self):
        while self._freed:
            self._join_free(self._freed.popleft())

    def _taken(self, size, stream):
        sizes, by_size = self._free.get(stream, ((), {}))
        i = bisect.bisect_left(sizes, size)
        if i == len(sizes):
            return None
        chunk = by_size[sizes[i]][-1]
        self._remove(chunk)
        if chunk.size > size:
            left = Chunk(chunk.size - size, stream, chunk, chunk.after)
            if chunk.after is not None:
                chunk.after.before = left
            chunk.size, chunk.after = size, left
            self._add(left)
        self._used += size
        return chunk

    def _join_free(self, chunk):
        self._used -= chunk.size
        if chunk.after is not None and self._is_free(chunk.after):
            self._join(chunk, chunk.after)
        if chunk.before is not None and self._is_free(chunk.before):
            chunk = self._join(chunk.before, chunk, chunk.before)
        self._add(chunk)

    def _is_free(self, chunk):
        return chunk in self._free.get(chunk.stream, ((), {}))[1].get(chunk.size, ())

    def _join(self, first, second, free=None):
        self._remove(free or second)
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first

    def _add(self, chunk):
        sizes, by_size = self._free.setdefault(chunk.stream, ([], {}))
        if chunk.size not in by_size:
            bisect.insort(sizes, chunk.size)
        by_size.setdefault(chunk.size, []).append(chunk)

    def _remove(self, chunk):
        sizes, by_size = self._free[chunk.stream]
        chunks = by_size[chunk.size]
        chunks.remove(chunk)
        if not chunks:
            del by_size[chunk.size]
            sizes.remove(chunk.size)
