"""View geometry: offset, shape and strides of a view relative to another array's memory."""

from cygrad._kernels.cpu.base.arrays cimport MAXDIMS
from numpy cimport npy_intp

ctypedef struct Geometry:
    int ndim
    Py_ssize_t offset               # of the first element, in bytes from the base array's first element
    npy_intp[MAXDIMS] dims
    npy_intp[MAXDIMS] strides       # in bytes

cdef int geometry_of(object a, Geometry* g) except -1       # of the array itself: offset 0
cdef object view_of(object a, Geometry* g)                  # the view of the array's memory with that geometry
cpdef object restride(object a, tuple shape, tuple strides, Py_ssize_t offset)
cdef Py_ssize_t distance(object a, object b) except? -1      # bytes from the first element of b to that of a
cdef bint lies_within(object part, object whole) except -1  # by memory extent, gaps included
cpdef bint overlaps_itself(object array) except -1
cpdef bint is_channels_last(object array) except -1
cpdef object in_format_of(object array, object image)       # channels last if the image is

# Single view operations. The caller has checked dimensions and indices.
cdef void select_at(Geometry* g, int dim, Py_ssize_t index) noexcept
cdef void slice_at(Geometry* g, int dim, Py_ssize_t start, Py_ssize_t length, Py_ssize_t step) noexcept
cdef int insert_dim(Geometry* g, int dim, npy_intp itemsize) except -1
cdef void remove_dim(Geometry* g, int dim) noexcept
cdef void swap_dims(Geometry* g, int a, int b) noexcept
cdef void permute_dims(Geometry* g, int* order) noexcept
cdef bint reshape(Geometry* g, int ndim, npy_intp* dims, npy_intp itemsize) noexcept    # False if strides cannot express it
