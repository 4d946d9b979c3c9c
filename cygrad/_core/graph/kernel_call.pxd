"""Runs the kernel of an op."""

from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.tensor cimport Tensor

# `arrays` may contain numbers and None; `out` is the tensor that the result will be written into, if any.
cdef object run_kernel(OpDef op, tuple arrays, tuple args, Tensor out=*)
