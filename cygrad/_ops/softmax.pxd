"""Softmax and its logarithm."""

from cygrad._core.tensor cimport Tensor

# along dimension `dim`, counted from the front
cdef Tensor softmax_along(Tensor t, int dim)
cpdef Tensor log_softmax_along(Tensor t, int dim)

cdef Tensor as_wanted(Tensor t, object wanted, str name)    # in the type to compute in
