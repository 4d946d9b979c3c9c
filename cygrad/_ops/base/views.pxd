"""Views: other looks at the same memory."""

from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.opdef cimport OpDef

cdef Tensor viewed(Tensor t, tuple shape)               # RuntimeError if strides can not express it
cdef Tensor reshaped(Tensor t, tuple shape)             # a view if strides can, else a copy
cdef Tensor expanded(Tensor t, tuple shape)
cdef Tensor permuted(Tensor t, tuple dims)
cpdef tuple infer_shape(tuple shape, Py_ssize_t numel)   # with -1 replaced

cpdef Tensor transpose(object input, object dim0, object dim1)
cpdef Tensor t(object input)
cpdef Tensor unsqueeze(object input, object dim=*, object axis=*)
cpdef Tensor alias(object input)

# change how `x` itself looks at its memory, recorded by `op`; first ask whether that is allowed
cpdef int may_look_otherwise(Tensor x, str op_name) except -1
cpdef Tensor look_otherwise(OpDef op, Tensor x, object array, tuple args)

# rows of which indexing makes its chains of views
cdef OpDef UNSQUEEZE, ALIAS
