"""Views: tensors that share memory with others."""

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.opdef cimport OpDef

cdef Tensor viewed(Tensor t, tuple shape)               # RuntimeError if strides cannot express it
cdef Tensor reshaped(Tensor t, tuple shape)             # a view if strides can express it, else a copy
cdef Tensor expanded(Tensor t, tuple shape)
cdef Tensor permuted(Tensor t, tuple dims)
cpdef tuple infer_shape(tuple shape, Py_ssize_t numel)   # with -1 replaced

cpdef Tensor transpose(object input, object dim0, object dim1)
cpdef Tensor t(object input)
cpdef Tensor unsqueeze(object input, object dim=*, object axis=*)
cpdef Tensor alias(object input)

# change the shape and strides of `x` itself, recorded by `op`; call may_look_otherwise first to check that it is allowed
cpdef int may_look_otherwise(Tensor x, str op_name) except -1
cpdef Tensor look_otherwise(OpDef op, Tensor x, object array, tuple args)

# rows that indexing composes views from
cdef OpDef UNSQUEEZE, ALIAS
