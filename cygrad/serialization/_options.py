"""Settings of saving and loading: byte order, checksums, memory mapping, files without data."""

from __future__ import annotations

import mmap
import sys
import threading
from enum import Enum
from typing import Any

MAP_PRIVATE: Any = getattr(mmap, "MAP_PRIVATE", None)  # Windows has neither
MAP_SHARED: Any = getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(Enum):
    """The byte order of files that do not state one.

    >>> import cygrad
    >>> [order.name for order in cygrad.serialization.LoadEndianness]
    ['NATIVE', 'LITTLE', 'BIG']
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3

    @property
    def order(self) -> str:
        """NumPy's sign for this byte order."""
        if self is LoadEndianness.NATIVE:
            return "<" if sys.byteorder == "little" else ">"
        return "<" if self is LoadEndianness.LITTLE else ">"


class _Settings:
    endianness: LoadEndianness | None = None
    computes_checksums = True
    mmap_flags = MAP_PRIVATE


class _OfThread(threading.local):
    skips_data = False


_settings, _of_thread = _Settings(), _OfThread()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the byte order of files that do not state one; None stands for little-endian.

    >>> import cygrad
    >>> print(cygrad.serialization.get_default_load_endianness())
    None
    """
    return _settings.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not state one. Raises TypeError if it is not a `LoadEndianness` or None.

    >>> from cygrad.serialization import LoadEndianness, get_default_load_endianness, set_default_load_endianness
    >>> set_default_load_endianness(LoadEndianness.BIG)
    >>> get_default_load_endianness().name
    'BIG'
    >>> set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _settings.endianness = endianness


def assumed_order() -> str:
    """Return NumPy's sign for the byte order of files that do not state one."""
    return (_settings.endianness or LoadEndianness.LITTLE).order


def get_crc32_options() -> bool:
    """Return whether `save` computes the checksums of records.

    >>> import cygrad
    >>> cygrad.serialization.get_crc32_options()
    True
    """
    return _settings.computes_checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes the checksums of records: without them it is faster, but readers such as ours and
    `unzip`, which verify them, refuse the file, unless it is mapped.

    >>> import cygrad
    >>> cygrad.serialization.set_crc32_options(False)
    >>> cygrad.serialization.get_crc32_options()
    False
    >>> cygrad.serialization.set_crc32_options(True)
    """
    _settings.computes_checksums = compute_crc32


def get_default_mmap_options() -> int | None:
    """Return how `load(mmap=True)` maps files: `mmap.MAP_PRIVATE`, the default, or `mmap.MAP_SHARED`.

    >>> import cygrad
    >>> import mmap
    >>> cygrad.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return _settings.mmap_flags


class set_default_mmap_options:
    """Set how `load(mmap=True)` maps files, until the end of the block if used as a context manager.

    `mmap.MAP_PRIVATE` keeps changes of tensors from the file; `mmap.MAP_SHARED` writes them to it.

    >>> import cygrad, mmap
    >>> with cygrad.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     cygrad.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if MAP_SHARED is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev = _settings.mmap_flags
        _settings.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _settings.mmap_flags = self.prev


class skip_data:
    """Within the block, `save` leaves the memory of storages empty, and `load` leaves it out: both in this thread.

    A saved file has its full length, with zeros in the place of elements, which can be written there later. Loaded
    tensors have the right shapes, and zeros. `materialize_fake_tensors` has no effect.

    >>> import cygrad
    >>> import io
    >>> file = io.BytesIO()
    >>> with cygrad.serialization.skip_data():
    ...     cygrad.save({"x": cygrad.ones(2)}, file)
    >>> size = file.seek(0)
    >>> cygrad.load(file)["x"].shape
    torch.Size([2])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = _of_thread.skips_data
        _of_thread.skips_data = True

    def __exit__(self, *error: Any) -> None:
        _of_thread.skips_data = self._before


def skips_data() -> bool:
    """Whether this thread is in a block of `skip_data`."""
    return _of_thread.skips_data
