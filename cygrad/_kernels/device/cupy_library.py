"""Loads CuPy when the first GPU array is requested, and wraps what the rest of the package needs of it.

The library of meta arrays (Note [Meta arrays]), which have no memory, is a second one that is loaded and used alike.
"""

import os
import re
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from cygrad._kernels.tape.calls import made_of_numbers
from cygrad._library import later

graph_capture = later("cygrad._kernels.gpu.runtime.graph_capture")  # which imports this module
_found: Any = None  # the CuPy module
_meta: Any = None  # the library of meta arrays
_sparse: Any = ()  # the class of the arrays of sparse tensors
_classes: tuple = ()  # of arrays that are no plain memory on the CPU, of the libraries that are loaded
_names: dict[int, str] = {}
followers: list = []  # functions called once CuPy is loaded
meta_followers: list = []  # functions called once the library of meta arrays is loaded
PINNED = -1  # in place of a GPU index: page-locked (pinned) host memory
META = -2  # in place of a GPU index: no memory at all


_BESIDE = "cupyx", "cupy_backends", "cuda", "fastrlock", "nvidia"  # packages that CuPy uses, beside its own folder

# Parts of names of CUDA errors after which the GPU is unusable for this process.
_LOST = "unavailable|uncorrect|illegal|launch_?(fail|timeout)|misaligned|invalidpc|stackerror|destroyed"

# Beginnings of names of errors caused by mismatched libraries, driver and GPU.
_UNFIT = (
    "^(cuda.*(no_?binary|kernel_?image|ptx|insufficient_?driver|driver_?mismatch|compat_?not|jit_?compiler)|nvrtc|"
    "fail(ure finding|ed to find cuda))"
)


class switches:
    """Settings of the user that kernels obey."""

    own_launches = True  # launch our own kernels where CuPy functions would do?
    in_order = False  # fix the order in which values scattered to one place are added, at any cost?


class CannotUse(RuntimeError):
    """There is no GPU, or something needed to compute on it is missing; the message names it."""


def cupy():
    """Return the CuPy module. Raises RuntimeError with installation advice if it, or a GPU, is missing."""
    global _found, _classes
    if _found is None:
        _found = _load()
        _classes = (_found.ndarray, *_classes)
        import_module("cygrad._kernels.gpu.startup").connect(_found)  # which imports this module
        for function in followers:
            function()
    return _found


def meta():
    """Return the library of meta arrays."""
    global _meta, _classes
    if _meta is None:
        _meta = import_module("cygrad._kernels.meta.library")  # which imports this module
        _classes = (*_classes, _meta.ndarray)
        import_module("cygrad._kernels.device.dispatch").use_gpu()  # likewise
        for function in meta_followers:
            function()
    return _meta


def admit_sparse(kind):
    """Make known the class of the arrays of sparse tensors, which no kernel takes: see Note [Sparse arrays]."""
    global _sparse, _classes
    if not _sparse:
        _sparse = kind
        _classes = (*_classes, kind)
        import_module("cygrad._kernels.device.dispatch").use_gpu()  # which imports this module


def is_sparse(value):
    """Whether `value` is the array of a sparse tensor."""
    return isinstance(value, _sparse)


def library_at(place):
    """Return the library of the arrays at a place other than main memory: a GPU or the device "meta"."""
    return meta() if place == META else cupy()


def _load():
    try:
        import cupy as module  # optional, and it takes seconds
    except ImportError as error:
        raise CannotUse(
            "No CUDA GPUs are available\n"
            f"  cygrad computes on GPUs with CuPy, which cannot be imported ({error}): pip install 'cupy-cuda12x[ctk]' "
            "or 'cupy-cuda13x[ctk]', matching the CUDA version that nvidia-smi shows, or use device='cpu'"
        ) from None
    if int(module.__version__.partition(".")[0]) < 14:
        raise CannotUse(f"No CUDA GPUs are available\n  CuPy {module.__version__} is too old: 14 or newer is required")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # its classes exist only in CuPy
        raise CannotUse(
            "No CUDA GPUs are available\n"
            f"  CuPy {module.__version__} is installed, but the driver reports: {error}; if CUDA versions do not "
            "match, install cupy-cuda12x[ctk] or cupy-cuda13x[ctk] to match what nvidia-smi shows; or use device='cpu'"
        ) from None
    if not count:
        raise CannotUse(
            "No CUDA GPUs are available\n  the driver finds none (CUDA_VISIBLE_DEVICES may hide them); use device='cpu'"
        )
    return module


def is_available():
    """Whether a GPU, and everything needed to use it, is available. Never raises."""
    try:
        return cupy() is not None
    except CannotUse:
        return False


def is_loaded():
    """Whether CuPy is loaded, i.e. GPU arrays may exist."""
    return _found is not None


def folders():
    """Return the folders of the GPU library's Python code and of what it imports; none if it is not loaded."""
    return () if _found is None else _folders(os.path.dirname(_found.__file__))


@cache
def _folders(own):
    beside = os.path.dirname(own)
    return tuple(os.path.join(folder, "") for folder in (own, *(os.path.join(beside, name) for name in _BESIDE)))


def explained(error):
    """Return the error to raise for an error of CUDA or CuPy: one with advice if we have any, else `error`."""
    name = str(error).partition(":")[0].lower()
    if re.search(_UNFIT, name):
        return RuntimeError(
            f"CUDA error: {error}\n  CUDA versions do not match, or a part of CUDA is missing: install "
            "cupy-cuda12x[ctk] or cupy-cuda13x[ctk] to match what nvidia-smi shows; update the driver if it is older"
        )
    if not name.startswith("cuda") or not re.search(_LOST, name):
        return error
    return RuntimeError(
        f"CUDA error: {error}\n  this process has lost the GPU and everything on it: restart the process; an "
        "earlier kernel may be to blame (CUDA_LAUNCH_BLOCKING=1 shows which)"
    )


def item(array):
    """Return the only element of an array on any device as a Python number."""
    try:
        return array.item()
    except RuntimeError as error:
        raise explained(error) from None


def is_array(value):
    """Whether `value` is a GPU array, a meta array, or the array of a sparse tensor."""
    return isinstance(value, _classes)


def gpu_class():
    """Return the class of GPU arrays, or None before there are any."""
    return _found and _found.ndarray


def is_meta(value):
    """Whether `value` is a meta array."""
    return _meta is not None and isinstance(value, _meta.ndarray)


def require_values(array, name):
    """Raise NotImplementedError for a meta array: the shape of what the op `name` returns depends on the elements."""
    if is_meta(array):
        raise import_module("cygrad._kernels.meta.errors").no_shape(name)


def is_elsewhere():
    """Whether arrays may be anywhere but in main memory."""
    return bool(_classes)


def current_device():
    """Return the index of this thread's current GPU."""
    return (_found or cupy()).cuda.runtime.getDevice()


def on_device(index):
    """Return a context manager that switches this thread to another GPU."""
    return nullcontext() if index == META else cupy().cuda.Device(index)


def taken(value):
    """Wrap an object with `__cuda_array_interface__` as an array on the same memory; return anything else unchanged.

    Loads CuPy if needed.
    """
    if isinstance(value, (np.ndarray, list, tuple, int, float)) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return cupy().asarray(value)


def name_of(dtype):
    """Return `dtype.name`, cached: NumPy assembles it anew on each access, which takes a microsecond."""
    found = _names.get(dtype.num)
    if found is None:
        found = _names[dtype.num] = dtype.name
    return found


def is_writable(a):
    """Whether the elements of an array may be changed; always True on GPUs."""
    return not isinstance(a, np.ndarray) or a.flags.writeable


def made(place, function, *args):
    """Return `function(library, *args)` with CuPy on the GPU `place`, or with NumPy if `place` is None.

    For META it is the library of meta arrays.
    """
    if place is None:
        return made_of_numbers(function, np, *args)
    with on_device(place):
        return function(library_at(place), *args)


def module_of(*arrays):
    """Return the library of these arrays: CuPy, NumPy, or that of meta arrays."""
    if _meta is not None and any(map(is_meta, arrays)):
        return _meta
    return _found if _found is not None and any(isinstance(a, _found.ndarray) for a in arrays) else np


def as_array(value):
    """Return an array on any device unchanged, and anything else as a NumPy array."""
    return value if type(value) is np.ndarray or is_array(value) else np.asarray(value)


def dense(a):
    """Return an array in C order, itself if it already is, on any device. A 0-d array becomes 1-d."""
    if isinstance(a, np.ndarray):
        return np.ascontiguousarray(a)
    graph_capture.used(a)
    return library_at(a.device.id).ascontiguousarray(a)


def beside(value, array):
    """Return a number, or an array in host memory, as an array on the device of `array`."""
    if not is_array(array):
        return np.asarray(value)
    if is_meta(array):
        return meta().asarray(value)
    with on_device(array.device.id):
        return value if is_array(value) else graph_capture.uploaded(np.asarray(value))


def filled_like(array, shape, value, dtype):
    """Return an array filled with a value on the device of `array`."""
    if not is_array(array):
        found = np.empty(shape, dtype)
        found.fill(value)
        return found
    with on_device(array.device.id):
        return library_at(array.device.id).full(shape, value, dtype)


def as_number(value):
    """Return a GPU array unchanged, and a 0-d array in host memory as a scalar of its type."""
    return value[()] if isinstance(value, np.ndarray) else value
