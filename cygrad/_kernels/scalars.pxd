"""One number and the array that holds it."""

from numpy cimport ndarray

cdef object value_of(object array)                          # of an array of one element, as a Python number
cdef ndarray array_of_number(object number, int typenum)    # 0-dim; the number must fit the type
