"""One of several values, element by element: the larger, the bounded, the one a condition picks."""

from cygrad._core.tensor cimport Tensor

cpdef Tensor maximum(object input, object other, Tensor out=*)
cpdef Tensor minimum(object input, object other, Tensor out=*)
cpdef Tensor clamp(object input, object min=*, object max=*, Tensor out=*)
cpdef object where(object condition, object input=*, object other=*, Tensor out=*)
