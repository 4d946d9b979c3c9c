"""Atomic file replacement and memory mapping."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import IO, Any

from cygrad.serialization._options import MAP_SHARED, get_default_mmap_options

# Windows refuses to replace a file that is mapped: `save` to the path of a `load` would fail.
MAPPED_FILES_CAN_BE_REPLACED = os.name != "nt"


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a new file for writing that replaces `path` at the end of the block.

    It is written next to the old one, flushed to disk and only then renamed, so that at any moment either the old or
    the new file exists in full. After an error in the block the old one remains. Where the system supports unnamed
    files, as Linux does, the new file has no name while it is written: a killed program leaves nothing behind.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # devices and pipes are written to directly, never replaced
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
            if unnamed is not None:  # passing `src_dir_fd` forces a call of `linkat`, which can follow the link
                os.link(_DESCRIPTORS + str(unnamed), temporary, src_dir_fd=unnamed, follow_symlinks=True)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            text = f"{error.strerror}: nothing was saved, and an existing file is unchanged"
            raise OSError(error.errno, text, path) from error
        raise
    _bring_to_disk(directory)


_DESCRIPTORS = "/proc/self/fd/"


def _open_unnamed(directory: str) -> int | None:
    """Open a new unnamed file in a directory and return its descriptor; None if unsupported."""
    if not (hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS)):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:  # unsupported by the file system, or no file can be created in the directory
        return None


def _bring_to_disk(directory: str) -> None:
    """Flush a directory, so that a new name in it survives a power failure."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where a directory cannot be opened
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def map_file(file: IO[bytes], is_changed: bool = True, path: Any = None) -> Any:
    """Map an open, nonempty file into writable memory with copy-on-write; the file itself does not change.

    The mapping is read-only unless `is_changed`, and if there is not enough memory to back copies of all pages. Where
    `set_default_mmap_options(MAP_SHARED)` holds, changes go to the file at `path`.
    """
    from mmap import ACCESS_COPY, ACCESS_READ, ACCESS_WRITE, mmap  # needed only for mapped files

    if is_changed and path is not None and MAP_SHARED is not None and get_default_mmap_options() == MAP_SHARED:
        with open(path, "r+b") as writable:
            return mmap(writable.fileno(), 0, access=ACCESS_WRITE)
    if is_changed:
        try:
            return mmap(file.fileno(), 0, access=ACCESS_COPY)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
    return mmap(file.fileno(), 0, access=ACCESS_READ)
