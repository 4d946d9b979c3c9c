"""Rounding, and division with a whole quotient."""

from cygrad._core.tensor cimport Tensor

cpdef Tensor floor(object input, Tensor out=*)
cpdef Tensor trunc(object input, Tensor out=*)
cpdef Tensor floor_divide(object input, object other, Tensor out=*)
cpdef Tensor remainder(object input, object other, Tensor out=*)

cdef object operator_floordiv(object a, object b)
cdef object operator_mod(object a, object b)
cdef object operator_ifloordiv(Tensor a, object b)
cdef object operator_imod(Tensor a, object b)
