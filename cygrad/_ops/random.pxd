"""Random numbers: arrays of them. TypeError for what is no generator, NotImplementedError for a type without them."""

from numpy cimport ndarray

from cygrad._core.dtypes cimport dtype
from cygrad._core.tensor cimport Tensor

cpdef object uniform(tuple shape, dtype wanted, object generator, str function)        # of [0, 1)
cpdef object gaussian(tuple shape, dtype wanted, object generator, str function)       # of mean 0 and variance 1
cpdef object whole_numbers(tuple shape, object low, object high, dtype wanted, object generator, str function)
cpdef object keep_mask(tuple shape, object probability, object generator)      # a bool array, True with that probability

# A tensor of these values, with its dimensions in the memory order of `t`.
cpdef Tensor laid_out(ndarray array, Tensor t, object memory_format, object requires_grad, str function)
