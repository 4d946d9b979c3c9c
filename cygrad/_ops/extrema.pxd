"""The largest and smallest elements, and where they are."""

from cygrad._core.tensor cimport Tensor

cpdef Tensor value_selecting_reduction(Tensor t, Tensor indices, int dim, bint keepdim)
cpdef Tensor value_selecting_reduction_backward(Tensor g, Tensor indices, tuple shape, int dim, bint keepdim)
