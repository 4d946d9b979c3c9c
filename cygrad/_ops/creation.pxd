"""What functions that make tensors have in common: size, type and place of the new tensor."""

from numpy cimport ndarray

from cygrad._core.dtypes cimport dtype
from cygrad._core.tensor cimport Tensor

cpdef tuple size_of(tuple given, dict named, str function)      # from f(2, 3), f((2, 3)) or f(size=(2, 3))
cpdef tuple check_size(tuple size, str function=*)              # RuntimeError for a negative length
cpdef object number(object value, str function, str name, int position)     # a Python number, or TypeError
cpdef dtype type_of_new(object wanted, object out, dtype default, str function)
cpdef int check_place(object device, object pin_memory) except -1

cpdef ndarray blank_like(Tensor t, dtype wanted, object memory_format)
cpdef ndarray filled(tuple size, object value, dtype wanted)    # uninitialised if `value` is None

# a tensor of its own around a new array, of the class of `model`
cpdef Tensor fresh(object array, object requires_grad, str function, Tensor model=*)
cpdef Tensor delivered(object array, object out, object requires_grad, str function)     # written into `out` if given
cpdef Tensor from_values(object data, dtype wanted, object requires_grad, str function)  # a copy of what the user gave
cpdef Tensor sharing(ndarray array)                             # on the memory of an array
