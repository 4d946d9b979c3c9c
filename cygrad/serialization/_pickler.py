"""Pickles objects as PyTorch does: tensors as views of storages, whose memory is written apart from the pickle.

Note [Storages]
---------------
Each storage is a range of memory (`cygrad._ops.shape.memory_ranges`). A tensor takes the range of its base, or an
earlier one of the same owner that contains it. If a later tensor needs more than an earlier one had, the object is
pickled again with the wider ranges; this takes tensors that lost sight of their base, as by `x[2:4].detach()`. Tensors
whose memory cannot be used as it is are written from a contiguous copy.
"""

from __future__ import annotations

import io
import pickle
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.registry.wrappers import is_wrapper
from cygrad._ops.shape.memory_ranges import MemoryRange, bytes_in, memory_range, offset_in, shows_other_sign
from cygrad.nn.modules._module.exchange import to_torch
from cygrad.serialization import _rebuilding as rebuilding
from cygrad.serialization._locations import location_of
from cygrad.serialization._names import of_torch
from cygrad.utils.hooks import warn_if_has_hooks


class StoredMemory:
    """A storage to be written: `key` is its name in the file."""

    def __init__(self, key: str, memory: MemoryRange, kind: rebuilding.StorageType, location: str) -> None:
        self.key, self.memory, self.kind, self.location = key, memory, kind, location

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self.memory.end - self.memory.first

    def content(self) -> np.ndarray:
        """Return the bytes."""
        return bytes_in(self.memory) if self.nbytes else np.empty(0, np.uint8)

    def persistent_id(self) -> tuple:
        """Return what the pickle says of this storage."""
        return "storage", self.kind, self.key, self.location, self.nbytes // _itemsize(self.kind)


def _itemsize(kind: rebuilding.StorageType) -> int:
    return getattr(cygrad, kind.dtype).itemsize


class Storages:
    """The storages of one pickle, in the order in which they were met."""

    def __init__(self, wider: dict[int, list[MemoryRange]] | None = None) -> None:
        self.all: list[StoredMemory] = []
        # By the identities of owners: the storages in the order of memory, and the places where they begin.
        self.of_owner: dict[int, tuple[list[int], list[StoredMemory]]] = {}
        self.wider = wider or {}
        self.needs_more: list[MemoryRange] = []

    def of(self, tensor: Tensor, kind: rebuilding.StorageType) -> tuple[StoredMemory, int, tuple[int, ...]]:
        """Return the storage for a tensor, and its offset and strides there."""
        memory = memory_range(tensor)
        if memory is None:
            tensor = cygrad.empty_like(tensor, memory_format=cygrad.contiguous_format).copy_(tensor.detach())
            memory = memory_range(tensor)
        found = self._find(memory)
        if found is None:
            found = self._add(memory, kind, location_of(tensor))
        elif found.kind != kind:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types\n"
                f"  a storage is used as {found.kind.name} and as {kind.name}: save one of the two, or a clone()"
            )
        return found, offset_in(tensor, found.memory), tensor.stride()

    def _find(self, memory: MemoryRange) -> StoredMemory | None:
        """Return the known storage that holds a range, or the first of those that hold a part of it."""
        first_places, known = self.of_owner.get(id(memory.owner), ((), ()))
        place = max(bisect_right(first_places, memory.first) - 1, 0)
        parts = []
        while place < len(known) and first_places[place] < memory.end:
            if memory.first < known[place].memory.end:
                parts.append(known[place])
            place += 1
        if not parts:
            return None
        if memory.first < parts[0].memory.first or parts[-1].memory.end < memory.end or len(parts) > 1:
            self.needs_more += [memory, *(each.memory for each in parts)]
        return parts[0]

    def _add(self, memory: MemoryRange, kind: rebuilding.StorageType, location: str) -> StoredMemory:
        for wide in self.wider.get(id(memory.owner), ()):
            if wide.first <= memory.first and memory.end <= wide.end:
                memory = wide
        new = StoredMemory(str(len(self.all)), memory, kind, location)
        self.all.append(new)
        if new.nbytes:
            first_places, known = self.of_owner.setdefault(id(memory.owner), ([], []))
            place = bisect_right(first_places, memory.first)
            first_places.insert(place, memory.first)
            known.insert(place, new)
        return new

    def widened(self) -> dict[int, list[MemoryRange]] | None:
        """Return the ranges to begin with, if more was needed than the first tensors had."""
        if not self.needs_more:
            return None
        ranges: dict[int, list[MemoryRange]] = {owner: list(known) for owner, known in self.wider.items()}
        for memory in self.needs_more:
            ranges.setdefault(id(memory.owner), []).append(memory)
        return {owner: _united(each) for owner, each in ranges.items()}


def _united(ranges: list[MemoryRange]) -> list[MemoryRange]:
    """Unite ranges of one owner that overlap."""
    united: list[MemoryRange] = []
    for each in sorted(ranges, key=lambda memory: memory.first):
        if united and each.first < united[-1].end:
            united[-1] = united[-1]._replace(end=max(united[-1].end, each.end))
        else:
            united.append(each)
    return united


# -- What tensors and others are written as --


def _plain(tensor: Tensor, storages: Storages) -> tuple[Callable, tuple]:
    """Return how to rebuild a tensor, apart from its class and attributes."""
    warn_if_has_hooks(tensor)
    if is_wrapper(tensor):
        outline = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.layout
        return rebuilding._rebuild_wrapper_subclass, (type(tensor), *outline, tensor.device, tensor.requires_grad)
    if tensor.is_meta:
        layout = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
        return rebuilding._rebuild_meta_tensor_no_storage, layout
    name = str(tensor.dtype).removeprefix("torch.")
    kind = rebuilding.BY_DTYPE.get(name)
    storage, offset, strides = storages.of(tensor, kind or rebuilding.STORAGES["UntypedStorage"])
    arguments: tuple = (storage, offset, tuple(tensor.shape), strides, tensor.requires_grad, OrderedDict())
    if kind is None:
        arguments = (*arguments, tensor.dtype)
    if shows_other_sign(tensor):
        arguments = (*arguments, {"conj" if tensor.dtype.is_complex else "neg": True})
    return rebuilding._rebuild_tensor_v2 if kind else rebuilding._rebuild_tensor_v3, arguments


def _tensor(tensor: Any, storages: Storages) -> tuple:
    if tensor.layout is not cygrad.strided:
        if isinstance(tensor, cygrad.nn.Parameter):
            return rebuilding._rebuild_parameter, (tensor.data, tensor.requires_grad, OrderedDict())
        return rebuilding._rebuild_sparse_tensor, tensor.__reduce_ex__(2)[1]
    if type(tensor) is not Tensor and type(tensor).__reduce_ex__ not in _OWN_REDUCTIONS:
        return NotImplemented
    if isinstance(tensor, cygrad.nn.parameter.UninitializedTensorMixin):
        return type(tensor), tuple(tensor.__reduce_ex__(2)[1][:1])
    state = _state_of(tensor)
    if issubclass(type(tensor), cygrad.nn.Parameter):  # not one of another class that is marked as a parameter
        parts: tuple = tensor.data, tensor.requires_grad, OrderedDict()
        if state:
            return rebuilding._rebuild_parameter_with_state, (*parts, state)
        return rebuilding._rebuild_parameter, parts
    function, arguments = _plain(tensor, storages)
    kind = type(tensor)
    if kind is cygrad.nn.Buffer:
        kind, state = Tensor, {"persistent": tensor.persistent, "_is_buffer": True}
    if kind is Tensor and not state:
        return function, arguments
    return rebuilding._rebuild_from_type_v2, (function, kind, arguments, state)


def _state_of(tensor: Any) -> Any:
    """Return the attributes of a tensor: a dictionary, with one for slots a pair of both; None if there are none."""
    if type(tensor).__getstate__ is not object.__getstate__:
        return tensor.__getstate__()
    names = [name for kind in type(tensor).__mro__ if not issubclass(Tensor, kind) for name in _slots(kind)]
    slots = {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}
    attributes = tensor.__dict__ or None
    return (attributes, slots) if slots else attributes


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _dtype(value: Any, _: Storages) -> str:
    return str(value).removeprefix("torch.")


def _device(value: Any, _: Storages) -> tuple:
    return cygrad.device, (value.type,) if value.index is None else (value.type, value.index)


def _size(value: Any, _: Storages) -> tuple:
    return cygrad.Size, (tuple(value),)


def _layout(value: Any, _: Storages) -> tuple:
    return rebuilding._get_layout, (str(value),)


def _module(module: Any, _: Storages) -> Any:
    """Return how to rebuild a module, with the state that PyTorch's classes have."""
    how = module.__reduce_ex__(2)
    if len(how) < 3 or not isinstance(how[2], dict) or "_forward_hooks" not in how[2]:
        return how
    return (*how[:2], to_torch(module, how[2]), *how[3:])


_OWN_REDUCTIONS = (
    Tensor.__reduce_ex__,
    cygrad.nn.Parameter.__reduce_ex__,
    cygrad.nn.Buffer.__reduce_ex__,
    cygrad.nn.parameter.UninitializedTensorMixin.__reduce_ex__,
)
_WRITTEN: tuple[tuple[type, Callable], ...] = (
    (Tensor, _tensor),
    (cygrad.dtype, _dtype),
    (cygrad.device, _device),
    (cygrad.Size, _size),
    (cygrad.layout, _layout),
    (cygrad.nn.Module, _module),
)


# -- Picklers --


_ATOMS = {bool, int, float, type(None)}
_STORAGES = {cygrad.TypedStorage, cygrad.UntypedStorage, rebuilding.FileBytes}


class _Tensors:
    """Makes a pickler of any pickle module write tensors and storages as PyTorch does."""

    storages: Storages
    is_legacy: bool
    _ways: dict[type, Callable | None]

    def persistent_id(self, value: Any) -> tuple | None:
        kind = type(value)
        if kind in _STORAGES:
            value = self._storage(value)
        elif kind is not StoredMemory:
            return None
        return (*value.persistent_id(), None) if self.is_legacy else value.persistent_id()

    def _storage(self, value: Any) -> StoredMemory:
        name = str(value._flat.dtype).removeprefix("torch.")
        kind = rebuilding.STORAGES["UntypedStorage"]
        if isinstance(value, cygrad.TypedStorage):
            kind = rebuilding.BY_DTYPE.get(name, kind)
        found, offset, _ = self.storages.of(value._flat, kind)
        if offset or found.nbytes != value.nbytes():  # a slice of a storage
            found, _, _ = self.storages.of(value._flat.clone(), kind)
        return found

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        try:
            way = self._ways[kind]
        except KeyError:
            way = self._ways[kind] = next((way for known, way in _WRITTEN if issubclass(kind, known)), None)
        if way is not None:
            return way(value, self.storages)
        inherited: Any = getattr(super(), "reducer_override", None)  # cloudpickle's writes functions by value
        return NotImplemented if inherited is None else inherited(value)


_PythonPickler: Any = pickle._Pickler


class _Pickler(_Tensors, _PythonPickler):
    """Python's pickler, which in addition writes what PyTorch has by PyTorch's names.

    The one in C cannot be told other names. The memory of tensors, most of a file, passes neither.
    """

    proto: int
    write: Callable[[bytes], Any]

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        kind = type(obj)
        if kind in _ATOMS:  # at once, since none of what else comes first concerns them
            self.dispatch[kind](self, obj)
        else:
            super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        names = of_torch(obj, name)
        if names is None or (self.proto < 4 and "." in names[1]):
            super().save_global(obj, name)
        else:
            self._write_name(obj, *names)

    def save_kind(self, obj: rebuilding.StorageType) -> None:
        """Write the class of a storage."""
        self._write_name(obj, "torch.storage" if obj.name == "UntypedStorage" else "torch", obj.name)

    def _write_name(self, obj: Any, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(sys.intern(module))
            self.save(sys.intern(name))
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch = {**_PythonPickler.dispatch, FunctionType: save_global, rebuilding.StorageType: save_kind}


def pickler_class(module: ModuleType) -> Any:
    """Return the class of picklers of a pickle module. Those of other modules than `pickle` write our own names."""
    return _Pickler if module is pickle else type("Pickler", (_Tensors, module.Pickler), {})


def pickled(value: Any, module: ModuleType, protocol: int, is_legacy: bool = False) -> tuple[bytes, list[StoredMemory]]:
    """Return the pickle of an object, and the storages that it refers to."""
    storages = Storages()
    while True:
        stream = io.BytesIO()
        pickler = pickler_class(module)(stream, protocol=protocol)
        pickler.storages, pickler.is_legacy, pickler._ways = storages, is_legacy, {}
        pickler.dump(value)
        wider = storages.widened()
        if wider is None:
            return stream.getvalue(), storages.all
        storages = Storages(wider)
