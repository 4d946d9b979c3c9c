"""Reads PyTorch's zip files: a pickle, `data.pkl`, and each storage's memory, uncompressed, as `data/0` and so on."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from typing import Any

from cygrad.serialization._files import map_file

_HEAD = 30  # length of a local header before the entry's name


class PyTorchFileReader:
    """The records of a zip file, a path or a file: uncompressed, within bounds, and not overlapping.

    Raises RuntimeError for a damaged file, and for one that `torch.save` did not write.

    >>> import cygrad
    >>> import io
    >>> file = io.BytesIO()
    >>> cygrad.save({"a": 1}, file)
    >>> cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).get_all_records()[:1]
    ['data.pkl']
    """

    def __init__(self, file: Any) -> None:
        if isinstance(file, (str, os.PathLike)):
            with open(file, "rb") as opened:
                content, self.called = map_file(opened, False), f"the file {os.fspath(file)!r}"
        else:
            content, self.called = file.read(), "this file"
        self._open(content)

    @classmethod
    def of(cls, content: Any, called: str) -> PyTorchFileReader:
        """Return the reader of a file's content, bytes or mapped memory.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> cygrad.PyTorchFileReader.of(file.getvalue(), "the file").has_record("data/0")
        True
        """
        reader = cls.__new__(cls)
        reader.called = called
        reader._open(content)
        return reader

    def _open(self, content: Any) -> None:
        self.content, called = content, self.called
        try:
            with zipfile.ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as opened:
                entries = opened.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory. This is an internal "
                "miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is "
                "corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or "
                "the file was modified after saving.\n"
                f"  {called} is damaged, perhaps incompletely written ({error})"
            ) from None
        self.root = _root_of([entry.filename for entry in entries], called)
        self.entries = {entry.filename.removeprefix(f"{self.root}/"): entry for entry in entries}
        if len(self.entries) < len(entries) or sum(entry.compress_size for entry in entries) > len(content):
            raise RuntimeError(f"{called} is damaged: its entries overlap")

    def archive_name(self) -> str:
        """Return the folder of all records in the file.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save({"a": 1}, file)
        >>> cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).archive_name()
        'archive'
        """
        return self.root

    def get_all_records(self) -> list[str]:
        """Return the names of all records.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> "data/0" in cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).get_all_records()
        True
        """
        return list(self.entries)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> reader = cygrad.PyTorchFileReader(io.BytesIO(file.getvalue()))
        >>> reader.has_record("data/0"), reader.has_record("data/1")
        (True, False)
        """
        return name in self.entries

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record, verified against its checksum.

        Raises RuntimeError if there is no such record.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> int(cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).get_record("version"))
        3
        """
        return bytes(self.record(name, False))

    def get_record_size(self, name: str) -> int:
        """Return the length of a record in bytes.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).get_record_size("data/0")
        8
        """
        return self._entry(name).file_size

    def get_record_header_offset(self, name: str) -> int:
        """Return the place of a record's header in the file.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> reader = cygrad.PyTorchFileReader(io.BytesIO(file.getvalue()))
        >>> reader.get_record_header_offset("data/0") < reader.get_record_offset("data/0")
        True
        """
        return self._entry(name).header_offset

    def get_record_offset(self, name: str) -> int:
        """Return the place of a record's first byte in the file.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> start = cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).get_record_offset("data/0")
        >>> file.getvalue()[start : start + 8] == cygrad.ones(2).numpy().tobytes()
        True
        """
        return self._place(name)[0]

    def serialization_id(self) -> str:
        """Return the identification of the file, or nothing if it has none.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> len(cygrad.PyTorchFileReader(io.BytesIO(file.getvalue())).serialization_id())
        40
        """
        return (
            self.get_record(".data/serialization_id").decode("ascii", "replace")
            if self.has_record(".data/serialization_id")
            else ""
        )

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self.entries.get(name)
        if entry is None:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found\n"
                f"  {self.called} is damaged: it lacks the record {name!r}"
            )
        return entry

    def _place(self, name: str) -> tuple[int, int]:
        """Return where a record begins and ends."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise RuntimeError(f"{self.called} is not from torch.save: record {name!r} is compressed or encrypted")
        start = entry.header_offset
        head = self.content[start : start + _HEAD]
        start += _HEAD + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        end = start + entry.file_size
        if entry.header_offset < 0 or head[:4] != b"PK\3\4" or end > len(self.content) or end < start:
            raise RuntimeError(f"{self.called} is damaged: record {name!r} is not where it should be")
        return start, end

    def record(self, name: str, is_shared: bool) -> Any:
        """Return the bytes of a record: shared memory, or a copy verified against its checksum.

        >>> import cygrad
        >>> import io
        >>> file = io.BytesIO()
        >>> cygrad.save(cygrad.ones(2), file)
        >>> reader = cygrad.PyTorchFileReader.of(file.getvalue(), "the file")
        >>> bytes(reader.record("data/0", is_shared=False)) == cygrad.ones(2).numpy().tobytes()
        True
        """
        start, end = self._place(name)
        shared = memoryview(self.content)[start:end]
        if is_shared:
            return shared
        if zlib.crc32(shared) != self._entry(name).CRC:
            raise RuntimeError(f"{self.called} is damaged: record {name!r} does not match its checksum")
        return bytearray(shared)


def _root_of(names: list[str], called: str) -> str:
    """Return the folder of all records: that of `data.pkl`, or the only one in an archive without."""
    roots = {name.removesuffix("/data.pkl") for name in names if name.endswith("/data.pkl")}
    roots = roots or {name.partition("/")[0] for name in names if "/" in name}
    if len(roots) != 1:
        raise RuntimeError(f"{called} is a zip file, but not one of torch.save: it has {len(roots)} folders of records")
    return roots.pop()
