"""Slicing, splitting and joining: select, narrow, slice, unbind, cat, stack."""

from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

cpdef Tensor select(object input, object dim, object index)
cpdef Tensor narrow(object input, object dim, object start, object length)
cpdef Tensor slice(object input, Py_ssize_t dim, Py_ssize_t start, Py_ssize_t length, Py_ssize_t step=*)
cpdef Tensor slice_backward(object input, tuple shape, int dim, Py_ssize_t start, Py_ssize_t step)
cpdef tuple unbind(object input, object dim=*, object axis=*)
cpdef Tensor cat(object tensors, object dim=*, Tensor out=*, object axis=*)
cpdef Tensor stack(object tensors, object dim=*, Tensor out=*, object axis=*)

# rows that indexing composes views from
cdef OpDef SELECT, SLICE
