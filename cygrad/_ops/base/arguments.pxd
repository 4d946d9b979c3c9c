"""Reading the arguments users give: dimensions, sizes, lists of tensors."""

from cygrad._core.graph.tensor cimport Tensor
from numpy cimport npy_intp

cpdef Tensor require(object value, str op, str name=*, int position=*)    # or TypeError
cpdef str type_name(object value)                                        # as errors spell it
cpdef bint is_integer(object value)
cpdef Py_ssize_t integer(object value, str op, str name, int position) except? -1
cpdef int wrap_dim(Py_ssize_t dim, Py_ssize_t ndim) except -1        # counted from the front, or IndexError
cpdef int dim_argument(object dim, Py_ssize_t ndim, str op, str name, int position) except -1
cpdef tuple integers(object values, str op, str name, int position)  # from a list or tuple, or TypeError
cpdef tuple variadic(tuple given, dict named, str op, str name)      # from `f(2, 3)`, `f((2, 3))` or `f(name=(2, 3))`
cpdef tuple wrap_dims(tuple dims, Py_ssize_t ndim)                   # all different, or RuntimeError
cdef int shape_to_c(tuple shape, npy_intp* dims) except -1          # gives the number of dimensions
cpdef tuple broadcast_shape(tuple a, tuple b)                 # of both together, or RuntimeError
cpdef tuple tensor_list(object tensors, str op)                      # a tuple of Tensors, or TypeError
