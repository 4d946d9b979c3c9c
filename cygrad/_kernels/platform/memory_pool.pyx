"""Memory pool for large arrays.

Note [The pool]
---------------
An array can name the *handler* that frees its memory (NEP 49). An array whose memory came from the pool (`memory_pool.h`)
therefore owns it like any other: it can be resized, passed to NumPy, and outlive all tensors; when it dies, the memory
returns to the pool. This is transparent to all other code. Our own kernels request such arrays directly; while a kernel
that calls NumPy on large arrays runs, the pool is NumPy's allocator in that thread (`call_kernel`).

Each block records the Python line that requested it, so that an out-of-memory error can report who holds the memory.
"""

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport strcpy

from cygrad._kernels.platform import machine

cnp.import_array()

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t memory, size_t size) noexcept
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t memory) noexcept

cdef extern from "numpy/arrayobject.h":
    PyTypeObject PyArray_Type
    object PyDataMem_SetHandler(object handler)
    PyObject* PyArray_HANDLER(cnp.ndarray)
    cnp.ndarray PyArray_NewFromDescr(
        PyTypeObject*, cnp.PyArray_Descr* stolen, int, cnp.npy_intp*, cnp.npy_intp*, void*, int, PyObject*)
    ctypedef struct PyArrayObject_fields:
        PyObject* mem_handler
    ctypedef struct PyDataMemAllocator:
        void* ctx
        void* (*malloc)(void*, size_t) noexcept
        void* (*calloc)(void*, size_t, size_t) noexcept
        void* (*realloc)(void*, void*, size_t) noexcept
        void (*free)(void*, void*, size_t) noexcept
    ctypedef struct PyDataMem_Handler:
        char[127] name
        uint8_t version
        PyDataMemAllocator allocator

cdef extern from "platform/memory_pool.h":
    ctypedef struct pool_counter:
        uint64_t current
        uint64_t peak
        uint64_t allocated
        uint64_t freed
    ctypedef struct pool_holder:
        PyObject* code
        int offset
        size_t size
    enum:
        COUNTERS
    void* pool_allocate(size_t size, int* is_zero) noexcept
    void pool_sign(void* memory, PyObject* code, int offset) noexcept
    void pool_free(void* memory) noexcept
    void* numpy_malloc(void*, size_t) noexcept
    void* numpy_calloc(void*, size_t, size_t) noexcept
    void* numpy_realloc(void*, void*, size_t) noexcept
    void numpy_free(void*, void*, size_t) noexcept
    void pool_begin() noexcept
    void pool_empty() noexcept
    void pool_reset_peaks() noexcept
    void pool_read(pool_counter*, uint64_t* retries, uint64_t* failures) noexcept
    void pool_set_limit(size_t) noexcept
    pool_holder* pool_holders(Py_ssize_t* n) noexcept

cdef extern from "platform/tape.h":
    int tape_open "cygrad_tape_open"
    void tape_born(void* memory, size_t size) noexcept

cdef enum:
    NUMPY_DOMAIN = 389047       # tracemalloc's domain for array memory

cdef PyDataMem_Handler _handler
cdef object _capsule = None
cdef object _limit = None                   # in bytes; None until the first allocation
cdef site_t _take_site = NULL
cdef object _explain = None                 # extends the message of a MemoryError


cdef int _begin() except -1:
    global _capsule
    strcpy(_handler.name, b"cygrad")
    _handler.version = 1
    _handler.allocator = PyDataMemAllocator(NULL, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free)
    _capsule = PyCapsule_New(&_handler, b"mem_handler", NULL)
    Py_INCREF(_capsule)                     # arrays may outlive this module
    pool_begin()
    return 0

_begin()


cdef int connect(site_t take_site, object explain) except -1:
    global _take_site, _explain
    _take_site = take_site
    _explain = explain
    return 0


cdef object _shortage(str text):
    return MemoryError(text if _explain is None else _explain(text))


# ------------------------------------------------------------------------------------------------- arrays


cdef cnp.ndarray empty_pooled(object descr, int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, size_t nbytes):
    cdef int is_zero
    cdef void* memory
    cdef cnp.ndarray array
    if _limit is None:
        memory_limit()
    memory = pool_allocate(nbytes, &is_zero)
    if memory == NULL:
        shape = tuple([dims[i] for i in range(ndim)])
        raise _shortage(f"Unable to allocate {nbytes} bytes for an array with shape {shape} and data type {descr}")
    tape_born(memory, nbytes)
    _sign(memory)
    PyTraceMalloc_Track(NUMPY_DOMAIN, <uintptr_t>memory, nbytes)
    Py_INCREF(descr)            # PyArray_NewFromDescr steals a reference
    try:
        array = PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr*>descr, ndim, dims, strides, memory,
                                     cnp.NPY_ARRAY_CARRAY, NULL)
    except Exception:           # a negative length
        PyTraceMalloc_Untrack(NUMPY_DOMAIN, <uintptr_t>memory)
        pool_free(memory)
        raise
    Py_INCREF(_capsule)
    (<PyArrayObject_fields*>array).mem_handler = <PyObject*>_capsule
    cnp.PyArray_ENABLEFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
    return array


cdef inline int _sign(void* memory) except -1:
    cdef int offset
    if _take_site != NULL:
        code = _take_site(&offset)
        if code is not None:
            pool_sign(memory, <PyObject*>code, offset)
    return 0


cdef run_on_tape_t _run_on_tape = NULL


cdef int connect_tape(run_on_tape_t run) except -1:
    global _run_on_tape
    _run_on_tape = run
    return 0


cdef object call_kernel(object kernel, tuple arrays, tuple args):
    if tape_open:
        return _run_on_tape(kernel, kernel, arrays + args, {})
    for array in arrays:
        if type(array) is cnp.ndarray and cnp.PyArray_NBYTES(<cnp.ndarray>array) >= POOLED:
            return _call_with_pool(kernel, arrays, args)
    return kernel(*arrays, *args)


cdef object _call_with_pool(object kernel, tuple arrays, tuple args):
    if _limit is None:
        memory_limit()
    former = PyDataMem_SetHandler(_capsule)
    try:
        result = kernel(*arrays, *args)
        _sign_owner(result)
    except MemoryError as error:
        if type(error) is MemoryError:      # already complete: raised by `_shortage`
            raise
        raise _shortage(str(error)) from None
    finally:
        PyDataMem_SetHandler(former)
    return result


cdef object array_memory_from_pool():
    if _limit is None:
        memory_limit()
    return PyDataMem_SetHandler(_capsule)


cdef object give_back_allocator(object former):
    PyDataMem_SetHandler(former)


cdef tuple current_place():
    """The code object and the instruction offset of the Python line being executed; None if nobody tells."""
    cdef int offset
    if _take_site == NULL:
        return None
    code = _take_site(&offset)
    return None if code is None else (code, offset)


cdef int _sign_owner(object array) except -1:
    """Record the Python line in the pool block that owns the memory of an array, or of the array that it is a view of."""
    cdef cnp.ndarray owner
    while isinstance(array, cnp.ndarray):
        owner = array
        if PyArray_HANDLER(owner) == <PyObject*>_capsule and cnp.PyArray_CHKFLAGS(owner, cnp.NPY_ARRAY_OWNDATA):
            if cnp.PyArray_NBYTES(owner) >= POOLED:
                _sign(cnp.PyArray_DATA(owner))
            return 0
        array = (<object>owner).base
    return 0


# ------------------------------------------------------------------------------------------------- the whole


def counters():
    """Return ({name: (current, peak, allocated, freed)}, retries, failures)."""
    cdef pool_counter[COUNTERS] read
    cdef uint64_t retries, failures
    pool_read(read, &retries, &failures)
    names = ("requested_bytes", "allocated_bytes", "allocation", "reserved_bytes", "segment")
    found = {name: (read[i].current, read[i].peak, read[i].allocated, read[i].freed) for i, name in enumerate(names)}
    return found, retries, failures


def reset_peaks():
    """Reset the peaks to the current values."""
    pool_reset_peaks()


def empty_cache():
    """Return unused memory to the system."""
    pool_empty()


def memory_limit():
    """Return the limit on the total bytes of large arrays."""
    if _limit is None:
        set_memory_limit(machine.memory_limit())
    return _limit


def set_memory_limit(size_t limit):
    """Set the limit; 0 means none."""
    global _limit
    _limit = limit
    pool_set_limit(limit)


def holders():
    """Return a list of (code object or None, instruction offset, bytes), one for each large array."""
    cdef Py_ssize_t i, n
    cdef pool_holder* found = pool_holders(&n)
    cdef list listed = []
    for i in range(n):
        code = None
        if found[i].code != NULL:
            code = <object>found[i].code
            Py_DECREF(code)
        listed.append((code, found[i].offset, found[i].size))
    free(found)
    return listed
