"""Builds arrays from user input: numbers, nested sequences, arrays, tensors."""

from numpy cimport ndarray

from cygrad._core.types.dtypes cimport dtype

cdef ndarray data_array(object data, dtype wanted)      # always new memory; if `wanted` is None, the dtype PyTorch infers
cpdef tuple checked_lengths(tuple shape)                 # raises RuntimeError if no array can have this shape
cdef ndarray canonical(ndarray array)                   # in a representation we support, or TypeError
