"""One of two values, element by element: the one a condition picks."""

from cygrad._core.dtypes cimport dtype
from cygrad._core.tensor cimport Tensor

cpdef object where(object condition, object input=*, object other=*, Tensor out=*)
cpdef int check_fits(object number, dtype kind) except -1       # is it too large for the type it is to have?
