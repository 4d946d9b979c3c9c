"""Replacing a file at once, and mapping one into memory."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file to write to, which takes the place of `path` at the end of the block.

    It is written beside the old one, brought to the disk and only then renamed, so that there is at any moment
    either the old file or the new one, whole. After an error in the block the old one stays. Where files can be
    without a name, as on Linux, the new one has none while it is written: a program that is killed leaves nothing.
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
    unnamed = _open_unnamed(directory)
    try:
        with open(temporary, "xb") if unnamed is None else open(unnamed, "wb") as file:
            if os.path.exists(target):
                os.chmod(temporary if unnamed is None else unnamed, stat.S_IMODE(os.stat(target).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            if unnamed is not None:  # `src_dir_fd` is there only to have `linkat` called, which follows the link
                os.link(_DESCRIPTORS + str(unnamed), temporary, src_dir_fd=unnamed, follow_symlinks=True)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            text = f"{error.strerror}: nothing was saved, and a file that was there before is as it was"
            raise OSError(error.errno, text, path) from error
        raise
    _bring_to_disk(directory)


_DESCRIPTORS = "/proc/self/fd/"


def _open_unnamed(directory: str) -> int | None:
    """The descriptor of a new file in a directory that has no name yet; None where that cannot be."""
    if not (hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS)):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:  # of file systems that lack it, and of directories where there can be no other file either
        return None


def _bring_to_disk(directory: str) -> None:
    """Let the new name in a directory outlast a power failure."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where a directory cannot be opened
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def map_file(file: IO[bytes], is_changed: bool = True) -> Any:
    """The content of an open file of at least a byte, as memory that can be changed; the file stays as it is.

    It is read-only unless `is_changed`, and where there is not as much memory as copies of all of it would take.
    """
    from mmap import ACCESS_COPY, ACCESS_READ, mmap

    if is_changed:
        try:
            return mmap(file.fileno(), 0, access=ACCESS_COPY)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
    return mmap(file.fileno(), 0, access=ACCESS_READ)
