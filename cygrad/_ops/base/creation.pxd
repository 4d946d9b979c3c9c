"""Shared parts of all functions that create tensors: size, dtype and device of the new tensor."""

from numpy cimport ndarray

from cygrad._core.types.dtypes cimport dtype
from cygrad._core.graph.tensor cimport Tensor

cpdef tuple size_of(tuple given, dict named, str function)      # from f(2, 3), f((2, 3)) or f(size=(2, 3))
cpdef tuple check_size(tuple size, str function=*)              # raises RuntimeError for a negative length
cpdef object number(object value, str function, str name, int position)     # a Python number, or TypeError
cpdef dtype type_of_new(object wanted, object out, dtype default, str function)
cpdef object check_place(object device, object pin_memory, bint can_pin=*)  # GPU number, None (CPU), or PINNED
cpdef object place_beside(Tensor t, object device, object pin_memory, bint can_pin=*)  # the same; defaults to that of `t`
cpdef object place_of(Tensor t)                                 # the place of a tensor

cpdef object blank_like(Tensor t, dtype wanted, object memory_format)
cpdef object uninitialized(object array)                       # marks the elements if the program is deterministic
cpdef object filled(tuple size, object value, dtype wanted, object place=*)    # uninitialized if `value` is None

# wraps a new array in a tensor of the class of `model`; `given`: arguments that the result does not tell, for dispatch
cpdef Tensor fresh(object array, object requires_grad, str function, Tensor model=*, object place=*, tuple given=*)
# the same, or writes the array into `out` if that is given
cpdef Tensor delivered(object array, object out, object requires_grad, str function, object place=*, tuple given=*)
# a copy of user-supplied data
cpdef Tensor from_values(object data, dtype wanted, object requires_grad, str function, object place=*)
cpdef Tensor sharing(ndarray array)                             # a tensor that shares the memory of an array
