"""PyTorch's format before version 1.6: pickles in a row, and behind them the memory of the storages.

The pickles are a magic number, a version, facts about the machine, the object, and the keys of the storages. Behind
them follow, for each key, the number of elements in eight bytes and the elements.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import cygrad
from cygrad.serialization._memory import check_bools, elements, numpy_type
from cygrad.serialization._pickler import StoredMemory
from cygrad.serialization._rebuilding import StorageType, before_elements
from cygrad.serialization._storages import FileStorages, run
from cygrad.serialization._unpickler import end_of_pickle, unpickle

_NUMBER, _VERSION = 0x1950A86A20F9469CFC6C, 1001
MAGIC = pickle.dumps(_NUMBER, 2)  # what such a file begins with


def begins(head: bytes) -> bool:
    """Whether a file that begins with these bytes is of this format, with a pickle of any protocol."""
    return any(pickle.dumps(_NUMBER, protocol)[: len(head)] == head for protocol in range(2, 6))


def write(file: Any, program: bytes, storages: list[StoredMemory], protocol: int) -> None:
    """Write a pickle, made for this format, and its storages."""
    facts = {
        "protocol_version": _VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": struct.calcsize("l")},
    }
    for value in (_NUMBER, _VERSION, facts):
        file.write(pickle.dumps(value, protocol))
    file.write(program)
    ordered = sorted(storages, key=lambda storage: storage.key)
    file.write(pickle.dumps([storage.key for storage in ordered], protocol))
    for storage in ordered:
        file.write(struct.pack("<q", storage.persistent_id()[4]))
        file.write(storage.content().data)


def read(file: Any, called: str, map_location: Any, unpickler: Callable[[bytes, Callable], Any]) -> Any:
    """Return the object in a file. Raises RuntimeError if it is damaged."""
    start = file.tell()
    content = file.read()
    programs, place = [], 0
    for _ in range(5):
        end = end_of_pickle(content, place)
        programs.append(content[place:end])
        place = end
    number, version, facts, keys = (unpickle(programs[index], _no_storage) for index in (0, 1, 2, 4))
    if number != _NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version!r:.99}")
    if type(keys) is not list or not all(type(key) is str for key in keys):
        raise RuntimeError(f"{called} is damaged: its storages have no names")
    is_little = type(facts) is not dict or facts.get("little_endian") is not False
    storages = _Storages(len(content) - place, map_location, "<" if is_little else ">", called)
    with before_elements() as must_be_repeated:
        value = run(unpickler, programs[3], storages)
        is_repeated = must_be_repeated()
    end = start + place + storages.fill(memoryview(content)[place:], keys)
    if is_repeated:
        value = run(unpickler, programs[3], storages)
    file.seek(end)  # another object may follow
    return value


def _no_storage(*_: Any) -> Any:
    raise pickle.UnpicklingError("Weights only load failed. A storage is where none can be")


class _Storages(FileStorages):
    """Storages of zeros, of the lengths that the pickle states, until `fill` reads what is behind the pickles."""

    def __init__(self, most: int, map_location: Any, order: str, called: str) -> None:
        super().__init__(lambda key: bytearray(self._stated(key)), self._stated, map_location, order)
        self.left, self.called = most, called  # bytes that can follow, at most
        self.stated: dict[str, tuple[StorageType, int]] = {}
        self.views: dict[Any, Any] = {}

    def _stated(self, key: str) -> int:
        return self.stated[key][1]

    def load(self, kind: StorageType, key: str, location: str, length: int, view: Any = None) -> Any:
        if key not in self.stated:
            size = length * numpy_type(kind.dtype).itemsize
            if not 0 <= size <= self.left:
                raise RuntimeError(f"{self.called} is damaged: it is too short for storage {key!r:.99}")
            self.left -= size
            self.stated[key] = kind, size
        whole = super().load(kind, key, location, length)
        if view is None:
            return whole
        name, offset, size = view
        if type(name) is not str or type(offset) is not int or type(size) is not int or min(offset, size) < 0:
            raise TypeError("a part of a storage has no name, offset and size")
        if offset + size > len(whole):
            raise ValueError("a part of a storage is out of bounds")
        if name not in self.views:
            self.views[name] = cygrad.TypedStorage(whole._flat)
            self.views[name]._flat = whole._flat[offset : offset + size]  # storages are whole otherwise
        return self.views[name]

    def fill(self, content: memoryview, keys: list[str]) -> int:
        """Read the elements of all storages, and return how many bytes they take."""
        place = 0
        for key in keys:
            if key not in self.stated:
                raise RuntimeError(f"{self.called} is damaged: it lacks the storage {key!r:.99}")
            kind, size = self.stated[key]
            dtype = numpy_type(kind.dtype)
            count = int.from_bytes(content[place : place + 8], "little", signed=True)
            place += 8
            if count * dtype.itemsize != size or place + size > len(content):
                raise RuntimeError(f"{self.called} is damaged: it has another storage {key!r:.99} than its pickle says")
            if kind.dtype == "bool":
                check_bools(content[place : place + size], f"storage {key!r:.99}")
            if not self.without_data:
                vector = elements(content, place, count, dtype, self.order)
                self.loaded[key][0]._flat.copy_(cygrad.from_numpy(vector.copy().view(np.uint8)))
            place += size
        if self.stated.keys() - keys:
            raise RuntimeError(f"{self.called} is damaged: it lacks elements of its storages")
        return place
