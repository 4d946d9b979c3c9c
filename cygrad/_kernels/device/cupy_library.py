"""CuPy, imported when the first array on a GPU is asked for."""

import re
from typing import Any

import numpy as np

_found: Any = None  # the module
_names: dict[int, str] = {}
followers: list = []  # functions that are called once it is there
PINNED = -1  # stands for memory of the CPU that is locked for transfers, where the number of a GPU would stand


# Parts of the names of CUDA's errors after which nothing works any more.
_LOST = "unavailable|uncorrect|illegal|launch_?(fail|timeout)|misaligned|invalidpc|stackerror|destroyed"

# Beginnings of those that say that libraries, driver and GPU do not fit.
_UNFIT = (
    "^(cuda.*(no_?binary|kernel_?image|ptx|insufficient_?driver|driver_?mismatch|compat_?not|jit_?compiler)|nvrtc|"
    "fail(ure finding|ed to find cuda))"
)


class switches:
    """What the user asks of kernels."""

    own_launches = True  # are kernels of ours launched where CuPy's functions would do?
    in_order = False  # are numbers that go to one place to be added in one order, whatever that costs?


class CannotUse(RuntimeError):
    """There is no GPU, or what is needed to compute on it is missing; the text says what."""


def cupy():
    """The module CuPy. Raises RuntimeError that tells what to install where it, or a GPU, is missing."""
    global _found
    if _found is None:
        _found = _load()
        from cygrad._kernels.device import launch
        from cygrad._kernels.device.dispatch import use_gpu  # which import this module
        from cygrad._kernels.gpu.runtime import allocator, matmul_precision

        use_gpu()
        launch.connect(_found)
        matmul_precision.apply()
        allocator.install(_found)
        for function in followers:
            function()
    return _found


def _load():
    try:
        import cupy as module
    except ImportError as error:
        raise CannotUse(
            "No CUDA GPUs are available\n"
            f"  cygrad computes on GPUs by CuPy, which can not be imported ({error}): pip install 'cygrad[cuda12]' or "
            "'cygrad[cuda13]', after the version of CUDA that nvidia-smi shows, or use device='cpu'"
        ) from None
    if int(module.__version__.partition(".")[0]) < 14:
        raise CannotUse(f"No CUDA GPUs are available\n  CuPy {module.__version__} is too old: 14 or newer is needed")
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # of classes that only CuPy has
        raise CannotUse(
            "No CUDA GPUs are available\n"
            f"  CuPy {module.__version__} is installed, but the driver says: {error}; where versions of CUDA do not go "
            "together, install cygrad[cuda12] or [cuda13] after what nvidia-smi shows; or use device='cpu'"
        ) from None
    if not count:
        raise CannotUse(
            "No CUDA GPUs are available\n  the driver knows of none (CUDA_VISIBLE_DEVICES may hide them); use "
            "device='cpu'"
        )
    return module


def is_available():
    """Whether there is a GPU, and what is needed to use it. Never raises."""
    try:
        return cupy() is not None
    except CannotUse:
        return False


def is_loaded():
    """Whether an array may be on a GPU already."""
    return _found is not None


def explained(error):
    """The error to raise for one of CUDA's or CuPy's: with a word on what to do where that is known, else it itself."""
    name = str(error).partition(":")[0].lower()
    if re.search(_UNFIT, name):
        return RuntimeError(
            f"CUDA error: {error}\n  versions of CUDA do not go together, or a part of it is missing: install "
            "cygrad[cuda12] or [cuda13] after what nvidia-smi shows, and update the driver if that is older"
        )
    if not name.startswith("cuda") or not re.search(_LOST, name):
        return error
    return RuntimeError(
        f"CUDA error: {error}\n  the GPU is lost to this process, with all that was on it: start anew; an earlier "
        "kernel may be to blame (CUDA_LAUNCH_BLOCKING=1 tells which)"
    )


def item(array):
    """The only element of an array of whatever device as a Python number."""
    try:
        return array.item()
    except RuntimeError as error:
        raise explained(error) from None


def is_array(value):
    """Whether this is an array on a GPU."""
    return _found is not None and isinstance(value, _found.ndarray)


def current_device():
    """The number of the GPU that this thread uses."""
    return (_found or cupy()).cuda.runtime.getDevice()


def on_device(index):
    """A context in which the thread uses another GPU."""
    return cupy().cuda.Device(index)


def taken(value):
    """What lies on a GPU by the protocol `__cuda_array_interface__` as an array on that memory; anything else as it is.

    CuPy is loaded for it.
    """
    if isinstance(value, (np.ndarray, list, tuple, int, float)) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return cupy().asarray(value)


def name_of(dtype):
    """`dtype.name`, which NumPy puts together anew each time, in a microsecond."""
    found = _names.get(dtype.num)
    if found is None:
        found = _names[dtype.num] = dtype.name
    return found


def is_writable(a):
    """May the elements of an array be changed? Those on GPUs always may."""
    return not isinstance(a, np.ndarray) or a.flags.writeable


def made(place, function, *args):
    """What `function(library, *args)` makes: by CuPy on the GPU with the number `place`, by NumPy for None."""
    if place is None:
        return function(np, *args)
    with on_device(place):
        return function(cupy(), *args)


def module_of(*arrays):
    """The library that has the functions of these arrays: CuPy or NumPy."""
    return _found if _found is not None and any(isinstance(a, _found.ndarray) for a in arrays) else np


def as_array(value):
    """An array of whatever device as it is; else NumPy's array of a number or a sequence."""
    return value if type(value) is np.ndarray or is_array(value) else np.asarray(value)


def dense(a):
    """An array of whatever device in C order: it itself if it is. One without dimensions gets one."""
    return np.ascontiguousarray(a) if isinstance(a, np.ndarray) else cupy().ascontiguousarray(a)


def beside(value, array):
    """A number, or an array in the CPU's memory, as an array where another is."""
    if not is_array(array):
        return np.asarray(value)
    from cygrad._kernels.gpu.runtime.graph_capture import uploaded  # which imports this module

    with on_device(array.device.id):
        return value if is_array(value) else uploaded(np.asarray(value))


def filled_like(array, shape, value, dtype):
    """An array of one value where another is."""
    if not is_array(array):
        found = np.empty(shape, dtype)
        found.fill(value)
        return found
    with on_device(array.device.id):
        return cupy().full(shape, value, dtype)


def as_number(value):
    """An array on a GPU as it is; one of one element in the CPU's memory as a number of its type."""
    return value[()] if isinstance(value, np.ndarray) else value
