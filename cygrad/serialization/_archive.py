"""PyTorch's zip files: a pickle, `data.pkl`, and each storage's memory, uncompressed, as `data/0` and so on."""

from __future__ import annotations

import io
import zipfile
import zlib
from pickle import UnpicklingError
from typing import Any

import numpy as np

from cygrad.serialization._locations import Place, place_wanted, placed
from cygrad.serialization._memory import elements, numpy_type
from cygrad.serialization._unpickler import unpickle

_HEAD = 30  # length of a local header before the entry's name


def read_archive(content: Any, called: str, map_location: Any, is_mapped: bool) -> Any:
    """Return the object in the bytes or mapped memory `content`; with `is_mapped` its tensors share this memory."""
    archive = _Archive(content, called)
    storages: dict[str, Storage] = {}
    refused: list[Exception] = []

    def load_storage(kind: str, key: str, location: str, length: int) -> Storage:
        if key not in storages:
            record = archive.record(f"data/{key}", is_mapped)
            storages[key] = storage = Storage(key, record, archive.order)
            try:
                storage.gpu = place_wanted(map_location, storage, location)
            except Exception as error:
                refused.append(error)
                raise
        return storages[key].of_type(kind, length)

    try:
        return unpickle(bytes(archive.record("data.pkl", True)), load_storage)
    except UnpicklingError:
        if refused:  # the user's `map_location` function failed, not the file
            raise refused[0] from None
        raise


class Storage(Place):
    """Memory shared by tensors of a file."""

    def __init__(self, key: str, data: Any, order: str) -> None:
        self.key, self.data, self.order = key, data, order
        self.vectors: dict[str, np.ndarray] = {}
        self.moved: dict[str, Any] = {}

    def of_type(self, kind: str, length: int) -> Storage:
        """Return this storage after checking that it has `length` elements. Raises RuntimeError otherwise."""
        if length * numpy_type(kind).itemsize != len(self.data):
            raise RuntimeError(
                f"storage {self.key!r} has {len(self.data)} bytes, but should have {length} elements of type {kind}"
            )
        return self

    def vector(self, kind: str) -> np.ndarray:
        """Return all elements."""
        if kind not in self.vectors:
            dtype = numpy_type(kind)
            count = len(self.data) // dtype.itemsize
            self.vectors[kind] = elements(self.data, 0, count, dtype, f"storage {self.key!r}", self.order)
        return self.vectors[kind]

    def on_gpu(self, kind: str) -> Any:
        """Return all elements, on the storage's GPU."""
        if kind not in self.moved:
            self.moved[kind] = placed(self.vector(kind), self.gpu)
        return self.moved[kind]


class _Archive:
    """The entries of a zip file: uncompressed, within bounds, and not overlapping."""

    def __init__(self, content: Any, called: str) -> None:
        self.content, self.called = content, called
        try:
            with zipfile.ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as opened:
                entries = opened.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory\n"
                f"  {called} is damaged, perhaps incompletely written ({error})"
            ) from None
        roots = [entry.filename.removesuffix("/data.pkl") for entry in entries if entry.filename.endswith("/data.pkl")]
        if len(roots) != 1:
            raise RuntimeError(f"{called} is a zip file, but not one of torch.save: it has {len(roots)} data.pkl")
        self.entries = {entry.filename.removeprefix(f"{roots[0]}/"): entry for entry in entries}
        if "constants.pkl" in self.entries:
            raise RuntimeError(
                f"{called} holds a TorchScript program, which cygrad does not run\n"
                "  load it with torch.jit.load, and save its state_dict() with torch.save"
            )
        if len(self.entries) < len(entries) or sum(entry.compress_size for entry in entries) > len(content):
            raise RuntimeError(f"{called} is damaged: its entries overlap")
        self.order = "<"
        if "byteorder" in self.entries:
            order = bytes(self.record("byteorder", True))
            if order not in (b"little", b"big"):
                raise RuntimeError(f"Invalid endianness type: {order!r}")
            self.order = "<" if order == b"little" else ">"

    def record(self, name: str, is_shared: bool) -> Any:
        """Return the bytes of an entry: shared memory, or a copy verified against its checksum."""
        entry = self.entries.get(name)
        if entry is None:
            raise RuntimeError(f"{self.called} is damaged: it lacks the record {name!r}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise RuntimeError(f"{self.called} is not from torch.save: record {name!r} is compressed or encrypted")
        start = entry.header_offset
        head = self.content[start : start + _HEAD]
        start += _HEAD + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        end = start + entry.file_size
        if entry.header_offset < 0 or head[:4] != b"PK\3\4" or end > len(self.content) or end < start:
            raise RuntimeError(f"{self.called} is damaged: record {name!r} is not where it should be")
        shared = memoryview(self.content)[start:end]
        if is_shared:
            return shared
        if zlib.crc32(shared) != entry.CRC:
            raise RuntimeError(f"{self.called} is damaged: record {name!r} does not match its checksum")
        return bytearray(shared)
