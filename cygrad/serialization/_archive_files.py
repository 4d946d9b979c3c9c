"""Archives as context managers, and how to recognise them, under PyTorch's private names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygrad.serialization._zip_reader import PyTorchFileReader
from cygrad.serialization._zip_writer import PyTorchFileWriter

_HEAD = b"PK\3\4"  # of the first record


def _is_zipfile(f: Any) -> bool:
    """Whether an open file has an archive at its position, which stays as it is."""
    start = f.tell()
    head = f.read(len(_HEAD))
    f.seek(start)
    return bool(head == _HEAD)


@contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    """Have the block read the records of a path or a file."""
    yield PyTorchFileReader(name_or_buffer)


@contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    """Have the block write records to a path or a file, which is complete after the block."""
    writer = PyTorchFileWriter(name_or_buffer)
    try:
        yield writer
    finally:
        writer.write_end_of_file()
