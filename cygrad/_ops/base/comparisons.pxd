"""Comparisons and `where`."""

from cygrad._core.types.dtypes cimport dtype
from cygrad._core.graph.tensor cimport Tensor

cdef object compare(object a, object b, int op)         # op: Py_LT, ...

cpdef object where(object condition, object input=*, object other=*, Tensor out=*)
cpdef int check_fits(object number, dtype kind) except -1       # raises if a number is too large for the dtype
