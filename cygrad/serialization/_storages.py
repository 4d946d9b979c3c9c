"""The storages of a file that is being loaded, and the object that its pickle makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

import cygrad
from cygrad.serialization._locations import is_meta, restorer
from cygrad.serialization._memory import check_bools, elements, numpy_type
from cygrad.serialization._options import assumed_order, skips_data
from cygrad.serialization._rebuilding import FileBytes, StorageType
from cygrad.serialization._zip_reader import PyTorchFileReader


class FileStorages:
    """Loads storages on request, each once, to where `map_location` sends them.

    `bytes_of(key)` returns the memory of a storage, and `size_of(key)` its length in bytes; `order` is "<" or ">".
    """

    def __init__(self, bytes_of: Callable[[str], Any], size_of: Callable[[str], int], map_location: Any, order: str):
        self.bytes_of, self.size_of, self.order = bytes_of, size_of, order
        self.restore = restorer(map_location)
        self.without_data = "meta" if is_meta(map_location) else ("zero" if skips_data() else None)
        self.loaded: dict[str, tuple[Any, Any]] = {}  # storages, and what they were made of
        self.typed: dict[tuple[str, str], Any] = {}  # by key and storage class
        self.refused: Exception | None = None  # what the user's `map_location` raised

    def load(self, kind: StorageType, key: str, location: str, length: int) -> Any:
        """Return a storage as elements of a dtype. Raises RuntimeError if it has another length."""
        if (key, kind.name) in self.typed:
            return self.typed[key, kind.name]
        size, itemsize = self.size_of(key), numpy_type(kind.dtype).itemsize
        if length * itemsize != size:
            raise RuntimeError(
                f"storage {key!r} has {size} bytes, but should have {length} elements of type {kind.dtype}"
            )
        if key not in self.loaded:
            self.loaded[key] = self._moved(kind, key, location, size)
        storage, data = self.loaded[key]
        if kind.dtype == "bool" and data is not None:
            check_bools(data, f"storage {key!r}")
        flat = storage._flat.view(getattr(cygrad, kind.dtype))
        typed = FileBytes(flat, self.order) if kind.name == "UntypedStorage" else cygrad.TypedStorage(flat)
        self.typed[key, kind.name] = typed
        return typed

    def _moved(self, kind: StorageType, key: str, location: str, size: int) -> tuple[Any, Any]:
        data: Any = None
        if self.without_data:
            place = "meta" if self.without_data == "meta" else "cpu"
            storage = cygrad.UntypedStorage(cygrad.zeros(size, dtype=cygrad.uint8, device=place))
        else:
            data = self.bytes_of(key)
            array = elements(data, 0, size // numpy_type(kind.dtype).itemsize, numpy_type(kind.dtype), self.order)
            storage = cygrad.UntypedStorage(cygrad.from_numpy(array.view(np.uint8)))
        if self.without_data == "meta":
            return storage, None
        try:
            return self.restore(storage, location), data
        except Exception as error:
            self.refused = error
            raise


def read_archive(
    content: Any, called: str, map_location: Any, is_mapped: bool, unpickle: Callable[[bytes, Callable], Any]
) -> Any:
    """Return the object in a zip file's content; with `is_mapped`, mapped memory, its tensors share this memory.

    `unpickle(program, load_storage)` runs its pickle.
    """
    reader = PyTorchFileReader.of(content, called)
    if reader.has_record("constants.pkl"):
        raise RuntimeError(
            f"{called} holds a TorchScript program, which cygrad does not run\n"
            "  with PyTorch, load it with torch.jit.load, and save its state_dict() with torch.save"
        )
    storages = FileStorages(
        lambda key: reader.record(f"data/{key}", is_mapped),
        lambda key: reader.get_record_size(f"data/{key}"),
        map_location,
        _order(reader),
    )
    return run(unpickle, bytes(reader.record("data.pkl", True)), storages)


def run(unpickle: Callable[[bytes, Callable], Any], program: bytes, storages: FileStorages) -> Any:
    """Run a pickle; what the user's `map_location` raised is raised as it is."""
    try:
        return unpickle(program, storages.load)
    except UnpicklingError:
        if storages.refused is not None:
            raise storages.refused from None
        raise


def _order(reader: PyTorchFileReader) -> str:
    if not reader.has_record("byteorder"):
        return assumed_order()
    order = reader.get_record("byteorder")
    if order not in (b"little", b"big"):
        raise ValueError(f"Unknown endianness type: {order.decode('ascii', 'replace')}")
    return "<" if order == b"little" else ">"
