"""Runs the kernel of an op: on a GPU, chunk by chunk, or on all elements at once."""

from numpy cimport NPY_FLOAT, NPY_FLOAT16, ndarray, PyArray_ITEMSIZE, PyArray_SIZE, PyArray_TYPE

from functools import partial
from types import FunctionType

import numpy as np

from cygrad._core.graph.opdef cimport ELEMENTWISE, SELECTS, OpDef
from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.base.numpy_fallback import refuse_op_in_float8
from cygrad._kernels.device import gpu_forms
from cygrad._kernels.cpu.base.arrays cimport cast, is_on_cpu, order_in_memory
from cygrad._kernels.device.unresolved cimport is_unresolved, resolved
from cygrad._kernels.platform.memory_pool cimport call_kernel
from cygrad._kernels.tape.tape cimport tape_open


cdef inline object as_array(object value):
    """Convert a kernel's result to an array: NumPy turns 0-dim arrays into scalars."""
    return np.asarray(value) if isinstance(value, np.generic) else value


cdef inline bint is_half(ndarray array) noexcept:
    """Whether the elements are float16, or of another package's type, which is bfloat16."""
    return PyArray_TYPE(array) == NPY_FLOAT16 or PyArray_TYPE(array) >= 256


cdef object run_kernel(OpDef op, tuple arrays, tuple args, Tensor out=None):
    """Return a kernel's result; for large elementwise kernels with `out`, pending chunks that `write_into` computes."""
    cdef tuple axes
    if others_are_among(arrays):
        arrays = tuple([resolved(array) for array in arrays])
        if others_are_among(arrays):
            return gpu_forms.run(op.kernel, arrays, args, bool(op.flags & ELEMENTWISE))
    if out is None and op.flags & ELEMENTWISE and len(arrays) > 1:
        axes = order_in_memory(arrays)
        if axes is not None:        # kernels produce row-major results, so make the operands' memory order the row order
            return out_of_order(run_here(op, in_order(arrays, axes), args, None), axes)
    return run_here(op, arrays, args, out)


cdef object run_here(OpDef op, tuple arrays, tuple args, Tensor out):
    if op.flags & ELEMENTWISE and (out is not None or type(op.kernel) is FunctionType):     # compiled ones make few passes
        for array in arrays:
            if type(array) is ndarray and PyArray_SIZE(<ndarray>array) > chunks.SIZE:
                if out is not None and not tape_open and chunks.can_write(arrays, out.array):
                    return chunks.pending(partial(run_block, op, args), arrays)
                return call_kernel(partial(run_blocks, op, args), arrays, ())
    return run_whole(op, arrays, args)


cdef tuple in_order(tuple arrays, tuple axes):
    """Return broadcastable arrays with their result's axes permuted to this order."""
    ndim = len(axes)
    return tuple([a[(None,) * (ndim - a.ndim)].transpose(axes) if a.ndim else a for a in arrays])


cdef object out_of_order(object found, tuple axes):
    """Undo the axis permutation of `in_order` on an array or a tuple of arrays."""
    if type(found) is tuple:
        return tuple([out_of_order(a, axes) for a in found])
    return found.transpose(np.argsort(axes))


cdef bint others_are_among(tuple arrays) noexcept:
    """Whether one of these arrays, numbers and other values is on a GPU or unresolved."""
    for array in arrays:
        if not is_on_cpu(array) and (is_unresolved(array) or gpu_forms.is_array(array)):
            return True
    return False


def run_blocks(OpDef op, tuple args, *arrays):
    return chunks.in_blocks(partial(run_block, op, args), arrays)


def run_block(OpDef op, tuple args, *arrays):
    return run_whole(op, arrays, args)


cdef object run_whole(OpDef op, tuple arrays, tuple args):
    """Return a kernel's result. As in PyTorch, kernels that compute receive half-precision operands as float32."""
    cdef bint computes = op.flags & (ELEMENTWISE | SELECTS) != ELEMENTWISE | SELECTS
    for array in arrays:
        if computes and type(array) is ndarray and is_half(<ndarray>array):
            if PyArray_ITEMSIZE(<ndarray>array) == 1:
                refuse_op_in_float8(op.name, array)
            found = as_array(call_kernel(op.kernel, tuple(map(as_float32, arrays)), args))
            return cast(found, PyArray_TYPE(<ndarray>array)) if found.dtype == np.float32 else found
    return as_array(call_kernel(op.kernel, arrays, args))


def as_float32(value):
    """Convert an array of half precision to float32."""
    if type(value) is ndarray and is_half(<ndarray>value):
        return cast(value, NPY_FLOAT)
    return value
