"""Addition, subtraction, multiplication, division, powers, and the Python operators for them."""

from cygrad._core.graph.tensor cimport Tensor

cpdef Tensor add(object input, object other, object alpha=*, Tensor out=*)
cpdef Tensor sub(object input, object other, object alpha=*, Tensor out=*)
cpdef Tensor mul(object input, object other, Tensor out=*)
cpdef Tensor div(object input, object other, Tensor out=*, object rounding_mode=*)
cpdef Tensor pow(object input, object exponent, Tensor out=*)
cpdef Tensor neg(object input, Tensor out=*)

# For rules that no longer need the gradient g, whose memory may hold the result (Note [Spent gradients]).
cdef Tensor spend_mul(object g, object other)
cdef Tensor spend_div(object g, object other)

cdef object operand(object value)               # a tensor or number usable with an operator, or NotImplemented

cdef object operator_add(object a, object b)
cdef object operator_sub(object a, object b)
cdef object operator_mul(object a, object b)
cdef object operator_div(object a, object b)
cdef object operator_pow(object a, object b)
cdef object operator_rdiv(Tensor a, object b)           # b / a
cdef object operator_ipow(Tensor a, object b)
cdef object operator_iadd(Tensor a, object b)
cdef object operator_isub(Tensor a, object b)
cdef object operator_imul(Tensor a, object b)
cdef object operator_idiv(Tensor a, object b)

# Operators of ops in families written in Python, looked up by row name; in place if `out` is given.
cdef object operator_named(str name, str symbol, object a, object b, Tensor out)
cdef object operator_invert(Tensor a)
