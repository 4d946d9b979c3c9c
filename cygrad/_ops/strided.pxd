"""Views by strides, and what gradients of changed views are made of."""

from cygrad._core.tensor cimport Tensor

# A view's geometry is (shape, strides, offset), a base's (shape, strides), in bytes.
cpdef Tensor strided_sum(object input, tuple view, tuple base)
cpdef Tensor strided_gather(object input, tuple view, tuple base)
cpdef Tensor strided_scatter(object input, object part, tuple view, tuple base)
