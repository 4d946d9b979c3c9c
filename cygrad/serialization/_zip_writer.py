"""Writes PyTorch's zip files: uncompressed records, the memory of each storage at a multiple of 64 bytes.

The layout is that of PyTorch's own writer, byte for byte: no times, checksum and sizes behind the content, padding in
the extra field of the local header, and a directory in the form for files above 4 GiB.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any

_LARGE = 0xFFFFFFFF  # sizes and offsets from here on have eight bytes
_UTF8, _SIZES_FOLLOW = 0x800, 0x8
_FORMAT = b"3\n"  # the version of the whole layout


class PyTorchFileWriter:
    """Writes records to `file`, a path or an object with `write`: `write_record`, and at the end `write_end_of_file`.

    The memory of a record begins at a multiple of `storage_alignment`. Without `compute_crc32` the checksums are those
    of empty records, which readers that verify them refuse.

    >>> import cygrad
    >>> import io, zipfile
    >>> file = io.BytesIO()
    >>> writer = cygrad.PyTorchFileWriter(file)
    >>> writer.write_record("text", b"hello", 5)
    >>> writer.write_end_of_file()
    >>> zipfile.ZipFile(file).read("archive/text")
    b'hello'
    """

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        is_path = isinstance(file, (str, os.PathLike))
        self._file = open(file, "wb") if is_path else file
        self._closes = is_path
        self.root = root_of(file if is_path else None)
        self._computes_checksums, self._alignment = compute_crc32, storage_alignment
        self._position = 0
        self._directory: list[bytes] = []
        self._names: dict[str, int] = {}  # with the checksums
        self._version = _FORMAT

    def archive_name(self) -> str:
        """Return the folder of all records in the file.

        >>> import cygrad
        >>> import io
        >>> cygrad.PyTorchFileWriter(io.BytesIO()).archive_name()
        'archive'
        """
        return self.root

    def get_all_written_records(self) -> set[str]:
        """Return the names of the records written so far.

        >>> import cygrad
        >>> import io
        >>> writer = cygrad.PyTorchFileWriter(io.BytesIO())
        >>> writer.write_record("text", b"hello")
        >>> writer.get_all_written_records()
        {'text'}
        """
        return set(self._names)

    def set_min_version(self, version: int) -> None:
        """Raise the version of the layout that readers must know.

        >>> import cygrad
        >>> import io, zipfile
        >>> file = io.BytesIO()
        >>> writer = cygrad.PyTorchFileWriter(file)
        >>> writer.set_min_version(6)
        >>> writer.write_end_of_file()
        >>> int(zipfile.ZipFile(file).read("archive/version"))
        6
        """
        self._version = b"%d\n" % max(version, int(self._version))

    def serialization_id(self) -> str:
        """Return forty digits that depend on the names and contents of all records.

        >>> import cygrad
        >>> import io
        >>> len(cygrad.PyTorchFileWriter(io.BytesIO()).serialization_id())
        40
        """
        names = zlib.crc32("\0".join(self._names).encode())
        content = zlib.crc32(struct.pack(f"<{len(self._names)}L", *self._names.values()))
        return f"{names:020d}{content:020d}"

    def write_record(self, name: str, data: Any, size: int | None = None) -> None:
        """Write bytes (or a text, as ASCII) under a name; `size` leaves out what follows.

        >>> import cygrad
        >>> import io, zipfile
        >>> file = io.BytesIO()
        >>> writer = cygrad.PyTorchFileWriter(file)
        >>> writer.write_record("text", b"hello world", 5)
        >>> writer.write_end_of_file()
        >>> zipfile.ZipFile(file).read("archive/text")
        b'hello'
        """
        content = memoryview(data.encode("ascii") if isinstance(data, str) else data).cast("B")
        content = content if size is None else content[:size]
        checksum = zlib.crc32(content) if self._computes_checksums else 0
        entry = self._begin(name, len(content))
        self._write(content)
        self._end(name, len(content), checksum, *entry)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Write zeros in the place of a record of `size` bytes, to be filled in later.

        >>> import cygrad
        >>> import io, zipfile
        >>> file = io.BytesIO()
        >>> writer = cygrad.PyTorchFileWriter(file)
        >>> writer.write_record_metadata("later", 3)
        >>> writer.write_end_of_file()
        >>> zipfile.ZipFile(file).getinfo("archive/later").file_size
        3
        """
        entry, checksum, zeros = self._begin(name, size), 0, bytes(min(size, 1 << 20))
        for begin in range(0, size, len(zeros) or 1):
            part = zeros[: size - begin]
            checksum = zlib.crc32(part, checksum)
            self._write(part)
        self._end(name, size, checksum, *entry)

    def write_end_of_file(self) -> None:
        """Write the version and the directory; the file is complete then.

        >>> import cygrad
        >>> import io, zipfile
        >>> file = io.BytesIO()
        >>> writer = cygrad.PyTorchFileWriter(file)
        >>> writer.write_end_of_file()
        >>> "archive/version" in zipfile.ZipFile(file).namelist()
        True
        """
        self.write_record("version", self._version)
        self.write_record(".data/serialization_id", self.serialization_id())
        start, count = self._position, len(self._directory)
        for entry in self._directory:
            self._write(entry)
        end = self._position
        self._write(struct.pack("<4sQHHLLQQQQ", b"PK\6\6", 44, 0x031E, 45, 0, 0, count, count, end - start, start))
        self._write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        counts = (min(count, 0xFFFF),) * 2
        self._write(struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, *counts, *map(_short, (end - start, start)), 0))
        if self._closes:
            self._file.close()

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._position += len(data)

    def _begin(self, name: str, size: int) -> tuple[bytes, int, int]:
        """Write the local header of a record."""
        if name in self._names:
            raise RuntimeError(f"[enforce fail] Tried to serialize file twice: {name}")
        full, offset = f"{self.root}/{name}".encode(), self._position
        flags = _UTF8 | (_SIZES_FOLLOW if size else 0)
        extra = _large_fields([size, size] if size >= _LARGE else [])
        behind = -(offset + 30 + len(full) + len(extra) + 4) % self._alignment
        extra += struct.pack("<2sH", b"FB", behind) + b"Z" * behind
        sizes = (_LARGE, _LARGE) if size >= _LARGE else (0, 0)
        header = struct.pack("<4sHHHHHLLLHH", b"PK\3\4", 0, flags, 0, 0, 0, 0, *sizes, len(full), len(extra))
        self._write(header + full + extra)
        return full, offset, flags

    def _end(self, name: str, size: int, checksum: int, full: bytes, offset: int, flags: int) -> None:
        """Write the sizes behind a record, and note it for the directory."""
        if size:
            form = "<4sLQQ" if max(size, offset) >= _LARGE else "<4sLLL"
            self._write(struct.pack(form, b"PK\7\b", checksum, size, size))
        self._names[name] = checksum
        extra = _large_fields([value for value in (size, size, offset) if value >= _LARGE])
        sizes = (*map(_short, (size, size)), len(full), len(extra), 0, 0, 0, 0, _short(offset))
        head = struct.pack("<4sHHHHHHLLLHHHHHLL", b"PK\1\2", 0, 0, flags, 0, 0, 0, checksum, *sizes)
        self._directory.append(head + full + extra)


def root_of(path: Any) -> str:
    """Return the name of the folder in a file: the file's own name without its ending."""
    name = "" if path is None else os.path.splitext(os.path.basename(os.fspath(path)))[0]
    return name if name and name.isascii() else "archive"


def _short(value: int) -> int:
    return min(value, _LARGE)


def _large_fields(values: list[int]) -> bytes:
    """Return the extra field for values that do not fit into four bytes."""
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values) if values else b""
