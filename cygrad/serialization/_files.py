"""Replacing a file at once, and mapping one into memory."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file to write to, which takes the place of `path` at the end of the block.

    It is written beside the old one, brought to the disk and only then renamed, so that there is at any moment
    either the old file or the new one, whole. After an error in the block the old one stays.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # a device or a pipe is written to, never replaced
            yield file
        return
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    temporary = os.path.join(directory, f".cygrad-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            text = f"{error.strerror}: nothing was saved, and a file that was there before is as it was"
            raise OSError(error.errno, text, path) from error
        raise
    _bring_to_disk(directory)


def _bring_to_disk(directory: str) -> None:
    """Let the new name in a directory outlast a power failure."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where a directory cannot be opened
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def map_file(file: IO[bytes]) -> Any:
    """The content of an open file of at least a byte, as read-only memory."""
    from mmap import ACCESS_READ, mmap

    return mmap(file.fileno(), 0, access=ACCESS_READ)
