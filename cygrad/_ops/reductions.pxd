"""Sums, means and products over dimensions."""

from cygrad._core.opdef cimport OpDef
from cygrad._core.tensor cimport Tensor

# Dimensions to reduce, counted from the front; None for all. The signatures are for the TypeError.
cdef tuple axes_argument(OpDef op, Tensor t, object dim, object axis, tuple signatures)
cdef bint flag_argument(OpDef op, object keepdim, object keepdims) except -1
cdef Tensor finish(OpDef op, object array, Tensor t, tuple args, Tensor out)    # record, or write into `out`

cdef Tensor restored(Tensor t, tuple shape, tuple axes, bint keepdim)   # with the reduced dimensions again, of size 1
cdef Tensor spread(Tensor t, tuple shape, tuple axes, bint keepdim)     # and repeated along them
cdef Py_ssize_t reduced_count(tuple shape, tuple axes) except -1        # elements that go into one

cdef Tensor sum_over(Tensor t, tuple axes, bint keepdim)
cdef Tensor mean_over(Tensor t, tuple axes, bint keepdim)
cpdef Tensor logsumexp(object input, object dim=*, bint keepdim=*, object axis=*, object keepdims=*, Tensor out=*)
