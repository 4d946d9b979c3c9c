"""Parsing of user-supplied arguments: dimensions, sizes, lists of tensors."""

from cygrad._core.graph.tensor cimport Tensor
from numpy cimport npy_intp

cpdef Tensor require(object value, str op, str name=*, int position=*)    # raises TypeError
cpdef str type_name(object value)                                        # as spelled in error messages
cpdef bint is_integer(object value)
cpdef Py_ssize_t integer(object value, str op, str name, int position) except? -1
cpdef int wrap_dim(Py_ssize_t dim, Py_ssize_t ndim) except -1        # makes dim nonnegative, or raises IndexError
cpdef int dim_argument(object dim, Py_ssize_t ndim, str op, str name, int position) except -1
cpdef tuple integers(object values, str op, str name, int position)  # from a list or tuple; raises TypeError otherwise
cpdef tuple variadic(tuple given, dict named, str op, str name)      # from `f(2, 3)`, `f((2, 3))` or `f(name=(2, 3))`
cpdef tuple wrap_dims(tuple dims, Py_ssize_t ndim)                   # raises RuntimeError for duplicates
cdef int shape_to_c(tuple shape, npy_intp* dims) except -1          # returns the number of dimensions
cpdef tuple broadcast_shape(tuple a, tuple b)                 # raises RuntimeError if they do not broadcast
cpdef tuple tensor_list(object tensors, str op)                      # a tuple of Tensors; raises TypeError otherwise
