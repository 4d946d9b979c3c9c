"""Sums and means over dimensions."""

from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

# Dimensions to reduce, counted from the front; None for all. `op` names the function in errors.
cpdef tuple axes_argument(OpDef op, Tensor t, object dim, object axis)
cpdef bint flag_argument(OpDef op, object keepdim, object keepdims) except -1

cpdef Tensor restored(Tensor t, object shape, tuple axes, bint keepdim)   # reinserts the reduced dimensions, of size 1

cdef Tensor sum_over(Tensor t, tuple axes, bint keepdim)
