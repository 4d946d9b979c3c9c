"""Array memory: overlap checks, allocation, casts, concatenation and scalars."""

import os

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy, memset

import numpy as np

from cygrad._kernels.platform.thread_pool cimport LIGHT, Elements, enter, over, share
from cygrad._kernels.platform.memory_pool cimport POOLED, empty_pooled
from cygrad._kernels.cpu.base.nditer cimport Walk, coalesce, extent_of_walk, join, memory_order
from cygrad._kernels.tape.calls cimport run_on_tape
from cygrad._kernels.tape.tape cimport (
    READS, SCATTERS, WRITES, Word, note, note_constant, refuse, tape_open, word)
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.cupy_library import item

cnp.import_array()

cdef bint PURE = os.environ.get("CYGRAD_PURE", "0") not in ("", "0")


# ------------------------------------------------------------------------------------------------- overlap


cdef void extent(Operand* a, char** low, char** high) noexcept:
    cdef int i
    low[0] = high[0] = a.data
    for i in range(a.ndim):
        if a.dims[i] == 0:
            low[0] = high[0] = a.data
            return
        if a.strides[i] < 0:
            low[0] += (a.dims[i] - 1) * a.strides[i]
        else:
            high[0] += (a.dims[i] - 1) * a.strides[i]
    high[0] += a.itemsize


cdef bint extents_meet(Operand* a, Operand* b) noexcept:
    cdef char* low_a
    cdef char* high_a
    cdef char* low_b
    cdef char* high_b
    extent(a, &low_a, &high_a)
    extent(b, &low_b, &high_b)
    return low_a < high_b and low_b < high_a and low_a < high_a and low_b < high_b


cpdef bint may_overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether the memory extents of two arrays intersect."""
    cdef Operand x = operand(a)
    cdef Operand y = operand(b)
    return extents_meet(&x, &y)


# ---------------------------------------------------------------------------------------------- new arrays


cdef extern from "platform/array_freelist.h":
    """
    static spare_slot spare_slots[SPARE_SLOTS];
    """
    ctypedef struct spare_slot:
        pass
    spare_slot* spare_slots
    PyObject* spare_take(spare_slot*, int, const cnp.npy_intp*, int)
    void spare_keep(spare_slot*, PyObject*, cnp.PyArray_Descr**, int)
    void spare_drop(spare_slot*)

cdef enum:
    SMALL = 4096                # elements; below this, writing zeros is faster than calloc

cdef cnp.PyArray_Descr* _descrs[NTYPES]     # references held forever
cdef double _itemsizes[NTYPES]
cdef double MOST_BYTES = 2.0**62              # larger requests go to NumPy for its error message


cdef int _keep_descrs() except -1:
    cdef int t
    for t in range(NTYPES):
        descr = cnp.PyArray_DescrFromType(t)
        Py_INCREF(descr)
        _descrs[t] = <cnp.PyArray_Descr*>descr
        _itemsizes[t] = (<cnp.dtype>descr).itemsize
    return 0

_keep_descrs()


cdef cnp.ndarray empty(int ndim, cnp.npy_intp* dims, int typenum):
    cdef PyObject* spare = spare_take(spare_slots, ndim, dims, typenum)
    if spare != NULL:
        array = <cnp.ndarray>spare
        Py_DECREF(array)        # drop the table's reference: `array` holds its own
        return array
    return empty_strided(ndim, dims, NULL, typenum)


cdef void keep_spare(PyObject* array):
    if tape_open:               # which must hear of all memory
        return
    spare_keep(spare_slots, array, _descrs, NTYPES)


def drop_spares():
    """Free all arrays kept from dead tensors (Note [Spare arrays] in array_freelist.h)."""
    spare_drop(spare_slots)


cdef cnp.ndarray empty_strided(int ndim, cnp.npy_intp* dims, cnp.npy_intp* strides, int typenum):
    cdef object descr
    cdef double nbytes          # a double, so that impossibly large sizes do not overflow
    cdef int i
    if likely(0 <= typenum < NTYPES):
        descr = <object>_descrs[typenum]
        nbytes = _itemsizes[typenum]
        for i in range(ndim):
            nbytes *= dims[i]
        if POOLED <= nbytes < MOST_BYTES and typenum != cnp.NPY_OBJECT:
            return empty_pooled(descr, ndim, dims, strides, <size_t>nbytes)
    else:
        descr = cnp.PyArray_DescrFromType(typenum)
        nbytes = 2
        for i in range(ndim):
            nbytes *= dims[i]
        if typenum == bfloat16_type and POOLED <= nbytes < MOST_BYTES:
            return empty_pooled(descr, ndim, dims, strides, <size_t>nbytes)
    Py_INCREF(descr)            # PyArray_NewFromDescr steals a reference
    return PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr*>descr, ndim, dims, strides, NULL, 0, NULL)


cdef int _set_dims(tuple shape, cnp.npy_intp* dims) except -1:
    cdef int i, ndim = <int>len(shape)
    if ndim > MAXDIMS:
        raise ValueError(f"maximum supported dimension for an ndarray is {MAXDIMS}, found {ndim}")
    for i in range(ndim):
        dims[i] = shape[i]
    return ndim


def new_array(tuple shape, int typenum):
    """An uninitialized array in C order."""
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef int ndim = _set_dims(shape, dims)
    return empty(ndim, dims, typenum)


cpdef cnp.ndarray zeros(tuple shape, int typenum):
    """An array of zeros in C order."""
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef cnp.npy_intp size = 1
    cdef int i, ndim = _set_dims(shape, dims)
    for i in range(ndim):
        size *= min(dims[i], <cnp.npy_intp>SMALL)
        if size >= SMALL:                       # for large arrays, calloc gets pages that are already zero
            out = cnp.PyArray_ZEROS(ndim, dims, typenum, 0)
            if tape_open:
                note_constant(cnp.PyArray_DATA(out), b"\0", 1, cnp.PyArray_NBYTES(out))
            return out
    out = empty(ndim, dims, typenum)
    memset(cnp.PyArray_DATA(out), 0, cnp.PyArray_NBYTES(out))
    if tape_open:
        note_constant(cnp.PyArray_DATA(out), b"\0", 1, cnp.PyArray_NBYTES(out))
    return out


cpdef cnp.ndarray dense(cnp.ndarray a):
    """Return `a`, or a C-contiguous copy of it, aligned and in native byte order."""
    if is_plain(a) and cnp.PyArray_IS_C_CONTIGUOUS(a):
        return a
    out = empty(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), cnp.PyArray_TYPE(a))
    copy_array(out, a)
    return out


cpdef object dense_copy(object a):
    """Copy an array that is already dense; return None for any other."""
    if not is_on_cpu(a) or PURE or not is_plain(<cnp.ndarray>a) or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>a) or (
            cnp.PyArray_TYPE(<cnp.ndarray>a) > cnp.NPY_CLONGDOUBLE):
        return None
    out = empty(cnp.PyArray_NDIM(<cnp.ndarray>a), cnp.PyArray_DIMS(<cnp.ndarray>a), cnp.PyArray_TYPE(<cnp.ndarray>a))
    if cnp.PyArray_NBYTES(out) < POOLED and not tape_open:
        memcpy(cnp.PyArray_DATA(out), cnp.PyArray_DATA(<cnp.ndarray>a), cnp.PyArray_NBYTES(out))
    else:
        copy_array(out, <cnp.ndarray>a)
    return out


cpdef object private(object a):
    """Return a dense copy of an array in main memory, or an array on a GPU as it is. See Note [Private copies].

    Note [Private copies]
    ---------------------
    Another thread, or another process that shares the memory, may change an index or a mask while a kernel uses it. The
    kernel must use the very values that it checked, or it reads and writes outside of the array. Our own loops read each
    index once (INDEX in loop_call.h). NumPy does not: fancy indexing, `ufunc.at`, `bincount`, `repeat`, `nonzero` and
    masks check or count first, and read again later; `argsort`, `argpartition` and `lexsort` rely on values that do not
    change. LAPACK trusts its pivots. All of these must only get arrays that a kernel has made itself: results of
    computations, or private copies. `take` and `searchsorted` are safe.
    """
    cdef cnp.ndarray array
    if not is_on_cpu(a):
        return a
    copied = dense_copy(a)
    if copied is None:
        array = a
        copied = empty(cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array), cnp.PyArray_TYPE(array))
        copy_array(copied, array)
    return copied


cdef cnp.ndarray one_block(cnp.ndarray a):
    cdef int i
    if not is_plain(a) or cnp.PyArray_IS_C_CONTIGUOUS(a):
        return dense(a)
    if cnp.PyArray_IS_F_CONTIGUOUS(a):
        return a
    for i in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_STRIDES(a)[i] == 0:      # NumPy would sort broadcast dimensions first
            return dense(a)
    if tape_open:                               # the same by a noted loop
        out = np.empty_like(a, order="K", subok=False)
        copy_array(out, a)
        return out
    return cnp.PyArray_NewCopy(a, cnp.NPY_KEEPORDER)


cdef cnp.ndarray empty_like(cnp.ndarray a):
    cdef bint by_rows = cnp.PyArray_IS_C_CONTIGUOUS(a)
    return empty_strided(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), NULL if by_rows else cnp.PyArray_STRIDES(a),
                         cnp.PyArray_TYPE(a))


# -------------------------------------------------------------------------------------------------- copies


cdef extern from "numpy/arrayobject.h":
    int PyArray_FillWithScalar(cnp.ndarray, object) except -1

cdef extern from "base/copies.h" nogil:
    ctypedef struct copy_plan:
        const char* source "from"
        char* to
        Py_ssize_t size
        int ndim
        cnp.npy_intp* dims
        cnp.npy_intp* from_steps
        cnp.npy_intp* to_steps
    Py_ssize_t plan_copy(copy_plan*, Py_ssize_t most, Py_ssize_t* piece) noexcept
    void copy_units(void* plan, Py_ssize_t first, Py_ssize_t count) noexcept
    void fill_near(const char* element, Py_ssize_t size, char* to, Py_ssize_t count) noexcept

cdef enum:
    NEAR = 1 << 20  # bytes that fit in a near cache: one thread fills it faster than several could share the work


cdef bint _has_copies(cnp.ndarray out, cnp.ndarray a) noexcept:
    """Whether our own loops can copy `a` into `out`: same type, broadcastable, no overlap."""
    cdef int t = cnp.PyArray_TYPE(a)
    cdef Operand x, y
    if (t >= NTYPES or t != cnp.PyArray_TYPE(out) or not (cnp.PyTypeNum_ISNUMBER(t) or t == cnp.NPY_BOOL)
            or PURE or not is_plain(a) or not is_plain(out)
            or not cnp.PyArray_ISWRITEABLE(out) or not broadcasts_to(a, out)):
        return False
    x, y = operand(a), operand(out)
    return not extents_meet(&x, &y)


cdef int copy_in_numpy(cnp.ndarray out, cnp.ndarray a) except -1:
    if tape_open:
        run_on_tape(np.copyto, np.copyto, (out, a), {"casting": "unsafe"})
        return 0
    return cnp.PyArray_CopyInto(out, a)


cpdef int copy_array(cnp.ndarray out, cnp.ndarray a) except -1:
    """Write `a`, broadcast, into `out`. Threads share the copying of many elements."""
    cdef Walk walk
    cdef Operand[2] operands
    cdef int[MAXDIMS] order
    cdef copy_plan plan
    cdef Py_ssize_t units, piece
    if not _has_copies(out, a):
        return copy_in_numpy(out, a)
    if cnp.PyArray_SIZE(out) == 0:
        return 0
    operands[0], operands[1] = operand(out), operand(a)
    join(&walk, 2, operands)
    walk.count = 2
    memory_order(&walk, order)
    coalesce(&walk, order, operands[0].itemsize)
    plan.size = operands[0].itemsize
    if plan.size != 4 and plan.size != 8 and (walk.strides[0][0] != plan.size or walk.strides[1][0] != plan.size):
        return copy_in_numpy(out, a)
    plan.source = operands[1].data
    plan.to = operands[0].data
    plan.ndim = walk.ndim
    plan.dims = walk.dims
    plan.to_steps = walk.strides[0]
    plan.from_steps = walk.strides[1]
    if tape_open:
        _note_copy(&walk, operands, cnp.PyArray_SIZE(out))
    units = plan_copy(&plan, LIGHT, &piece)
    if cnp.PyArray_SIZE(out) <= RELEASE_ABOVE:
        copy_units(&plan, 0, units)
    else:
        with nogil:
            share(copy_units, &plan, units, piece)
    return 0


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct CopyCall:           # the end of a call of `copy_array`
    Walk walk
    char* to
    char* source
    Py_ssize_t itemsize
    Py_ssize_t count


cdef void _replay_copy(void* context) noexcept nogil:
    cdef CopyCall* call = <CopyCall*>context
    cdef Walk walk = call.walk          # the plan may reorder its dimensions
    cdef copy_plan plan
    cdef Py_ssize_t units, piece
    plan.size = call.itemsize
    plan.source = call.source
    plan.to = call.to
    plan.ndim = walk.ndim
    plan.dims = walk.dims
    plan.to_steps = walk.strides[0]
    plan.from_steps = walk.strides[1]
    units = plan_copy(&plan, LIGHT, &piece)
    if call.count <= RELEASE_ABOVE:
        copy_units(&plan, 0, units)
    else:
        share(copy_units, &plan, units, piece)


cdef void _note_copy(Walk* walk, Operand* operands, Py_ssize_t count) noexcept:
    cdef CopyCall call
    cdef Word[2] words
    cdef Py_ssize_t low, high
    cdef int d, k
    memset(&call, 0, sizeof(call))
    call.walk.count = 2
    call.walk.ndim = walk.ndim
    for d in range(walk.ndim):
        call.walk.dims[d] = walk.dims[d]
        for k in range(2):
            call.walk.strides[k][d] = walk.strides[k][d]
    call.to, call.source = operands[0].data, operands[1].data
    call.itemsize = operands[0].itemsize
    call.count = count
    extent_of_walk(walk, 1, call.itemsize, &low, &high)
    words[0] = word(&call, &call.source, READS, low, high)
    extent_of_walk(walk, 0, call.itemsize, &low, &high)
    words[1] = word(&call, &call.to, WRITES if high - low == count * call.itemsize else SCATTERS, low, high)
    note(_replay_copy, "copy", &call, sizeof(call), words, 2)


cdef bint _note_fill(cnp.ndarray out, object value) except -1:
    """Note that a dense array is filled with a number; return whether it could be noted."""
    cdef cnp.ndarray one = cnp.PyArray_ZEROS(0, NULL, cnp.PyArray_TYPE(out), 0)
    if not is_plain(out) or not (cnp.PyArray_IS_C_CONTIGUOUS(out) or cnp.PyArray_IS_F_CONTIGUOUS(out)) or (
            isinstance(value, cnp.ndarray)):
        refuse("fills an array in NumPy")
        return False
    PyArray_FillWithScalar(one, value)
    note_constant(cnp.PyArray_DATA(out), cnp.PyArray_DATA(one), cnp.PyArray_ITEMSIZE(out), cnp.PyArray_SIZE(out))
    return True


cpdef tuple order_in_memory(tuple arrays):
    """List the axes of up to three broadcast arrays by decreasing steps in memory; None if that is already their order."""
    cdef Walk walk
    cdef Operand[3] operands
    cdef int[MAXDIMS] order
    cdef int i, count = 0
    cdef bint is_dense = True
    for array in arrays:
        if count == 3 or not PyArray_CheckExact(array):
            return None
        is_dense = is_dense and cnp.PyArray_IS_C_CONTIGUOUS(array)
        operands[count] = operand(array)
        count += 1
    if is_dense:
        return None
    join(&walk, count, operands)
    walk.count = count
    if not memory_order(&walk, order):
        return None
    return tuple([walk.ndim - 1 - order[i] for i in range(walk.ndim - 1, -1, -1)])


cpdef int fill(cnp.ndarray out, object value) except -1:
    """Write a scalar (or a one-element array) that the type can hold into all of `out`."""
    cdef cnp.ndarray one
    if tape_open and _note_fill(out, value):
        return PyArray_FillWithScalar(out, value)
    if cnp.PyArray_TYPE(out) >= NTYPES:
        return PyArray_FillWithScalar(out, numpy_fallback.number(value, out.dtype))
    if cnp.PyArray_NBYTES(out) < POOLED:
        return PyArray_FillWithScalar(out, value)
    one = empty(0, NULL, cnp.PyArray_TYPE(out))
    PyArray_FillWithScalar(one, value)
    if cnp.PyArray_NBYTES(out) <= NEAR and cnp.PyArray_IS_C_CONTIGUOUS(out) and _has_copies(out, one):
        fill_near(cnp.PyArray_BYTES(one), cnp.PyArray_ITEMSIZE(out), cnp.PyArray_BYTES(out), cnp.PyArray_NBYTES(out))
        return 0
    return copy_array(out, one)


# --------------------------------------------------------------------------------------------------- casts


ctypedef fused source_t:
    cnp.npy_uint8               # also bool
    cnp.npy_int32
    cnp.npy_int64
    float
    double

ctypedef fused target_t:
    cnp.npy_uint8
    cnp.npy_int32
    cnp.npy_int64
    float
    double

cdef extern from "base/copies.h" nogil:
    void byte_to_bool(const void* x, void* out, cnp.npy_intp n) noexcept
    void int32_to_bool(const void* x, void* out, cnp.npy_intp n) noexcept
    void int64_to_bool(const void* x, void* out, cnp.npy_intp n) noexcept
    void float_to_bool(const void* x, void* out, cnp.npy_intp n) noexcept
    void double_to_bool(const void* x, void* out, cnp.npy_intp n) noexcept

cdef extern from "simd/half_conversion.h" nogil:
    void float_to_half(const void* x, void* out, cnp.npy_intp n) noexcept
    void half_to_float(const void* x, void* out, cnp.npy_intp n) noexcept
    void float_to_bfloat16(const void* x, void* out, cnp.npy_intp n) noexcept
    void bfloat16_to_float(const void* x, void* out, cnp.npy_intp n) noexcept

cdef enum:                      # types that have cast loops
    BOOL, UINT8, INT32, INT64, FLOAT, DOUBLE, HALF, BFLOAT16
    NCASTS

cdef cast_t[NCASTS][NCASTS] _casts      # [from][to]
cdef int[NTYPES] _cast_index            # by type number; -1 for types without cast loops
bfloat16_type = -1


cdef void keep_bfloat16(int typenum) noexcept:
    """Register the type number of bfloat16."""
    global bfloat16_type
    bfloat16_type = typenum


cdef cast_t half_cast(bint is_bfloat16, bint back) noexcept:
    if back:
        return float_to_bfloat16 if is_bfloat16 else float_to_half
    return bfloat16_to_float if is_bfloat16 else half_to_float


cdef inline int _index_of(int typenum) noexcept:
    if 0 <= typenum < NTYPES:
        return _cast_index[typenum]
    return BFLOAT16 if typenum == bfloat16_type and typenum >= 0 else -1


cdef void _convert(const source_t* a, target_t* out, cnp.npy_intp n) noexcept nogil:
    cdef cnp.npy_intp i
    for i in range(n):
        if target_t is cnp.npy_uint8:
            out[i] = <target_t><cnp.npy_int64>a[i]      # via int64, so that negative numbers wrap
        else:
            out[i] = <target_t>a[i]


cdef void _enter_casts(int source, source_t example) noexcept:
    _casts[source][UINT8] = <cast_t>&_convert[source_t, cnp.npy_uint8]
    _casts[source][INT32] = <cast_t>&_convert[source_t, cnp.npy_int32]
    _casts[source][INT64] = <cast_t>&_convert[source_t, cnp.npy_int64]
    _casts[source][FLOAT] = <cast_t>&_convert[source_t, float]
    _casts[source][DOUBLE] = <cast_t>&_convert[source_t, double]


cdef void _enter_all_casts() noexcept:
    cdef int t
    _enter_casts[cnp.npy_uint8](BOOL, 0)
    _enter_casts[cnp.npy_uint8](UINT8, 0)
    _enter_casts[cnp.npy_int32](INT32, 0)
    _enter_casts[cnp.npy_int64](INT64, 0)
    _enter_casts[float](FLOAT, 0)
    _enter_casts[double](DOUBLE, 0)
    _casts[BOOL][BOOL] = _casts[UINT8][BOOL] = byte_to_bool
    _casts[INT32][BOOL], _casts[INT64][BOOL] = int32_to_bool, int64_to_bool
    _casts[FLOAT][BOOL], _casts[DOUBLE][BOOL] = float_to_bool, double_to_bool
    _casts[FLOAT][HALF] = float_to_half
    _casts[HALF][FLOAT] = half_to_float
    _casts[FLOAT][BFLOAT16] = float_to_bfloat16
    _casts[BFLOAT16][FLOAT] = bfloat16_to_float
    for t in range(NTYPES):     # several type numbers have the same size; which, depends on the platform
        if t == cnp.NPY_BOOL:
            _cast_index[t] = BOOL
        elif t == cnp.NPY_UINT8:
            _cast_index[t] = UINT8
        elif t == cnp.NPY_FLOAT:
            _cast_index[t] = FLOAT
        elif t == cnp.NPY_DOUBLE:
            _cast_index[t] = DOUBLE
        elif PyArray_EquivTypenums(t, cnp.NPY_INT32):
            _cast_index[t] = INT32
        elif PyArray_EquivTypenums(t, cnp.NPY_INT64):
            _cast_index[t] = INT64
        elif t == cnp.NPY_FLOAT16:
            _cast_index[t] = HALF
        else:
            _cast_index[t] = -1

_enter_all_casts()


cdef void _cast_loop(char** data, Py_ssize_t n, const void* convert) noexcept nogil:
    (<cast_t*>convert)[0](data[0], data[1], n)


cpdef cnp.ndarray cast(cnp.ndarray a, int typenum):
    """Return `a` converted to another type, in the same memory order, without warnings; `a` itself if it has that type."""
    cdef int t = cnp.PyArray_TYPE(a)
    cdef int source, target
    cdef cnp.ndarray out
    cdef Elements elements
    if t == typenum and PyArray_ISNOTSWAPPED(a) and PyArray_CheckExact(a):
        return a
    if cnp.PyArray_IS_C_CONTIGUOUS(a) and is_plain(a) and not PURE:
        source = _index_of(t)
        target = _index_of(typenum)
        if source >= 0 and target >= 0:
            if _casts[source][target] == NULL:      # from or to half precision: go through float32, as PyTorch rounds
                return cast(cast(a, cnp.NPY_FLOAT), typenum)
            out = empty(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), typenum)
            elements.count = 0
            enter(&elements, a)
            enter(&elements, out)
            over(&elements, _cast_loop, &_casts[source][target], sizeof(cast_t), cnp.PyArray_SIZE(a), LIGHT)
            return out
    if tape_open:
        return run_on_tape(numpy_fallback.cast, numpy_fallback.cast, (a, cnp.PyArray_DescrFromType(typenum)), {})
    return numpy_fallback.cast(a, cnp.PyArray_DescrFromType(typenum))


# ------------------------------------------------------------------------------------------------- joining


cdef enum:
    JOINED = 1 << 20            # bytes; for fewer, NumPy is done before our Python code would have begun


cdef cnp.ndarray concatenate(list arrays, int axis, int typenum):
    cdef list converted = []
    cdef cnp.ndarray out
    cdef Py_ssize_t nbytes = 0
    for array in arrays:
        out = cast(array, typenum)
        converted.append(out)
        nbytes += cnp.PyArray_NBYTES(out)
    if nbytes >= JOINED and not PURE and typenum < NTYPES:
        from cygrad._kernels.cpu.base.copying import joined  # which imports this module
        return run_on_tape(joined, joined, (converted, axis), {}) if tape_open else joined(converted, axis)
    if tape_open:
        return run_on_tape(joined_in_numpy, joined_in_numpy, (converted, axis), {})
    return joined_in_numpy(converted, axis)


cpdef cnp.ndarray joined_in_numpy(list converted, int axis):
    """Concatenate arrays of one type."""
    cdef cnp.ndarray out
    for array in converted:
        out = <cnp.ndarray?>array               # NumPy would take anything
    out = cnp.PyArray_Concatenate(converted, axis)      # keeps the memory order of the arrays if they agree
    return out if cnp.PyArray_IS_C_CONTIGUOUS(out) else cnp.PyArray_GETCONTIGUOUS(out)


cdef cnp.ndarray stack(list arrays, int axis, int typenum):
    cdef list deeper = []
    for array in arrays:
        deeper.append(with_axis(array, axis))
    return concatenate(deeper, axis, typenum)


cdef cnp.ndarray with_axis(cnp.ndarray a, int axis):
    """A view with an additional axis of length 1."""
    cdef cnp.npy_intp[MAXDIMS + 1] dims
    cdef cnp.PyArray_Dims shape
    cdef int i, ndim = cnp.PyArray_NDIM(a)
    for i in range(ndim):
        dims[i if i < axis else i + 1] = cnp.PyArray_DIMS(a)[i]
    dims[axis] = 1
    shape.ptr = dims
    shape.len = ndim + 1
    return cnp.PyArray_Newshape(a, &shape, cnp.NPY_CORDER)


# ------------------------------------------------------------------------- scalars and one-element arrays


cdef object value_of(object array):
    """Read the memory directly, which takes 10 ns; `ndarray.item()` takes 70, most of it call overhead."""
    cdef const void* memory
    cdef int num
    refuse("reads a value", "item")
    if type(array) is cnp.ndarray and is_plain(<cnp.ndarray>array):
        memory = cnp.PyArray_DATA(<cnp.ndarray>array)
        num = cnp.PyArray_TYPE(<cnp.ndarray>array)
        if num == cnp.NPY_FLOAT:
            return <double>(<const float*>memory)[0]
        if num == cnp.NPY_DOUBLE:
            return (<const double*>memory)[0]
        if num == cnp.NPY_INT64:
            return (<const cnp.npy_int64*>memory)[0]
        if num == cnp.NPY_BOOL:
            return True if (<const unsigned char*>memory)[0] else False
        if num == cnp.NPY_INT32:
            return (<const cnp.npy_int32*>memory)[0]
        if num == cnp.NPY_UINT8:
            return (<const unsigned char*>memory)[0]
    return item(array)


cdef cnp.ndarray array_of_number(object number, int typenum):
    cdef cnp.ndarray out = empty(0, NULL, typenum)
    if typenum == cnp.NPY_FLOAT:
        (<float*>cnp.PyArray_DATA(out))[0] = <float><double>number
    elif typenum == cnp.NPY_DOUBLE:
        (<double*>cnp.PyArray_DATA(out))[0] = number
    elif typenum == cnp.NPY_INT64:
        (<cnp.npy_int64*>cnp.PyArray_DATA(out))[0] = number
    elif typenum == cnp.NPY_BOOL:
        (<unsigned char*>cnp.PyArray_DATA(out))[0] = 1 if number else 0
    else:
        with np.errstate(all="ignore"):
            out[()] = number
    if tape_open:
        note_constant(cnp.PyArray_DATA(out), cnp.PyArray_DATA(out), cnp.PyArray_ITEMSIZE(out), 1)
    return out
