"""Elementwise functions of one tensor."""

from cygrad._core.graph.tensor cimport Tensor

cpdef Tensor exp(object input, Tensor out=*)
cpdef Tensor log(object input, Tensor out=*)
cpdef Tensor sqrt(object input, Tensor out=*)
cpdef Tensor sin(object input, Tensor out=*)
cpdef Tensor cos(object input, Tensor out=*)
cpdef Tensor tanh(object input, Tensor out=*)
cpdef Tensor sigmoid(object input, Tensor out=*)
cpdef Tensor relu(object input, Tensor out=*)
cpdef Tensor erf(object input, Tensor out=*)
cpdef Tensor square(object input, Tensor out=*)
cpdef Tensor reciprocal(object input, Tensor out=*)
cpdef Tensor abs(object input, Tensor out=*)
cpdef Tensor sgn(object input, Tensor out=*)
cpdef object positive(object input)

cpdef Tensor real_part(Tensor t)
cpdef Tensor conjugate(Tensor t)             # a real tensor is its own conjugate
cdef Tensor zeros_like(Tensor t)            # the gradient of piecewise constant functions

cpdef Tensor threshold_backward(Tensor g, Tensor result)
