"""Runs kernels on meta arrays: each finds the shapes and dtypes of its results, and computes nothing.

A kernel is described, in this order,

- by the function of its name in the module of its family in `forms/`, called as `form(kernel, *arguments)`;
- if it computes each element by itself, by what it returns for one element, in the shape to which operands broadcast;
- if it is Python code on NumPy's functions, by running it: the functions describe their results (`numpy_functions.py`);
- if the operands are small, by running it on arrays of zeros and ones in memory.

Whatever is described by none of these fails, as an operation without a meta kernel does in PyTorch.
"""

from functools import partial
from importlib import import_module
from types import FunctionType

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.dispatch import in_memory
from cygrad._kernels.device.errors import broadcast_failure
from cygrad._kernels.device.gpu_forms import in_float32, place_name
from cygrad._kernels.meta import ufuncs
from cygrad._kernels.meta.array import Outline, ndarray
from cygrad._kernels.meta.errors import NoShape, no_shape, other_device
from cygrad._kernels.meta.library import array

_CPU, _FORMS = "cygrad._kernels.cpu.", "cygrad._kernels.meta.forms."
_forms: dict = {}


class limits:
    """What may be computed to find the shape of a result."""

    elements = 2**20  # of all operands


def run(kernel, args, kwargs=None, by_element=False):
    """Return meta arrays in place of what `kernel(*args, **kwargs)` computes."""
    kwargs = kwargs or {}
    form = _form_of(kernel)
    if form is not None:
        return form(kernel, *args, **kwargs)
    function = in_memory(kernel)
    if by_element or hasattr(function, "loop"):
        return in_float32(partial(of_each_element, function), *args, **kwargs)
    if isinstance(function, np.ufunc):
        return in_float32(function, *args, **kwargs)
    if not _is_python(function):
        return of_zeros(function, args, kwargs)
    try:
        return _described(in_float32(function, *args, **kwargs))
    except NoShape:
        raise
    except Exception:
        if not _is_small(args):
            raise
    return of_zeros(function, args, kwargs)


def run_on(kernel, *args, **kwargs):
    """Call `run` like the kernel.

    Raises RuntimeError for arrays in memory among the arguments, unless the form is marked by `with_arrays_in_memory`.
    """
    if not hasattr(_form_of(kernel), "takes_arrays_in_memory"):
        check_places(args)
    return run(kernel, args, kwargs)


def _form_of(kernel):
    form = _forms.get(kernel)
    if form is None:
        form = _forms[kernel] = _find(kernel)
    return form


def beside(arrays, args):
    """Return arguments with meta arrays in place of those in memory, if one of the operands is an `Outline`."""
    if not any(type(a) is Outline for a in arrays):
        return args
    return tuple(map(_outlined, args))


def _outlined(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_outlined, value))
    return array(value) if isinstance(value, np.ndarray) and value.ndim else value


def check_places(arrays):
    """Raise RuntimeError if one of several operands is not a meta array, unless it is an array without dimensions."""
    if any(type(a) is Outline for a in arrays):
        return
    places = [place_name(a) for a in arrays if is_array(a) or isinstance(a, np.ndarray)]
    for a in arrays:
        if is_array(a) and not isinstance(a, ndarray) or isinstance(a, np.ndarray) and a.ndim:
            raise other_device(places[0], next(place for place in places if place != places[0]))


def _find(kernel):
    module = getattr(kernel, "module", None) or getattr(kernel, "__module__", None) or ""
    if not module.startswith(_CPU) or isinstance(kernel, np.ufunc):
        return None
    place = _FORMS + module.removeprefix(_CPU).partition(".")[0]
    try:
        return getattr(import_module(place), getattr(kernel, "__name__", ""), None)
    except ModuleNotFoundError as error:
        if error.name != place:
            raise
        return None


def _is_python(kernel):
    inner = getattr(kernel, "__wrapped__", None) or getattr(kernel, "func", None)
    return isinstance(kernel, FunctionType) or isinstance(inner, FunctionType)


def _described(found):
    """Return meta arrays in place of arrays among results, such as constants that a kernel made without `like`."""
    if isinstance(found, (tuple, list)):
        return type(found)(map(_described, found))
    return array(found) if isinstance(found, (np.ndarray, np.generic)) else found


def of_each_element(kernel, *args, **kwargs):
    """Describe a kernel that computes each element by itself, from what it returns for one."""
    operands = [a for a in args if isinstance(a, (ndarray, np.ndarray))]
    shapes = [a.shape for a in operands]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(broadcast_failure(*shapes)) from None
    like = next((a for a in operands if isinstance(a, ndarray) and a.shape == shape), None)
    small = [np.asarray(a) if isinstance(a, np.generic) else ufuncs.one_element(a, len(shape)) for a in args]
    return ufuncs.described(in_memory(kernel), small, kwargs, shape, like)


def _is_small(values):
    return _count(values) <= limits.elements


def _count(values):
    sizes = (_count(v) if isinstance(v, (tuple, list)) else getattr(v, "size", 0) for v in values)
    return sum(size for size in sizes if isinstance(size, int))


@silent
def of_zeros(kernel, args, kwargs):
    """Describe a kernel from what it returns for zeros, and ones in floating point, if these are few."""
    if not _is_small(args):
        raise no_shape(getattr(kernel, "__name__", "op"))
    try:
        return _described(in_memory(kernel)(*map(_filled, args), **{key: _filled(v) for key, v in kwargs.items()}))
    except np.linalg.LinAlgError:
        raise no_shape(getattr(kernel, "__name__", "op")) from None


def _filled(value):
    """Return an array in memory in place of a meta array."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_filled, value))
    if not isinstance(value, ndarray):
        return value
    found = np.lib.stride_tricks.as_strided(np.empty(_extent(value), value.dtype), value.shape, value.strides)
    found[...] = value.dtype.kind not in "biu"
    return found


def _extent(a):
    """Return the number of elements from the first to the last of an array in memory."""
    return 0 if not a.size else 1 + sum((n - 1) * step for n, step in zip(a.shape, a.strides)) // max(a.itemsize, 1)
