"""Arrays whose conjugation or negation is deferred.

Note [Unresolved arrays]
------------------------
In PyTorch `x.conj()` is a view: it shares the memory of `x` and is conjugated whenever it is read or written; the
imaginary part of such a view is negated in the same way. Here the array of such a tensor is an `Unresolved`: complex
memory seen conjugated, or real memory seen negated.

It is neither NumPy's nor CuPy's array, so loops, which take exactly these, cannot read its memory by mistake. Views of
the tensor are made by geometry alone (view_geometry.pyx) and stay unresolved. All else computes on `resolved` copies: the
functions of array_ops.pyx and `run_kernel` resolve what is neither on the CPU nor on a GPU, at the place where they would
look for a GPU, and `array_of` does so for Python. So ordinary arrays pay nothing. Results are written back by
`chunks.write` and `copying.copy_into`; a kernel that changes an array itself is lent a copy (`written_in_place` in
record.pyx). A copy from `array_of` is read-only, so that no write to it can be lost.
"""

from numpy cimport PyArray_ISCOMPLEX, PyArray_NDIM, ndarray

import numpy as np

from cygrad._kernels.device.waiting cimport settle
from cygrad._kernels.device import cupy_library

cdef object conjugate = np.conjugate, negative = np.negative


cdef class Unresolved:
    """An array of the conjugates of complex numbers, or of real numbers with their signs reversed, in other memory."""

    def __init__(self, memory):
        self.memory = memory

    shape = property(lambda self: self.memory.shape)
    strides = property(lambda self: self.memory.strides)
    dtype = property(lambda self: self.memory.dtype)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    itemsize = property(lambda self: self.memory.itemsize)
    nbytes = property(lambda self: self.memory.nbytes)
    flags = property(lambda self: self.memory.flags)

    def __len__(self):
        return len(self.memory)

    def __getitem__(self, index):
        return Unresolved(self.memory[index])

    def __setitem__(self, index, values):
        self.memory[index] = flipped(resolved(values), self.memory.dtype)

    def transpose(self, *axes):
        """Return the same elements with the axes in another order."""
        return Unresolved(self.memory.transpose(*axes))

    def swapaxes(self, first, second):
        """Return the same elements with two axes swapped."""
        return Unresolved(self.memory.swapaxes(first, second))

    def view(self):
        """Return another object for the same elements."""
        return Unresolved(self.memory.view())

    def copy(self, order="C"):
        """Return a resolved copy."""
        found = resolved(self)      # which is new
        return found if order == "K" or found.flags.c_contiguous else found.copy(order)

    def __getattr__(self, name):
        if name.startswith("__"):       # protocols by which libraries would read the memory as it is
            raise AttributeError(name)
        return getattr(resolved(self), name)

    def __array__(self, dtype=None, copy=None):
        return np.array(resolved(self), dtype=dtype, copy=None)

    def __array_function__(self, function, types, args, kwargs):
        return function(*all_resolved(args), **{name: resolved(value) for name, value in kwargs.items()})

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return getattr(ufunc, method)(*all_resolved(inputs), **kwargs)      # which refuses this class as `out`

    def __reduce__(self):
        return Unresolved, (self.memory,)


cdef object flipped(object a, object dtype):
    """Return the conjugates of numbers to be stored as a complex `dtype`, their negatives for a real one."""
    flip = np.conjugate if dtype.kind == "c" else np.negative
    if not cupy_library.is_array(a):
        return flip(a)
    with cupy_library.on_device(a.device.id):
        return flip(a)


cpdef object resolved(object a):
    """Return an `Unresolved` as an array of its elements, and anything else as it is."""
    if type(a) is not Unresolved:
        return a
    memory = (<Unresolved>a).memory
    if type(memory) is ndarray and PyArray_NDIM(<ndarray>memory):
        return conjugate(memory) if PyArray_ISCOMPLEX(<ndarray>memory) else negative(memory)
    settle()
    return flipped(memory, memory.dtype)[...]       # no scalar for a 0-dim array


def all_resolved(given):
    """Return arguments with their arrays resolved, including those within lists and tuples."""
    return [type(value)(all_resolved(value)) if type(value) in (list, tuple) else resolved(value) for value in given]


def read_only(a):
    """Return the elements of an `Unresolved` in an array that refuses to be written where the library can tell."""
    found = resolved(a)
    if isinstance(found, np.ndarray):
        found.flags.writeable = False
    return found


def memory_behind(a):
    """Return the array in whose memory the elements are: `a` itself unless it is unresolved."""
    return behind(a)


def is_deferred(a):
    """Whether an array is unresolved."""
    return is_unresolved(a)


cpdef object opposite(object a):
    """Return the same memory seen conjugated (if it is complex) or negated: as it is if `a` was unresolved."""
    return (<Unresolved>a).memory if is_unresolved(a) else Unresolved(a)


cpdef object shown_through(object a, object part):
    """Return a part of the memory of `a` as `a` shows it."""
    return Unresolved(part) if is_unresolved(a) else part
