"""Copies, conversions, and in-place writes."""

from cygrad._core.types.dtypes cimport dtype
from cygrad._core.graph.tensor cimport Tensor

cpdef Tensor clone(object input, object memory_format=*)
cpdef Tensor contiguous(object input, object memory_format=*)
cdef Tensor converted(Tensor t, dtype wanted)               # `t` itself if it already has that dtype
cpdef Tensor zeros_of(Tensor t)                             # zeros of the same shape and dtype, without history

# In-place writes with history; `label` names the change in error messages.
cdef Tensor copy_into(Tensor out, Tensor source, str label, object non_blocking=*)
cdef Tensor fill_with(Tensor out, object value, str label)  # a number or a 0-dim tensor
cdef int warn_of_lost_part(Tensor source, dtype target) except -1       # when complex numbers become real
cpdef object apart(object value, Tensor out)                 # `value`, or a copy if it aliases `out`
