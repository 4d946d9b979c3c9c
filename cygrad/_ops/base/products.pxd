"""Products of matrices and vectors."""

from numpy cimport ndarray

from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

cpdef Tensor matmul(object input, object other, Tensor out=*)
cpdef Tensor mm(object input, object mat2, Tensor out=*)
cpdef Tensor bmm(object input, object mat2, Tensor out=*)
cpdef Tensor mv(object input, object vec, Tensor out=*)
cpdef Tensor dot(object input, object tensor, Tensor out=*)

cdef object operator_matmul(object a, object b)

# for gradients and other families: products with transposed factors; a batch of matrices as one tall matrix
cpdef Tensor times(Tensor a, Tensor b, bint transpose_a, bint transpose_b)
cpdef Tensor as_matrix(Tensor a)
