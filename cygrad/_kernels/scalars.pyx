"""One number and the array that holds it.

`ndarray.item()` takes 70 ns, most of it on the way there; reading the memory takes 10.
"""

cimport numpy as cnp
from numpy cimport (
    NPY_BOOL, NPY_DOUBLE, NPY_FLOAT, NPY_INT32, NPY_INT64, NPY_UINT8, PyArray_DATA, PyArray_TYPE, ndarray)

from cygrad._kernels.arrays cimport empty, is_plain

import numpy as np

cnp.import_array()


cdef object value_of(object array):
    cdef const void* memory
    cdef int num
    if type(array) is ndarray and is_plain(<ndarray>array):
        memory = PyArray_DATA(<ndarray>array)
        num = PyArray_TYPE(<ndarray>array)
        if num == NPY_FLOAT:
            return <double>(<const float*>memory)[0]
        if num == NPY_DOUBLE:
            return (<const double*>memory)[0]
        if num == NPY_INT64:
            return (<const cnp.npy_int64*>memory)[0]
        if num == NPY_BOOL:
            return True if (<const unsigned char*>memory)[0] else False
        if num == NPY_INT32:
            return (<const cnp.npy_int32*>memory)[0]
        if num == NPY_UINT8:
            return (<const unsigned char*>memory)[0]
    return array.item()


cdef ndarray array_of_number(object number, int typenum):
    cdef ndarray out = empty(0, NULL, typenum)
    if typenum == NPY_FLOAT:
        (<float*>PyArray_DATA(out))[0] = <float><double>number
    elif typenum == NPY_DOUBLE:
        (<double*>PyArray_DATA(out))[0] = number
    elif typenum == NPY_INT64:
        (<cnp.npy_int64*>PyArray_DATA(out))[0] = number
    elif typenum == NPY_BOOL:
        (<unsigned char*>PyArray_DATA(out))[0] = 1 if number else 0
    else:
        with np.errstate(all="ignore"):
            out[()] = number
    return out
