"""What the core and the compiled families do with arrays wherever these are: in memory or on a GPU."""

from cygrad._kernels.cpu.base.arrays cimport is_on_cpu
from numpy cimport PyArray_DIMS, PyArray_IS_C_CONTIGUOUS, PyArray_NDIM, PyArray_SAMESHAPE, PyArray_TYPE, ndarray

cdef inline int typenum_of(object a) except -1:
    """NumPy's number of the type of the elements; types of other packages have large ones."""
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
    """In C's order."""
    return PyArray_IS_C_CONTIGUOUS(<ndarray>a) if is_on_cpu(a) else a.flags.c_contiguous

cdef object cast(object a, int typenum)                         # `a` itself if it has that type
cdef object zeros_beside(object a, tuple shape, int typenum)    # where `a` is
cdef int copy_into(object target, object values) except -1      # of one shape; C's conversions
cdef bint may_overlap(object a, object b) except -1             # do the extents in memory intersect?

cdef object concatenate(list arrays, int axis, int typenum)
cdef object stack(list arrays, int axis, int typenum)

# Reductions; None stands for all axes, -1 for the type of the elements, or what these are summed in.
cdef object sum(object a, tuple axes, bint keepdim, int typenum)
cdef object mean(object a, tuple axes, bint keepdim, int typenum)
cdef object sum_to(object a, tuple shape)                       # undoes broadcasting

cdef object swap_last(object a)                                 # a view with the last two axes exchanged
cdef object matmul(object a, object b)
cdef object addmm(object bias, object a, object b)              # bias + a @ b
