"""Arrays from what users hand in: numbers, nested sequences, arrays, tensors."""

from numpy cimport ndarray

from cygrad._core.types.dtypes cimport dtype

cdef ndarray data_array(object data, dtype wanted)      # always new memory; `wanted` None: the type PyTorch infers
cpdef tuple checked_lengths(tuple shape)                 # or RuntimeError: no array is that long
cdef ndarray canonical(ndarray array)                   # one we know how to hold, or TypeError
