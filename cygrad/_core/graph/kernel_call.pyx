"""Running the kernel of an op: on a GPU, block by block, or on all elements at once."""

from numpy cimport NPY_FLOAT, NPY_FLOAT16, ndarray, PyArray_SIZE, PyArray_TYPE

from functools import partial
from types import FunctionType

import numpy as np

from cygrad._core.graph.opdef cimport ELEMENTWISE, SELECTS, OpDef
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.cpu.base.arrays cimport cast, is_on_cpu, order_in_memory
from cygrad._kernels.platform.memory_pool cimport call_kernel


cdef inline object as_array(object value):
    """What a kernel gave: NumPy makes numbers of arrays without dimensions."""
    return np.asarray(value) if isinstance(value, np.generic) else value


cdef inline bint is_half(ndarray array) noexcept:
    """Is the type of the elements float16 or another package's, which is bfloat16?"""
    return PyArray_TYPE(array) == NPY_FLOAT16 or PyArray_TYPE(array) >= 256


cdef object run_kernel(OpDef op, tuple arrays, tuple args, Tensor out=None):
    """The result of a kernel; of an elementwise one in Python, blocks of a large one, which `write_into` may compute."""
    cdef tuple axes
    if gpu_is_among(arrays):
        return gpu_forms.run(op.kernel, arrays, args)
    if out is None and op.flags & ELEMENTWISE and len(arrays) > 1:
        axes = order_in_memory(arrays)
        if axes is not None:        # a kernel makes rows: so those are what lies together in the operands
            return out_of_order(run_here(op, in_order(arrays, axes), args, None), axes)
    return run_here(op, arrays, args, out)


cdef object run_here(OpDef op, tuple arrays, tuple args, Tensor out):
    if op.flags & ELEMENTWISE and (out is not None or type(op.kernel) is FunctionType):     # compiled: few passes
        for array in arrays:
            if type(array) is ndarray and PyArray_SIZE(<ndarray>array) > chunks.SIZE:
                if out is not None and chunks.can_write(arrays, out.array):
                    return chunks.pending(partial(run_block, op, args), arrays)
                return call_kernel(partial(run_blocks, op, args), arrays, ())
    return run_whole(op, arrays, args)


cdef tuple in_order(tuple arrays, tuple axes):
    """Arrays that broadcast, with the axes of their result in this order."""
    ndim = len(axes)
    return tuple([a[(None,) * (ndim - a.ndim)].transpose(axes) if a.ndim else a for a in arrays])


cdef object out_of_order(object found, tuple axes):
    """An array, or a tuple of some, with the axes at the places from which they were brought in order."""
    if type(found) is tuple:
        return tuple([out_of_order(a, axes) for a in found])
    return found.transpose(np.argsort(axes))


cdef bint gpu_is_among(tuple arrays) noexcept:
    """Is one of these arrays, numbers and others on a GPU?"""
    for array in arrays:
        if not is_on_cpu(array) and gpu_forms.is_array(array):
            return True
    return False


def run_blocks(OpDef op, tuple args, *arrays):
    return chunks.in_blocks(partial(run_block, op, args), arrays)


def run_block(OpDef op, tuple args, *arrays):
    return run_whole(op, arrays, args)


cdef object run_whole(OpDef op, tuple arrays, tuple args):
    """The result of a kernel. Numbers of half precision it gets as float32, as PyTorch computes, if it does compute."""
    cdef bint computes = op.flags & (ELEMENTWISE | SELECTS) != ELEMENTWISE | SELECTS
    for array in arrays:
        if computes and type(array) is ndarray and is_half(<ndarray>array):
            found = as_array(call_kernel(op.kernel, tuple(map(as_float32, arrays)), args))
            return cast(found, PyArray_TYPE(<ndarray>array)) if found.dtype == np.float32 else found
    return as_array(call_kernel(op.kernel, arrays, args))


def as_float32(value):
    """An array of half precision as float32."""
    if type(value) is ndarray and is_half(<ndarray>value):
        return cast(value, NPY_FLOAT)
    return value
