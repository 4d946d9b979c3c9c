"""Array memory: pointer access, overlap checks, allocation, casts and concatenation."""

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

# True with CYGRAD_PURE=1 in the environment: all work then goes through NumPy's own functions.
cdef bint PURE

cdef inline Operand operand(cnp.ndarray a) noexcept:
    cdef Operand op
    op.data = cnp.PyArray_BYTES(a)
    op.ndim = cnp.PyArray_NDIM(a)
    op.dims = cnp.PyArray_DIMS(a)
    op.strides = cnp.PyArray_STRIDES(a)
    op.itemsize = cnp.PyArray_ITEMSIZE(a)
    return op

# Whether C code may dereference the array's data pointer; otherwise the array is CuPy's, on a GPU (gpu/__init__.py).
cdef inline bint is_on_cpu(object array) noexcept:
    return isinstance(array, cnp.ndarray)

cdef inline bint is_read_only(object array) noexcept:
    return is_on_cpu(array) and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray>array)

cdef inline Py_ssize_t itemsize_of(object array) except -1:
    return cnp.PyArray_ITEMSIZE(<cnp.ndarray>array) if is_on_cpu(array) else array.itemsize

# Whether C code may follow pointer and strides: exactly an ndarray, aligned, in native byte order.
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

# The half-open address range [low, high) that the elements of `a` span.
cdef void extent(Operand* a, char** low, char** high) noexcept

# Whether two memory extents intersect. (The elements themselves need not overlap.)
cdef bint extents_meet(Operand* a, Operand* b) noexcept
cpdef bint may_overlap(cnp.ndarray a, cnp.ndarray b) noexcept

# New uninitialized arrays. The strides must be those of a dense array, in any order of its dimensions.
cdef cnp.ndarray empty(int ndim, cnp.npy_intp* dims, int typenum)
cdef cnp.ndarray empty_strided(int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, int typenum)

cpdef cnp.ndarray zeros(tuple shape, int typenum)

cdef int bfloat16_type                          # type number registered by the package that defines it, or -1
cdef void keep_bfloat16(int typenum) noexcept

# The loop that converts float16 or bfloat16 to float32, or (`back`) float32 to it.
ctypedef void (*cast_t)(const void*, void*, cnp.npy_intp) noexcept nogil
cdef cast_t half_cast(bint is_bfloat16, bint back) noexcept

# Put an array into the freelist. The caller holds the last reference, and is about to drop it.
cdef void keep_spare(PyObject* array)

# Return `a` itself if it is plain and C-contiguous, else such a copy. `one_block` also accepts other dense memory orders.
cpdef cnp.ndarray dense(cnp.ndarray a)
cdef cnp.ndarray one_block(cnp.ndarray a)
cpdef object dense_copy(object a)               # of a dense array; None for any other
cpdef object private(object a)                  # a dense copy that no other thread can change
cdef cnp.ndarray empty_like(cnp.ndarray a)      # same layout; `a` as returned by `one_block`

# Write the elements of `a`, broadcast and converted as needed, into `out`.
cpdef int copy_array(cnp.ndarray out, cnp.ndarray a) except -1
cdef int copy_in_numpy(cnp.ndarray out, cnp.ndarray a) except -1       # the same by NumPy, which has all types
cpdef cnp.ndarray joined_in_numpy(list converted, int axis)
cpdef tuple order_in_memory(tuple arrays)
cpdef int fill(cnp.ndarray out, object value) except -1     # with a scalar

# Return `a` itself if it already has that type, else a new array in the memory order of `a`.
cpdef cnp.ndarray cast(cnp.ndarray a, int typenum)

# Join arrays along an existing or a new axis, converted to one type. The result is a new array in C order.
cdef cnp.ndarray concatenate(list arrays, int axis, int typenum)
cdef cnp.ndarray stack(list arrays, int axis, int typenum)

cdef object value_of(object array)                              # the only element of an array, as a Python number
cdef cnp.ndarray array_of_number(object number, int typenum)    # 0-dim; the number must fit into the type


cdef inline bint broadcasts_to(cnp.ndarray a, cnp.ndarray target) noexcept:
    """Whether `a` broadcasts to the shape of `target`."""
    cdef int i, before = cnp.PyArray_NDIM(target) - cnp.PyArray_NDIM(a)
    for i in range(cnp.PyArray_NDIM(a)):
        if before < 0 or cnp.PyArray_DIM(a, i) != 1 and cnp.PyArray_DIM(a, i) != cnp.PyArray_DIM(target, before + i):
            return False
    return True
