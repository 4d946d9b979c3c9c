"""Products to which something is added."""

from cygrad._core.tensor cimport Tensor

cpdef Tensor linear(object input, object weight, object bias=*)
