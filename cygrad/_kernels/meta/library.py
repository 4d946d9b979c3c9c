"""The meta arrays' library, with the functions of NumPy or CuPy that make arrays; others of NumPy dispatch themselves.

Where code takes the library of its arrays (`cupy_library.made`, `module_of`), this module stands for it.
"""

import math

import numpy as np

from cygrad._kernels.meta.array import ndarray, ordered_like


def empty(shape, dtype=float, order="C"):
    """Return a meta array."""
    return ndarray(shape, dtype, order=order)


zeros = ones = empty


def full(shape, fill_value, dtype=None):
    """Return a meta array, of the type of the value unless a dtype is given."""
    return ndarray(shape, np.asarray(fill_value).dtype if dtype is None else dtype)


def empty_like(prototype, dtype=None, order="K", subok=True, shape=None):
    """Return a meta array with the shape, dtype and memory order of another, unless others are given."""
    wanted = np.shape(prototype) if shape is None else (shape,) if np.ndim(shape) == 0 else tuple(shape)
    dtype = prototype.dtype if dtype is None else dtype
    return ordered_like(prototype, wanted, dtype, order) if isinstance(prototype, ndarray) else ndarray(wanted, dtype)


zeros_like = ones_like = empty_like


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None):
    """Return a meta array with the shape of another."""
    return empty_like(a, dtype, order, subok, shape)


def array(a, dtype=None, copy=True, order="K"):
    """Return a meta array with the shape and dtype of an array, a number or nested lists."""
    if isinstance(a, ndarray):
        return a.astype(a.dtype if dtype is None else dtype, order, copy=copy)
    a = np.asarray(a, dtype)
    strides = a.strides if all(a.strides) and min(a.strides, default=0) >= 0 else None
    return ndarray(a.shape, a.dtype, strides=None if a.flags.c_contiguous else strides)


def asarray(a, dtype=None, order="K"):
    """Return `a` itself if it is a meta array of that type, else a new one."""
    return array(a, dtype, False, order)


def ascontiguousarray(a, dtype=None):
    """Return a meta array in C order, itself if it already is. A 0-d array becomes 1-d."""
    found = asarray(a, dtype)
    found = found if found.ndim else found.reshape(1)
    return found if found.flags.c_contiguous else found.copy("C")


def arange(start, stop=None, step=1, dtype=None):
    """Return a meta array of as many numbers as NumPy's function yields."""
    start, stop = (0, start) if stop is None else (start, stop)
    dtype = np.result_type(start, stop, step) if dtype is None else dtype
    return ndarray((max(math.ceil((stop - start) / step), 0),), dtype)


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    """Return a meta array of `num` numbers."""
    return ndarray((num,), np.result_type(start, stop, 1.0) if dtype is None else dtype)


def eye(N, M=None, k=0, dtype=float, order="C"):
    """Return a meta matrix."""
    return ndarray((N, N if M is None else M), dtype)


def tri(N, M=None, k=0, dtype=float):
    """Return a meta matrix."""
    return ndarray((N, N if M is None else M), dtype)


def __getattr__(name):
    """Return NumPy's function, which dispatches on its arguments."""
    return getattr(np, name)
