"""Reading and writing parts of a tensor."""

from cygrad._core.graph.tensor cimport Tensor

cpdef object getitem(Tensor t, object index)
cpdef object setitem(Tensor t, object index, object value)
cpdef Tensor index(object input, tuple indices)         # Tensors, or None for a dimension taken whole
