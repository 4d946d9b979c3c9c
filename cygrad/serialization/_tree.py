"""Splits objects into named tensors and a text for everything else, and reassembles them.

Note [Trees]
------------
A dictionary of plain tensors by name is written unchanged. For any other object the file's metadata contain, under
`cygrad`, a JSON text `{"version": 1, "object": ...}`. In it None, booleans, integers, finite floats, strings and lists
represent themselves; everything else is an object with one entry, whose key is the type:

    {"tensor": name}  {"parameter": name}      with "requires_grad": true if it does
    {"dict": [[key, value], ...]}  {"OrderedDict": [...], "_metadata": ...}  {"Counter": [...]}
    {"tuple": [...]}  {"set": [...]}
    {"Size": [...]}  {"float": "nan"}  {"complex": [real, imag]}  {"bytes": hex}  {"bytearray": hex}
    {"dtype": name}  {"device": name}

As in PyTorch, tensors that were on GPUs return there, unless `map_location` overrides it: the metadata store their
locations under `cygrad.locations`. Other safetensors readers put them on the CPU.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.serialization._locations import placed, restorer
from cygrad.serialization._safetensors import METADATA, has_type

_VERSION = 1
_LOCATIONS = "cygrad.locations"  # metadata key; JSON {name: "cuda:0"}, present if any tensor was on a GPU
_DICTIONARIES: dict[str, type] = {kind.__name__: kind for kind in (dict, OrderedDict, Counter)}
_DEEPEST = 100


# -- Splitting --


def take_apart(value: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Split an object into arrays by name and metadata; see Note [Trees]."""
    metadata = {"format": "pt"}  # expected by other readers
    if _is_plain(value):
        _note_locations(value, metadata)
        return {name: _array(tensor, name) for name, tensor in value.items()}, metadata
    taker = _Taker()
    tree = taker.take(value, ())
    _note_locations(taker.tensors, metadata)
    metadata["cygrad"] = json.dumps({"version": _VERSION, "object": tree}, separators=(",", ":"))
    return taker.arrays, metadata


def _note_locations(tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Record in the metadata which tensors were on GPUs."""
    found = {name: str(tensor.device) for name, tensor in tensors.items() if tensor.is_cuda}
    if found:
        metadata[_LOCATIONS] = json.dumps(found)


def _is_plain(value: Any) -> bool:
    """Whether this is a dictionary that safetensors can hold directly."""
    return (
        type(value) in (dict, OrderedDict)
        and not hasattr(value, "_metadata")
        and all(type(name) is str and name != METADATA for name in value)
        and all(type(tensor) is Tensor and not tensor.requires_grad for tensor in value.values())
    )


def _array(tensor: Tensor, name: str) -> np.ndarray:
    array = tensor.detach().cpu().numpy(force=True)
    if not has_type(array.dtype.name):
        raise TypeError(
            f"tensor {name!r} is of type {tensor.dtype}, which the format safetensors lacks\n"
            "  save torch.view_as_real(x), and load it with torch.view_as_complex"
        )
    return array


class _Taker:
    """Collects the arrays of an object while building its tree."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.tensors: dict[str, Tensor] = {}
        self.open: set[int] = set()  # the enclosing containers

    def take(self, value: Any, place: tuple[str, ...]) -> Any:
        """Return the tree of an object at a given path."""
        if isinstance(value, np.generic):
            value = value.item()
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if isinstance(value, Tensor):
            return self._take_tensor(value, place)
        if isinstance(value, cygrad.dtype):  # bfloat16 is an instance of a subclass if ml_dtypes is missing
            kind = cygrad.dtype
        if kind in _ATOMS:
            name, write, _ = _ATOMS[kind]
            return {name: write(value)}
        if kind in _DICTIONARIES.values() or kind in (list, tuple, set):
            return self._take_container(value, kind, place)
        raise _not_saved(value, place)

    def _take_tensor(self, tensor: Tensor, place: tuple[str, ...]) -> dict[str, Any]:
        wanted = ".".join(place) or "tensor"
        name, number = wanted, 1
        while name in self.arrays or name == METADATA:
            number += 1
            name = f"{wanted}#{number}"
        self.arrays[name] = _array(tensor, name)
        self.tensors[name] = tensor
        kind = "parameter" if isinstance(tensor, cygrad.nn.Parameter) else "tensor"
        return {kind: name, "requires_grad": True} if tensor.requires_grad else {kind: name}

    def _take_container(self, value: Any, kind: type, place: tuple[str, ...]) -> Any:
        if id(value) in self.open:
            raise ValueError(f"the object{_at(place)} contains itself, which cygrad cannot save")
        if len(place) >= _DEEPEST:
            raise ValueError(f"the object is nested more than {_DEEPEST} levels deep:{_at(place[:9])}...")
        self.open.add(id(value))
        if kind in _DICTIONARIES.values():
            pairs = [[self.take(key, place), self.take(item, (*place, str(key)))] for key, item in value.items()]
            tree: Any = {kind.__name__: pairs}
            if hasattr(value, "_metadata"):  # set by `Module.state_dict`
                tree["_metadata"] = self.take(value._metadata, (*place, "_metadata"))
        else:
            tree = [self.take(item, (*place, str(i))) for i, item in enumerate(value)]
            tree = tree if kind is list else {kind.__name__: tree}
        self.open.remove(id(value))
        return tree


def _at(place: tuple[str, ...]) -> str:
    return f" at {'.'.join(place)!r}" if place else ""


def _not_saved(value: Any, place: tuple[str, ...]) -> TypeError:
    if hasattr(value, "state_dict"):
        cure = "save its `state_dict()`; to continue later, create the object again and call its `load_state_dict`"
    elif isinstance(value, np.ndarray):
        cure = "save it as a tensor: torch.from_numpy(array)"
    elif hasattr(value, "get_state"):
        cure = "save its `get_state()`, and pass it to `set_state` later"
    else:
        cure = "write it as dicts, lists, tuples, numbers, strings and tensors; other objects are for the module pickle"
    kind = type(value)
    return TypeError(f"cygrad.save does not save a {kind.__module__}.{kind.__qualname__}{_at(place)}\n  {cure}")


# -- Reassembling --


def put_together(arrays: dict[str, np.ndarray], metadata: dict[str, str], called: str, map_location: Any) -> Any:
    """Reassemble an object split by `take_apart`, or return the tensors by name if another program wrote the file."""
    try:
        locations = dict(json.loads(metadata.get(_LOCATIONS, "{}")))
    except (ValueError, TypeError) as error:
        raise RuntimeError(f"the locations of the tensors in {called} are damaged: {error}") from None
    restore = restorer(map_location)
    if isinstance(map_location, (str, cygrad.device)):
        placed(np.empty(0, np.uint8), restore, "cpu")  # the device must exist even if there are no tensors
    tensors = {name: placed(array, restore, str(locations.get(name, "cpu"))) for name, array in arrays.items()}
    if "cygrad" not in metadata:
        return tensors
    try:
        whole = json.loads(metadata["cygrad"])
        version = whole["version"]
        if version == _VERSION:
            return _put(whole["object"], tensors)
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise RuntimeError(
            f"the structure of the object in {called} is damaged: {type(error).__name__}: {error}\n"
            "  safetensors.numpy.load_file reads the tensors alone"
        ) from None
    raise RuntimeError(f"{called} is of version {version!r:.99}, and this cygrad reads {_VERSION}: install a newer one")


def _put(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_put(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    kind: str = next(iter(tree), "")
    content: Any = tree.get(kind)
    if kind in _PUT_ATOM:
        return _PUT_ATOM[kind](content)
    if kind in ("tuple", "set"):
        return {"tuple": tuple, "set": set}[kind](_put(item, tensors) for item in content)
    if kind in _DICTIONARIES:
        new: Any = _DICTIONARIES[kind]({_put(key, tensors): _put(value, tensors) for key, value in content})
        if "_metadata" in tree:
            new._metadata = _put(tree["_metadata"], tensors)
        return new
    if kind == "tensor":
        return tensors[content].requires_grad_(tree.get("requires_grad") is True)
    if kind == "parameter":
        return cygrad.nn.Parameter(tensors[content], tree.get("requires_grad") is True)
    raise ValueError(f"there is no type named {kind!r:.99}")


def _dtype(name: str) -> cygrad.dtype:
    found = getattr(cygrad, name)
    if not isinstance(found, cygrad.dtype):
        raise ValueError(f"{name!r} is not a dtype")
    return found


def _complex(parts: list[str]) -> complex:
    real, imag = map(float, parts)
    return complex(real, imag)


_ATOMS: dict[type, tuple[Any, ...]] = {  # name, tree representation, and inverse
    float: ("float", repr, float),
    complex: ("complex", lambda value: [repr(value.real), repr(value.imag)], _complex),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    bytearray: ("bytearray", bytearray.hex, bytearray.fromhex),
    cygrad.Size: ("Size", list, cygrad.Size),
    cygrad.dtype: ("dtype", lambda value: str(value).removeprefix("torch."), _dtype),
    cygrad.device: ("device", str, cygrad.device),
}
_PUT_ATOM = {name: read for name, _, read in _ATOMS.values()}
