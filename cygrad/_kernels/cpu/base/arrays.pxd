"""The memory of arrays: what may be read through a pointer, what overlaps, new arrays, casts, joining."""

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject

from cygrad._kernels.platform.thread_pool cimport RELEASE_ABOVE
from cygrad._kernels.cpu.base.nditer cimport MAXDIMS, Operand

cdef extern from "numpy/arrayobject.h":
    PyTypeObject PyArray_Type
    bint PyArray_ISNOTSWAPPED(cnp.ndarray) noexcept
    bint PyArray_CheckExact(object) noexcept
    bint PyArray_EquivTypenums(int, int) noexcept
    cnp.ndarray PyArray_NewFromDescr(
        PyTypeObject*, cnp.PyArray_Descr* stolen, int, cnp.npy_intp*, cnp.npy_intp*, void*, int, PyObject*)

cdef extern from *:
    """
    #ifndef CYGRAD_LIKELY
    #if defined(__GNUC__)
    #define CYGRAD_LIKELY(x) __builtin_expect(!!(x), 1)
    #else
    #define CYGRAD_LIKELY(x) (x)
    #endif
    #endif
    """
    bint likely "CYGRAD_LIKELY"(bint) noexcept nogil

cdef enum:
    NTYPES = 24                 # NumPy's built-in type numbers, 0 (bool) to 23 (half)

# CYGRAD_PURE=1 in the environment: everything goes through NumPy's own functions.
cdef bint PURE

cdef inline Operand operand(cnp.ndarray a) noexcept:
    cdef Operand op
    op.data = cnp.PyArray_BYTES(a)
    op.ndim = cnp.PyArray_NDIM(a)
    op.dims = cnp.PyArray_DIMS(a)
    op.strides = cnp.PyArray_STRIDES(a)
    op.itemsize = cnp.PyArray_ITEMSIZE(a)
    return op

# In memory that C code may follow pointers into; else on a GPU, where CuPy has it (gpu/__init__.py).
cdef inline bint is_on_cpu(object array) noexcept:
    return isinstance(array, cnp.ndarray)

cdef inline bint is_read_only(object array) noexcept:
    return is_on_cpu(array) and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array)

# Exactly an ndarray, aligned, in native byte order: C code may follow its pointer and strides.
cdef inline bint is_plain(cnp.ndarray a) noexcept:
    return (likely(PyArray_CheckExact(a)) and likely(cnp.PyArray_ISALIGNED(a))
            and likely(PyArray_ISNOTSWAPPED(a)))

cdef inline bint same_shape(cnp.ndarray a, cnp.ndarray b) noexcept:
    cdef int i, ndim = cnp.PyArray_NDIM(a)
    cdef cnp.npy_intp* m = cnp.PyArray_DIMS(a)
    cdef cnp.npy_intp* n = cnp.PyArray_DIMS(b)
    if ndim != cnp.PyArray_NDIM(b):
        return False
    for i in range(ndim):
        if m[i] != n[i]:
            return False
    return True

# Address of the first byte of `a`, and of the one behind its last.
cdef void extent(Operand* a, char** low, char** high) noexcept

# Do the memory extents of the two intersect? (Their elements need not.)
cdef bint extents_meet(Operand* a, Operand* b) noexcept
cpdef bint may_overlap(cnp.ndarray a, cnp.ndarray b) noexcept

# New arrays of uninitialised memory. The strides must be those of a dense array, in any order of its dimensions.
cdef cnp.ndarray empty(int ndim, cnp.npy_intp* dims, int typenum)
cdef cnp.ndarray empty_strided(int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, int typenum)

cpdef cnp.ndarray zeros(tuple shape, int typenum)

cdef int bfloat16_type                          # the type number of another package's, or -1
cdef void keep_bfloat16(int typenum) noexcept

# The loop that converts float16 or bfloat16 to float32, or back.
ctypedef void (*cast_t)(const void*, void*, cnp.npy_intp) noexcept nogil
cdef cast_t half_cast(bint is_bfloat16, bint back) noexcept

# The caller's reference to an array is about to be its last: keep the array for a new one of its type and shape.
cdef void keep_spare(PyObject* array)

# `a` itself where it is plain and C-contiguous, or else such a copy; `one_block` keeps other orders, too.
cpdef cnp.ndarray dense(cnp.ndarray a)
cdef cnp.ndarray one_block(cnp.ndarray a)
cpdef object dense_copy(object a)               # of what is dense; otherwise None
cdef cnp.ndarray empty_like(cnp.ndarray a)      # laid out like such a block

# Write the elements of `a`, converted if need be, into `out`, to whose shape it broadcasts.
cpdef int copy_array(cnp.ndarray out, cnp.ndarray a) except -1
cpdef tuple order_in_memory(tuple arrays)
cpdef int fill(cnp.ndarray out, object value) except -1     # with a number

# `a` itself if it has that type already, else a new array in the memory order of `a`.
cpdef cnp.ndarray cast(cnp.ndarray a, int typenum)

# One after the other along an axis, or side by side along a new one, converted to one type: new arrays in C order.
cdef cnp.ndarray concatenate(list arrays, int axis, int typenum)
cdef cnp.ndarray stack(list arrays, int axis, int typenum)

cdef object value_of(object array)                              # of an array of one element, as a Python number
cdef cnp.ndarray array_of_number(object number, int typenum)    # 0-dim; the number must fit the type


cdef inline bint broadcasts_to(cnp.ndarray a, cnp.ndarray target) noexcept:
    """Can `a` be read as an array of the shape of `target`?"""
    cdef int i, before = cnp.PyArray_NDIM(target) - cnp.PyArray_NDIM(a)
    for i in range(cnp.PyArray_NDIM(a)):
        if before < 0 or cnp.PyArray_DIM(a, i) != 1 and cnp.PyArray_DIM(a, i) != cnp.PyArray_DIM(target, before + i):
            return False
    return True
