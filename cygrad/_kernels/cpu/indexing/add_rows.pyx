"""Scatter-add (or max, min) of matrix rows by index, and the places that several indices name together."""

cimport numpy as cnp
from libc.string cimport memcpy, memset
from numpy cimport (
    PyArray_DATA, PyArray_DIM, PyArray_NDIM, PyArray_TYPE, ndarray, npy_int64, npy_uint8, npy_uint32, npy_uint64)

from cygrad._kernels.tape.tape cimport refuse
from cygrad._kernels.cpu.base.arrays cimport RELEASE_ABOVE, empty, is_plain, same_shape
from cygrad._kernels.device.dispatch import dispatching

cnp.import_array()

cdef extern from "base/loop_call.h" nogil:
    npy_uint64 INDEX(const npy_int64* place) noexcept

ctypedef fused number_t:
    float
    double
    npy_int64


cdef bint _add(number_t* out, const npy_int64* rows, const number_t* values, const npy_int64* taken, Py_ssize_t n,
               Py_ssize_t width, Py_ssize_t limit, Py_ssize_t height, int extreme) noexcept nogil:
    """Return whether all indices are in [0, `limit`), or [0, `height`) for `taken`. Rows before the first bad index are
    added.

    With `extreme` 1 or -1, keep the larger or the smaller number instead; NaN always wins.
    """
    cdef Py_ssize_t i, j
    cdef npy_uint64 at, own
    cdef number_t* row
    cdef const number_t* added
    cdef number_t value
    for i in range(n):
        at = INDEX(rows + i)
        own = i if taken == NULL else INDEX(taken + i)
        if at >= <npy_uint64>limit or own >= <npy_uint64>height:
            return False
        row, added = out + at * width, values + own * width
        if number_t is npy_int64 or extreme == 0:
            for j in range(width):
                row[j] += added[j]
            continue
        if extreme > 0:
            for j in range(width):
                value = added[j]
                row[j] = value if (value > row[j]) | (value != value) else row[j]
        else:
            for j in range(width):
                value = added[j]
                row[j] = value if (value < row[j]) | (value != value) else row[j]
    return True


cdef bint _run(number_t example, ndarray out, ndarray rows, ndarray values, ndarray taken, int extreme) noexcept:
    cdef Py_ssize_t n = PyArray_DIM(rows, 0), width = PyArray_DIM(values, 1)
    cdef Py_ssize_t limit = PyArray_DIM(out, 0), height = PyArray_DIM(values, 0)
    cdef number_t* target = <number_t*>PyArray_DATA(out)
    cdef const npy_int64* index = <const npy_int64*>PyArray_DATA(rows)
    cdef const number_t* source = <const number_t*>PyArray_DATA(values)
    cdef const npy_int64* own = NULL
    if taken is not None:
        own = <const npy_int64*>PyArray_DATA(taken)
    if n * width <= RELEASE_ABOVE:
        return _add(target, index, source, own, n, width, limit, height, extreme)
    with nogil:
        return _add(target, index, source, own, n, width, limit, height, extreme)


cdef inline bint _is_dense(ndarray a, int ndim) noexcept:
    return is_plain(a) and PyArray_NDIM(a) == ndim and cnp.PyArray_IS_C_CONTIGUOUS(a)


cdef inline bint _is_index(ndarray a, Py_ssize_t n) noexcept:
    return _is_dense(a, 1) and PyArray_TYPE(a) == cnp.NPY_INT64 and PyArray_DIM(a, 0) == n


def add_rows(ndarray out not None, ndarray rows not None, ndarray values not None, int extreme=0,
             ndarray taken=None):
    """Add row i of `values`, or row `taken[i]`, to row `rows[i]` of `out`, in order; with `extreme` 1 or -1, keep the larger
    or smaller numbers instead.

    `out` and `values` must be C-contiguous matrices of one type and width, `rows` and `taken` int64 vectors. Return whether
    there is a loop for the type; without one, nothing is added. Raises IndexError at the first row that is out of range
    (negative ones are).
    """
    refuse("finds elements by an index")
    cdef int t = PyArray_TYPE(out)
    cdef Py_ssize_t n = PyArray_DIM(rows, 0) if PyArray_NDIM(rows) == 1 else -1
    if not (_is_dense(out, 2) and _is_dense(values, 2) and _is_index(rows, n) and cnp.PyArray_ISWRITEABLE(out)
            and PyArray_TYPE(values) == t
            and (PyArray_DIM(values, 0) == n if taken is None else _is_index(taken, n))
            and PyArray_DIM(values, 1) == PyArray_DIM(out, 1)):
        raise ValueError("rows and values do not fit")
    if t == cnp.NPY_FLOAT:
        fits = _run[float](0, out, rows, values, taken, extreme)
    elif t == cnp.NPY_DOUBLE:
        fits = _run[double](0, out, rows, values, taken, extreme)
    elif t == cnp.NPY_INT64 and extreme == 0:
        fits = _run[npy_int64](0, out, rows, values, taken, 0)
    else:
        return False
    if not fits:
        raise IndexError("index out of range in self")
    return True


def joined(list indices, tuple lengths):
    """The places of elements at several indices, one for each of the first axes of an array of that shape, among all
    elements of these axes: a new array. Negative indices count from the end.

    None unless the indices are dense arrays of int64 and of one shape. Raises IndexError for an index out of bounds.
    """
    refuse("finds elements by an index")
    cdef ndarray out = None, index
    cdef npy_int64* place
    cdef const npy_int64* given
    cdef npy_int64 length, at
    cdef Py_ssize_t i, k, n
    if len(indices) > len(lengths):
        return None
    for k in range(len(indices)):
        if not isinstance(indices[k], ndarray):
            return None
        index = indices[k]
        if not is_plain(index) or not cnp.PyArray_IS_C_CONTIGUOUS(index) or PyArray_TYPE(index) != cnp.NPY_INT64:
            return None
        if k and not same_shape(index, <ndarray>indices[0]):
            return None
    for k in range(len(indices)):
        index = indices[k]
        if out is None:
            out = empty(PyArray_NDIM(index), cnp.PyArray_DIMS(index), cnp.NPY_INT64)
        n, length = cnp.PyArray_SIZE(index), lengths[k]
        place, given = <npy_int64*>PyArray_DATA(out), <const npy_int64*>PyArray_DATA(index)
        for i in range(n):
            at = <npy_int64>INDEX(given + i)
            if at < 0:
                at += length
            if <npy_uint64>at >= <npy_uint64>length:
                raise IndexError("index out of range in self")
            place[i] = at if k == 0 else place[i] * length + at
    return out


def counted(ndarray numbers not None, Py_ssize_t length):
    """How often each number below `length` occurs in a vector of int64; None for other arrays.

    Raises IndexError for a number out of range: another thread may change them after a check.
    """
    refuse("finds elements by an index")
    cdef Py_ssize_t i, n = cnp.PyArray_SIZE(numbers)
    cdef const npy_int64* each = <const npy_int64*>PyArray_DATA(numbers)
    cdef npy_int64* out
    cdef npy_uint64 at
    cdef cnp.npy_intp size = length
    cdef ndarray found
    if not _is_index(numbers, n) or length < 0:
        return None
    found = empty(1, &size, cnp.NPY_INT64)
    out = <npy_int64*>PyArray_DATA(found)
    memset(out, 0, cnp.PyArray_NBYTES(found))       # pages one after the other, which counting would touch in any order
    for i in range(n):
        at = INDEX(each + i)
        if at >= <npy_uint64>length:
            raise IndexError("index out of range in self")
        out[at] += 1
    return found


def selected(ndarray array not None, ndarray mask not None):
    """The elements of a small array where a mask of its shape is true, as a vector; None without a loop for it.

    Raises RuntimeError if another thread changes the mask meanwhile.
    """
    refuse("finds elements by an index")
    cdef const npy_uint8* chosen = <const npy_uint8*>PyArray_DATA(mask)
    cdef Py_ssize_t i, n = cnp.PyArray_SIZE(array), found = 0, size = cnp.PyArray_ITEMSIZE(array)
    cdef cnp.npy_intp count = 0
    cdef ndarray out
    if n > RELEASE_ABOVE or size != 4 and size != 8 or PyArray_TYPE(mask) != cnp.NPY_BOOL or (
            not _is_dense(array, PyArray_NDIM(array)) or not _is_dense(mask, PyArray_NDIM(array))
            or not same_shape(array, mask) or PyArray_TYPE(array) > cnp.NPY_CLONGDOUBLE):
        return None
    for i in range(n):
        count += chosen[i] != 0
    out = empty(1, &count, PyArray_TYPE(array))
    for i in range(n):
        if chosen[i] == 0:
            continue
        if found == count:
            break
        if size == 4:
            (<npy_uint32*>PyArray_DATA(out))[found] = (<const npy_uint32*>PyArray_DATA(array))[i]
        else:
            memcpy(<char*>PyArray_DATA(out) + 8 * found, <const char*>PyArray_DATA(array) + 8 * i, 8)
        found += 1
    if found != count:
        raise RuntimeError("the mask was changed while elements were selected by it")
    return out


dispatching(globals(), "add_rows")
