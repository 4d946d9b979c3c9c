"""Convolutions by cuDNN's library alone, through its backend functions in C, where there is no package for them.

cuDNN takes a computation as descriptors: objects of a kind, whose attributes are set one by one before they are
finalized. A convolution is an operation on descriptors of tensors; for a graph of operations the library proposes
engines, best first. The first that it can make a plan with is used. Numbers of kinds, attributes and types are those of
`cudnn_graph.h` (version 9; the same as in `cudnn_backend.h` of version 8).
"""

import ctypes
import importlib.util
import math
import sys
from functools import cache
from pathlib import Path
from threading import local
from typing import Any

from cygrad._kernels.device.cupy_library import cupy, current_device

_VERSIONS = 9, 8
_INT, _INT64, _POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_SIGNATURES = {
    "cudnnCreate": (_POINTER,),
    "cudnnSetStream": (_POINTER, _POINTER),
    "cudnnBackendCreateDescriptor": (_INT, _POINTER),
    "cudnnBackendDestroyDescriptor": (_POINTER,),
    "cudnnBackendSetAttribute": (_POINTER, _INT, _INT, _INT64, _POINTER),
    "cudnnBackendGetAttribute": (_POINTER, _INT, _INT, _INT64, _POINTER, _POINTER),
    "cudnnBackendFinalize": (_POINTER,),
    "cudnnBackendExecute": (_POINTER, _POINTER, _POINTER),
}

# Kinds of descriptors
_CONVOLUTION, _ENGINE, _CONFIG, _HEURISTIC, _PLAN, _GRAPH, _PACK, _TENSOR = 1, 2, 3, 4, 5, 15, 16, 17
# By kind of convolution: the kind of its operation, and its attributes alpha, beta, convolution, and each tensor
_OPERATIONS = {
    "conv_fprop": (10, 700, 701, 702, (704, 703, 705)),  # x, w, y
    "conv_wgrad": (11, 712, 713, 714, (716, 717, 715)),  # x, dy, dw
    "conv_dgrad": (12, 706, 707, 708, (711, 709, 710)),  # dy, w, dx
}
# Types of attributes: (number, C type)
_HANDLE_TYPE, _DATA_TYPE, _WHOLE = (0, _POINTER), (1, _INT), (3, _INT64)
_SINGLE, _DOUBLE, _ADDRESS = (4, ctypes.c_float), (5, ctypes.c_double), (6, _POINTER)
_MODE, _HEURISTIC_MODE, _NOTE, _DESCRIPTOR = (7, _INT), (8, _INT), (11, _INT), (15, _POINTER)
_ELEMENTS = {"f": 0, "d": 1, "e": 2, "E": 9}  # cudnnDataType_t by dtype char
_CORRELATES = 1  # CUDNN_CROSS_CORRELATION
_HEURISTICS = 3, 2  # CUDNN_HEUR_MODE_A and CUDNN_HEUR_MODE_FALLBACK
_TENSOR_CORE, _NONDETERMINISTIC = 0, 4  # cudnnBackendNumericalNote_t
_MOST_NOTES = 32
_ALIGNMENT = 16  # of arrays, in bytes
_of_thread = local()  # .handles: by GPU


class LibraryError(RuntimeError):
    """cuDNN has returned an error; the computation is left to other means."""


def _names():
    """Yield where the library may be: on the path of libraries, or in NVIDIA's wheel."""
    wheel = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (wheel and wheel.submodule_search_locations) or ()]
    for version in _VERSIONS:
        is_windows = sys.platform == "win32"
        name = f"cudnn64_{version}.dll" if is_windows else f"libcudnn.so.{version}"
        yield name
        yield from (str(place / "cudnn" / ("bin" if is_windows else "lib") / name) for place in places)


@cache
def library() -> Any:
    """Return cuDNN's library, with the types of its functions set, or None if there is none."""
    for name in _names():
        try:
            found = ctypes.CDLL(name)
            for function, types in _SIGNATURES.items():
                getattr(found, function).argtypes = types
            found.cudnnGetVersion.restype = ctypes.c_size_t
        except (OSError, AttributeError):
            continue
        return found
    return None


@cache
def is_usable():
    """Whether there is a library that works with this GPU, driver and process."""
    if library() is None:
        return False
    try:
        _handle()
    except LibraryError:
        return False
    return True


def version():
    """Return the library's version as a number."""
    return int(library().cudnnGetVersion())


def _check(status):
    if status:
        raise LibraryError(f"cuDNN returned status {status}")


class Descriptor:
    """An object of cuDNN's, and the others that it refers to."""

    def __init__(self, kind, *attributes):
        """Make it and set (attribute, type, values) for each of `attributes`; finalize it unless there are none."""
        self.pointer, self._kept = _POINTER(), []
        self._destroy = library().cudnnBackendDestroyDescriptor
        _check(library().cudnnBackendCreateDescriptor(kind, ctypes.byref(self.pointer)))
        for attribute, (number, element), values in attributes:
            self._kept += [value for value in values if isinstance(value, Descriptor)]
            given = (element * len(values))(*(v.pointer if isinstance(v, Descriptor) else v for v in values))
            _check(library().cudnnBackendSetAttribute(self.pointer, attribute, number, len(values), given))
        if attributes:
            _check(library().cudnnBackendFinalize(self.pointer))

    def get(self, attribute, of_type, most):
        """Return up to `most` values of an attribute."""
        number, element = of_type
        count, found = _INT64(0), (element * most)()
        _check(library().cudnnBackendGetAttribute(self.pointer, attribute, number, most, ctypes.byref(count), found))
        return list(found[: min(count.value, most)])

    def descriptors(self, attribute, kind):
        """Return the descriptors of this kind that an attribute has, best first."""
        number, count = _DESCRIPTOR[0], _INT64(0)
        get = library().cudnnBackendGetAttribute
        _check(get(self.pointer, attribute, number, 0, ctypes.byref(count), None))
        found = [Descriptor(kind) for _ in range(count.value)]
        if found:
            pointers = (_POINTER * len(found))(*(one.pointer for one in found))
            _check(get(self.pointer, attribute, number, len(found), ctypes.byref(count), pointers))
        return found[: count.value]

    def __del__(self):
        if self.pointer and not sys.is_finalizing():
            self._destroy(self.pointer)


def _handle():
    """Return the handle of this thread for the current GPU, set to the current stream."""
    handles = _of_thread.__dict__.setdefault("handles", {})
    device = current_device()
    if device not in handles:
        found = _POINTER()
        _check(library().cudnnCreate(ctypes.byref(found)))
        handles[device] = found
    _check(library().cudnnSetStream(handles[device], cupy().cuda.get_current_stream().ptr))
    return handles[device]


def _tensor(number, shape, char):
    """Describe a contiguous array, with at least two image dimensions."""
    lengths = [*shape[:2], *([1] if len(shape) == 3 else []), *shape[2:]]
    strides = [math.prod(lengths[i + 1 :]) for i in range(len(lengths))]
    return Descriptor(
        _TENSOR,
        (901, _DATA_TYPE, [_ELEMENTS[char]]),
        (902, _WHOLE, lengths),
        (903, _WHOLE, strides),
        (906, _WHOLE, [number]),
        (900, _WHOLE, [_ALIGNMENT]),
    )


def operation(kind, shapes, char, geometry):
    """Describe a convolution of arrays of these shapes, the last of which is the result.

    `geometry` is (padding, stride, dilation).
    """
    wide = _ELEMENTS["d" if char == "d" else "f"]
    before = [[value] if len(geometry[0]) == 1 else [] for value in (0, 1, 1)]
    padding, stride, dilation = ([*first, *values] for first, values in zip(before, geometry))
    convolution = Descriptor(
        _CONVOLUTION,
        (100, _DATA_TYPE, [wide]),
        (101, _MODE, [_CORRELATES]),
        (106, _WHOLE, [len(padding)]),
        (105, _WHOLE, padding),
        (104, _WHOLE, padding),
        (103, _WHOLE, stride),
        (102, _WHOLE, dilation),
    )
    number, alpha, beta, own, places = _OPERATIONS[kind]
    tensors = [_tensor(i, shape, char) for i, shape in enumerate(shapes)]
    of_factors = _DOUBLE if char == "d" else _SINGLE
    return Descriptor(
        number,
        *((place, _DESCRIPTOR, [tensor]) for place, tensor in zip(places, tensors)),
        (own, _DESCRIPTOR, [convolution]),
        (alpha, of_factors, [1.0]),
        (beta, of_factors, [0.0]),
    )


def _notes(configuration):
    """Return what the library notes about the engine of a configuration."""
    (engine,) = configuration.descriptors(300, _ENGINE)
    return engine.get(1303, _NOTE, _MOST_NOTES)


def _configurations(graph, unwanted):
    """Yield what the library proposes for a graph, best first, without engines that have an unwanted note."""
    for mode in _HEURISTICS:
        try:
            proposals = Descriptor(_HEURISTIC, (201, _DESCRIPTOR, [graph]), (200, _HEURISTIC_MODE, [mode]))
            found = proposals.descriptors(202, _CONFIG)
        except LibraryError:  # nothing is known for it
            continue
        for one in found:
            if not (unwanted and unwanted.intersection(_notes(one))):
                yield one


class Plan:
    """A convolution that the library can run."""

    def __init__(self, kind, shapes, char, geometry, is_ordered, allow_tf32):
        """Find a plan. Raises LibraryError if there is none."""
        handle = _handle()
        made = operation(kind, shapes, char, geometry)
        graph = self._graph = Descriptor(_GRAPH, (800, _HANDLE_TYPE, [handle]), (801, _DESCRIPTOR, [made]))
        unwanted = {_NONDETERMINISTIC} if is_ordered else set()
        if char == "f" and not allow_tf32:
            unwanted.add(_TENSOR_CORE)
        for one in _configurations(graph, unwanted):
            try:
                self._plan = Descriptor(_PLAN, (400, _HANDLE_TYPE, [handle]), (401, _DESCRIPTOR, [one]))
            except LibraryError:  # not on this GPU
                continue
            (self._size,) = self._plan.get(402, _WHOLE, 1)
            return
        raise LibraryError("cuDNN has no plan for it")

    def run(self, arrays):
        """Compute the last array from the others."""
        handle, workspace = _handle(), cupy().cuda.alloc(max(self._size, 1))
        pack = Descriptor(
            _PACK,
            (1000, _WHOLE, list(range(len(arrays)))),
            (1001, _ADDRESS, [a.data.ptr for a in arrays]),
            (1003, _ADDRESS, [workspace.ptr]),
        )
        _check(library().cudnnBackendExecute(handle, self._plan.pointer, pack.pointer))
        return True
