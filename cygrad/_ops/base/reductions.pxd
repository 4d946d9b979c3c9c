"""Sums, means and products over dimensions."""

from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

# Dimensions to reduce, counted from the front; None for all. The signatures are for the TypeError.
cpdef tuple axes_argument(OpDef op, Tensor t, object dim, object axis)
cpdef bint flag_argument(OpDef op, object keepdim, object keepdims) except -1

cpdef Tensor restored(Tensor t, object shape, tuple axes, bint keepdim)   # with the reduced dimensions again, of size 1

cdef Tensor sum_over(Tensor t, tuple axes, bint keepdim)
