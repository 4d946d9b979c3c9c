"""The safetensors format: the header's length in 8 bytes, the header in JSON, the memory of the tensors.

For each name the header holds the type, shape and offsets of the elements, and `__metadata__` maps names to strings.
The memory follows the order of the offsets, without gaps. https://github.com/huggingface/safetensors
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cygrad.serialization._files import map_file
from cygrad.serialization._memory import as_little_endian, check_bools, elements, numpy_type

_TYPES = {  # largest first: this order aligns all tensors
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
    "F32": "float32",
    "I32": "int32",
    "U32": "uint32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I16": "int16",
    "U16": "uint16",
    "U8": "uint8",
    "I8": "int8",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "BOOL": "bool",
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_RANK = {name: rank for rank, name in enumerate(_TYPES)}
_LONGEST_HEADER = 100_000_000  # the limit of the safetensors package
_MOST_DIMS = 64  # NumPy's limit
METADATA = "__metadata__"


def has_type(name: str) -> bool:
    """Whether the format supports the dtype of that name."""
    return name in _NAMES


# -- Writing --


def write(file: Any, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write arrays and strings by name."""
    types = {name: _NAMES[array.dtype.name] for name, array in arrays.items()}
    in_memory = sorted(arrays, key=lambda name: _RANK[types[name]])
    places, end = {}, 0
    for name in in_memory:
        places[name] = [end, end + arrays[name].nbytes]
        end += arrays[name].nbytes
    header: dict[str, Any] = {METADATA: metadata}
    for name, array in arrays.items():  # in the order of the object, which readers preserve
        header[name] = {"dtype": types[name], "shape": list(array.shape), "data_offsets": places[name]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(f"the names and shapes take {len(text)} bytes; the format allows {_LONGEST_HEADER}")
    file.write(len(text).to_bytes(8, "little") + text)
    for name in in_memory:
        file.write(as_little_endian(arrays[name]))


# -- Reading --


def read(file: Any, called: str, is_mapped: bool, whole: bool) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read arrays and strings written by `write` from the file's position; with `whole` nothing may follow.

    If `is_mapped`, the arrays are copy-on-write mappings of the file, else new memory.
    """
    start = file.tell()
    size = file.seek(0, 2) - start
    file.seek(start)
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise _damaged(called, f"its header should have {length} bytes, but the file has {size}")
    header, metadata = _parse(file.read(length), called)
    first = 8 + length
    end = first + _check_places(header, called)
    if end > size or (whole and end < size):
        raise _damaged(called, f"it should have {end} bytes according to its header, but has {size}")
    memory = map_file(file) if is_mapped else None
    arrays = {}
    for name, (dtype, shape, begin, stop) in sorted(header.items(), key=lambda item: item[1][2:]):
        count = math.prod(shape)
        if memory is None:
            vector = elements(_read_part(file, stop - begin, called), 0, count, dtype)
        else:
            vector = elements(memory, first + begin, count, dtype)
        if dtype.kind == "b":
            check_bools(vector, f"tensor {name!r} in {called}")
        arrays[name] = vector.reshape(shape)
    return {name: arrays[name] for name in header}, metadata


def _read_part(file: Any, length: int, called: str) -> Any:
    """Read the next bytes of a file into new memory."""
    part = np.empty(length, np.uint8)
    if hasattr(file, "readinto"):
        count = file.readinto(part.data)
    else:
        read = file.read(length)
        count = len(read)
        part[:count] = np.frombuffer(read, np.uint8)
    if count != length:
        raise _damaged(called, f"{length} bytes should follow, but there are {count}")
    return part.data


def _damaged(called: str, why: str) -> RuntimeError:
    return RuntimeError(f"{called} is damaged, or not a safetensors file: {why}")


def _parse(text: bytes, called: str) -> tuple[dict[str, tuple[Any, ...]], dict[str, str]]:
    """Parse the header into {name: (NumPy dtype, shape, begin, end)} and the metadata."""

    def without_repetition(pairs: list[Any]) -> dict[Any, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _damaged(called, "a name occurs twice in its header")
        return found

    try:
        entries = json.loads(text, object_pairs_hook=without_repetition)
    except (ValueError, RecursionError) as error:
        raise _damaged(called, f"its header is not JSON ({error})") from None
    if not isinstance(entries, dict):
        raise _damaged(called, "its header is not a dictionary")
    metadata = entries.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _damaged(called, "its metadata are not strings by name")
    return {name: _entry(name, entry, called) for name, entry in entries.items()}, metadata


def _entry(name: str, entry: Any, called: str) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Validate and parse the header's entry for one tensor."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise _damaged(called, f"of tensor {name!r} it is not said what type, shape and place it has")
    kind, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise RuntimeError(f"tensor {name!r} in {called} is of type {kind!r}, which cygrad lacks")
    if not _are_sizes(shape) or len(shape) > _MOST_DIMS or not _are_sizes(place) or len(place) != 2:
        raise _damaged(called, f"tensor {name!r} is to have shape {shape!r:.99} and place {place!r:.99}")
    dtype = numpy_type(_TYPES[kind])
    if math.prod(length or 1 for length in shape) >= 2**63:  # NumPy's limit, which applies to empty tensors too
        raise _damaged(called, f"tensor {name!r} is larger than any memory")
    if place[1] - place[0] != math.prod(shape) * dtype.itemsize:
        raise _damaged(
            called,
            f"tensor {name!r} of shape {shape} takes {math.prod(shape) * dtype.itemsize} bytes, not those from "
            f"{place[0]} to {place[1]}",
        )
    return dtype, tuple(shape), place[0], place[1]


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)


def _check_places(header: dict[str, tuple[Any, ...]], called: str) -> int:
    """Return the number of bytes of all tensors, which must be contiguous."""
    end = 0
    for name, (_, _, begin, stop) in sorted(header.items(), key=lambda item: item[1][2:]):
        if begin != end:
            where = "overlaps the one before" if begin < end else "leaves a gap behind the one before"
            raise _damaged(called, f"tensor {name!r} {where}: it begins at byte {begin}, not {end}")
        end = stop
    return end
