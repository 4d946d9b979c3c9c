"""Reads and writes parts of a tensor: `x[...]` and `x[...] = value`."""

from cygrad._core.graph.tensor cimport Tensor

cpdef object getitem(Tensor t, object index)
cpdef object setitem(Tensor t, object index, object value)
cpdef Tensor index(object input, tuple indices)         # tensors, or None for a dimension taken whole
