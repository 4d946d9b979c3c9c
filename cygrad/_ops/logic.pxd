"""Comparisons, truth values, bits."""

from cygrad._core.tensor cimport Tensor

cdef object compare(object a, object b, int op)         # op: Py_LT, ...

cpdef Tensor logical_and(object input, object other, Tensor out=*)
cpdef Tensor logical_not(object input, Tensor out=*)
cpdef Tensor bitwise_not(object input, Tensor out=*)

cdef object operator_and(object a, object b)
cdef object operator_or(object a, object b)
cdef object operator_xor(object a, object b)
cdef object operator_iand(Tensor a, object b)
cdef object operator_ior(Tensor a, object b)
cdef object operator_ixor(Tensor a, object b)
cdef object operator_invert(Tensor a)
