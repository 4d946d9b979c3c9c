"""Array operations for the core and the compiled families that work on both NumPy and CuPy arrays."""

from cygrad._kernels.cpu.base.arrays cimport is_on_cpu
from numpy cimport PyArray_DIMS, PyArray_IS_C_CONTIGUOUS, PyArray_NDIM, PyArray_SAMESHAPE, PyArray_TYPE, ndarray

cdef inline int typenum_of(object a) except -1:
    """NumPy's type number of the elements; types registered by other packages have large ones."""
    return PyArray_TYPE(<ndarray>a) if is_on_cpu(a) else a.dtype.num

cdef inline bint are_of_one_shape(object a, object b) except -1:
    if is_on_cpu(a) and is_on_cpu(b):
        return PyArray_SAMESHAPE(<ndarray>a, <ndarray>b)
    return a.shape == b.shape

cdef inline int ndim_of(object a) except -1:
    return PyArray_NDIM(<ndarray>a) if is_on_cpu(a) else a.ndim

cdef inline Py_ssize_t length_of(object a, int dim) except -1:
    return PyArray_DIMS(<ndarray>a)[dim] if is_on_cpu(a) else a.shape[dim]

cdef inline bint is_contiguous(object a) except -1:
    """Whether the array is C-contiguous."""
    return PyArray_IS_C_CONTIGUOUS(<ndarray>a) if is_on_cpu(a) else a.flags.c_contiguous

cdef object cast(object a, int typenum)                         # returns `a` itself if it already has that type
cdef object zeros_beside(object a, tuple shape, int typenum)    # on the device of `a`
cdef int copy_into(object target, object values) except -1      # shapes must match; C conversion rules
cdef bint may_overlap(object a, object b) except -1             # whether the memory extents intersect

cdef object concatenate(list arrays, int axis, int typenum)
cdef object stack(list arrays, int axis, int typenum)

# Reductions. `axes` None: all axes. `typenum` -1: the type of the elements, or the type they are summed in.
cdef object sum(object a, tuple axes, bint keepdim, int typenum)
cdef object mean(object a, tuple axes, bint keepdim, int typenum)
cdef object sum_to(object a, tuple shape)                       # undoes broadcasting

cdef object swap_last(object a)                                 # a view with the last two axes swapped
cdef object matmul(object a, object b)
cdef object addmm(object bias, object a, object b)              # bias + a @ b
