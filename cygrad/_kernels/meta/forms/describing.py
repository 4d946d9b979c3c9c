"""What the forms of several families share: each is called as `form(kernel, *arguments of the kernel)`."""

import numpy as np

from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.device.dispatch import in_memory
from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.errors import no_shape
from cygrad._kernels.meta.running import of_each_element

by_element = of_each_element


def like_first(kernel, a, *args, **kwargs):
    """The result has the shape and dtype of the first argument."""
    return ndarray(a.shape, a.dtype)


def like_second(kernel, first, a, *args, **kwargs):
    """The result has the shape and dtype of the second argument."""
    return ndarray(a.shape, a.dtype)


def changed(kernel, *args, **kwargs):
    """The kernel changes an argument, and returns nothing."""


def changes_first(kernel, a, *args, **kwargs):
    """The kernel changes its first argument, and returns it."""
    return a


def refused(name):
    """Return a form that raises the error for a result whose shape depends on elements."""

    def form(kernel, *args, **kwargs):
        raise no_shape(name)

    return form


def reduced_shape(shape, axes, keepdim=False):
    """Return the shape that is left of `shape` without the axes: one, several, or None for all."""
    ndim = len(shape)
    axes = range(ndim) if axes is None else (axes,) if np.ndim(axes) == 0 else axes
    gone = {axis % ndim for axis in axes if ndim}
    return tuple(1 if i in gone else n for i, n in enumerate(shape) if keepdim or i not in gone)


@silent
def dtype_of(kernel, a, *args, **kwargs):
    """Return the dtype of what a kernel returns for an array of one element."""
    small = np.zeros((1,) * a.ndim, np.float32 if a.dtype.itemsize == 2 and a.dtype.kind not in "biu" else a.dtype)
    found = in_memory(kernel)(small, *args, **kwargs).dtype
    return a.dtype if found == small.dtype else found


def stack_of(*arrays):
    """Return the shape that all but the last two dimensions of arrays broadcast to."""
    return np.broadcast_shapes(*(a.shape[:-2] for a in arrays))


def real_type(dtype):
    """Return the type of the real parts."""
    return np.empty(0, dtype).real.dtype


def complex_type(dtype):
    """Return the complex type with parts of a floating-point type."""
    return np.result_type(dtype, np.complex64)


def with_arrays_in_memory(form):
    """Mark the form of a kernel that takes arrays in memory beside meta arrays, such as lengths of sequences."""
    form.takes_arrays_in_memory = True
    return form
