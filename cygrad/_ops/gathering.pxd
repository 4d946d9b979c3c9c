"""Reading and adding along one dimension by index, and filling by mask."""

from cygrad._core.tensor cimport Tensor

# Save a value beside the inputs, for the rule of what made `result`; it becomes no edge of the graph.
cdef int keep(Tensor result, int slot, object value) except -1

# May expanded memory be written to here, with a warning? Not where the change is recorded.
cdef bint writes_expanded(Tensor t, object value, str name) except -1

cpdef Tensor index_select(object input, object dim, object index, Tensor out=*)
cpdef Tensor index_add(object input, object dim, object index, object source, object alpha=*, Tensor out=*)
cpdef Tensor gather(object input, object dim, object index, bint sparse_grad=*, Tensor out=*)
cpdef Tensor scatter_add(object input, object dim, object index, object src, Tensor out=*)
cpdef Tensor masked_fill(object input, object mask, object value, Tensor out=*)
