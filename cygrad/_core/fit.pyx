"""Undoing broadcasting and promotion, in one place for all rules.

A rule returns the gradient of an input in the shape and dtype that the *result* had. Where the input was smaller,
its gradient is the sum over what broadcasting repeated; where it was of another dtype, the cast.
"""

from numpy cimport ndarray

from cygrad._core.dtypes cimport COMPLEX, category_of_num, dtype_of_num
from cygrad._core.node cimport Node, meta_of
from cygrad._core.opdef cimport lookup
from cygrad._core.state cimport NO_GRAD, thread_state
from cygrad._core.tensor cimport Tensor, wrap_in_mode
from cygrad._core import messages
from cygrad._kernels.loops cimport cast
from cygrad._kernels.reduce cimport sum_to


cdef Tensor fit_gradient(Tensor grad, object target, int nr, Node source, int index):
    cdef int num
    if isinstance(target, Tensor):
        shape = (<Tensor>target).array.shape
        num = (<Tensor>target).array.dtype.num
    else:
        shape, num = meta_of(<Node>target, nr)
    if grad.array.shape != shape:
        if not expands_to(shape, grad.array.shape):
            raise RuntimeError(messages.invalid_gradient_shape(source, index, grad.array.shape, shape))
        if thread_state().modes & NO_GRAD and type(grad.array) is ndarray:
            grad = wrap_in_mode(sum_to(<ndarray>grad.array, shape))
        else:
            grad = lookup("sum_to_size").entry(grad, shape)
    if grad.array.dtype.num != num:
        if category_of_num(grad.array.dtype.num) == COMPLEX and category_of_num(num) != COMPLEX:
            grad = lookup("real_part").entry(grad)
        if thread_state().modes & NO_GRAD and type(grad.array) is ndarray:
            grad = wrap_in_mode(cast(<ndarray>grad.array, num))
        else:
            grad = grad.to(dtype_of_num(num))
    return grad


cdef bint expands_to(tuple small, tuple large):
    """Could broadcasting have made `large` out of `small`?"""
    if len(small) > len(large):
        return False
    return all(s == 1 or s == l for s, l in zip(reversed(small), reversed(large)))
