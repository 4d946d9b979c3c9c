"""Products of matrices and vectors."""

from numpy cimport ndarray

from cygrad._core.opdef cimport OpDef
from cygrad._core.tensor cimport Tensor

cpdef Tensor matmul(object input, object other, Tensor out=*)
cpdef Tensor mm(object input, object mat2, Tensor out=*)
cpdef Tensor bmm(object input, object mat2, Tensor out=*)
cpdef Tensor mv(object input, object vec, Tensor out=*)
cpdef Tensor dot(object input, object tensor, Tensor out=*)

cdef object operator_matmul(object a, object b)

# of the affine family: products with one factor transposed, and the checks they share
cdef Tensor times(Tensor a, Tensor b, bint transpose_a, bint transpose_b)
cdef Tensor as_matrix(Tensor a)                         # a stack of matrices as one tall matrix
cdef tuple fold(tuple shape)                            # its shape
cdef Tensor without(Tensor a, Py_ssize_t dim)           # a dimension of length 1 less
cdef inline bint same_type(Tensor a, Tensor b):
    return a.array.dtype.num == b.array.dtype.num
cdef str type_hint(Tensor a, Tensor b)
cdef int check_product(tuple left, tuple right, Tensor a, Tensor b) except -1
cdef int check_matrix_vector(tuple matrix, tuple vector, Tensor a, Tensor b, object size=*) except -1
cdef int check_stacks(Tensor a, Tensor b) except -1
cdef int check_stack_sizes(Tensor a, Tensor b) except -1
cdef int check_not_bool(Tensor a, str kernel) except -1
