"""Converts one-element tensors to Python numbers."""

from cygrad._core.graph.tensor cimport Tensor

cdef object item(Tensor t)
cdef bint truth(Tensor t) except -1
cdef object as_float(Tensor t)
cdef object as_int(Tensor t)
cdef object as_complex(Tensor t)
cdef object as_index(Tensor t)
