"""View geometry: offset, shape and strides of a view relative to another array's memory.

View ops modify a `Geometry`, and `view_of` creates the array. Gradients of views with arbitrary strides are in
strided_gradients.py.
"""

cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from numpy cimport PyArray_BYTES, PyArray_DESCR, PyArray_DIMS, PyArray_NDIM, PyArray_STRIDES, ndarray

from cygrad._kernels.cpu.base.arrays cimport Operand, extent, is_on_cpu, operand
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, shown_through
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.device import gpu_forms
from cygrad._library import later

copying = later("cygrad._kernels.cpu.base.copying")     # which imports this module

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(type subtype, cnp.dtype descr, int nd, npy_intp* dims, npy_intp* strides,
                                void* data, int flags, object obj)
    int PyArray_SetBaseObject(ndarray array, object base) except -1


# -- arrays and geometries ---------------------------------------------------------------------------------

cdef int geometry_of(object a, Geometry* g) except -1:
    cdef ndarray array
    cdef int i
    if not is_on_cpu(a):
        if is_unresolved(a):
            return geometry_of(behind(a), g)
        gpu_forms.require_array(a)
        if len(a.strides) != len(a.shape):      # a sparse array has none
            a.refuse("as_strided")
        return enter_geometry(g, a.shape, a.strides, 0)
    array = <ndarray>a
    g.ndim = PyArray_NDIM(array)
    g.offset = 0
    for i in range(g.ndim):
        g.dims[i] = PyArray_DIMS(array)[i]
        g.strides[i] = PyArray_STRIDES(array)[i]
    return 0


cdef int enter_geometry(Geometry* g, tuple shape, tuple strides, Py_ssize_t offset) except -1:
    cdef int i
    check_ndim(len(shape))
    g.ndim = <int>len(shape)
    g.offset = offset
    for i in range(g.ndim):
        g.dims[i] = shape[i]
        g.strides[i] = strides[i]
    return 0


cdef object view_of(object a, Geometry* g):
    cdef ndarray array
    cdef cnp.dtype descr
    cdef int i
    if not is_on_cpu(a):
        if is_unresolved(a):
            return shown_through(a, view_of(behind(a), g))
        return gpu_forms.view(a, tuple([g.dims[i] for i in range(g.ndim)]), tuple([g.strides[i] for i in range(g.ndim)]),
                        g.offset)
    array = <ndarray>a
    descr = <cnp.dtype>PyArray_DESCR(array)
    Py_INCREF(descr)            # PyArray_NewFromDescr steals a reference
    view = PyArray_NewFromDescr(ndarray, descr, g.ndim, g.dims, g.strides, PyArray_BYTES(array) + g.offset,
                                cnp.PyArray_FLAGS(array) & cnp.NPY_ARRAY_WRITEABLE, None)
    Py_INCREF(array)            # PyArray_SetBaseObject steals a reference, too
    PyArray_SetBaseObject(<ndarray>view, array)
    return view


cpdef object restride(object a, tuple shape, tuple strides, Py_ssize_t offset):
    """A view of the memory of `a` from `offset` bytes after its first element, with strides in bytes.

    The caller must ensure that all of it is within that memory.
    """
    cdef Geometry g
    enter_geometry(&g, shape, strides, offset)
    return view_of(a, &g)


cdef int check_ndim(Py_ssize_t ndim) except -1:
    if ndim > MAXDIMS:
        raise RuntimeError(f"tensors have at most {MAXDIMS} dimensions, this would have {ndim}")
    return 0


cdef Py_ssize_t distance(object a, object b) except? -1:
    a, b = behind(a), behind(b)
    if not is_on_cpu(a):
        return a.data.ptr - b.data.ptr
    return PyArray_BYTES(<ndarray>a) - PyArray_BYTES(<ndarray>b)


cdef bint lies_within(object part, object whole) except -1:
    cdef Operand inner, outer
    cdef char* low
    cdef char* high
    cdef char* low_whole
    cdef char* high_whole
    part, whole = behind(part), behind(whole)
    if not is_on_cpu(part) or not is_on_cpu(whole):
        return gpu_forms.lies_within(part, whole)
    inner, outer = operand(<ndarray>part), operand(<ndarray>whole)
    extent(&inner, &low, &high)
    extent(&outer, &low_whole, &high_whole)
    return low == high or (low_whole <= low and high <= high_whole)


cpdef bint overlaps_itself(object array) except -1:
    """Whether a dimension of stride 0 makes several elements of `array` share memory."""
    cdef Geometry g
    cdef int i
    cdef bint repeats = False
    geometry_of(array, &g)
    for i in range(g.ndim):
        if g.dims[i] == 0:
            return False
        repeats = repeats or (g.strides[i] == 0 and g.dims[i] > 1)
    return repeats


# -- single view operations -------------------------------------------------------------------------------

cdef void select_at(Geometry* g, int dim, Py_ssize_t index) noexcept:
    g.offset += index * g.strides[dim]
    remove_dim(g, dim)


cdef void slice_at(Geometry* g, int dim, Py_ssize_t start, Py_ssize_t length, Py_ssize_t step) noexcept:
    g.offset += start * g.strides[dim]
    g.dims[dim] = length
    g.strides[dim] *= step


cdef int insert_dim(Geometry* g, int dim, npy_intp itemsize) except -1:
    """Insert a dimension of length 1 before dimension `dim`, with the stride that keeps a dense layout dense."""
    cdef int i
    cdef npy_intp stride = itemsize
    check_ndim(g.ndim + 1)
    if dim < g.ndim:
        stride = g.dims[dim] * g.strides[dim]
    for i in range(g.ndim, dim, -1):
        g.dims[i] = g.dims[i - 1]
        g.strides[i] = g.strides[i - 1]
    g.dims[dim] = 1
    g.strides[dim] = stride
    g.ndim += 1
    return 0


cdef void remove_dim(Geometry* g, int dim) noexcept:
    cdef int i
    g.ndim -= 1
    for i in range(dim, g.ndim):
        g.dims[i] = g.dims[i + 1]
        g.strides[i] = g.strides[i + 1]


cdef void swap_dims(Geometry* g, int a, int b) noexcept:
    g.dims[a], g.dims[b] = g.dims[b], g.dims[a]
    g.strides[a], g.strides[b] = g.strides[b], g.strides[a]


cdef void permute_dims(Geometry* g, int* order) noexcept:
    cdef npy_intp[MAXDIMS] dims, strides
    cdef int i
    for i in range(g.ndim):
        dims[i] = g.dims[order[i]]
        strides[i] = g.strides[order[i]]
    for i in range(g.ndim):
        g.dims[i] = dims[i]
        g.strides[i] = strides[i]


cdef bint reshape(Geometry* g, int ndim, npy_intp* dims, npy_intp itemsize) noexcept:
    """Change the dimensions of `g`, keeping the number of elements. Return False, without a change, if no strides can
    express them.

    Works backwards from the last dimension: adjacent old dimensions that are contiguous with each other form one run, and
    new dimensions must fill each run exactly.
    """
    cdef npy_intp[MAXDIMS] strides
    cdef npy_intp base, run, filled
    cdef int i, j = ndim - 1
    cdef bint empty = False
    for i in range(g.ndim):
        empty = empty or g.dims[i] == 0
    if empty or g.ndim == 0:
        _set_contiguous(g, ndim, dims, itemsize, empty)
        return True
    i = g.ndim - 1
    while i >= 0:
        base = g.strides[i]
        run = g.dims[i]
        while i > 0 and (g.dims[i - 1] == 1 or g.strides[i - 1] == run * base):
            i -= 1
            run *= g.dims[i]
        i -= 1
        filled = 1
        while j >= 0 and (filled < run or dims[j] == 1):
            strides[j] = filled * base
            filled *= dims[j]
            j -= 1
        if filled != run:
            return False
    g.ndim = ndim
    for i in range(ndim):
        g.dims[i] = dims[i]
        g.strides[i] = strides[i]
    return True


cdef void _set_contiguous(Geometry* g, int ndim, npy_intp* dims, npy_intp itemsize, bint keep_same) noexcept:
    cdef int i
    cdef bint same = keep_same and ndim == g.ndim
    for i in range(ndim):
        same = same and g.dims[i] == dims[i]
    if same:
        return
    g.ndim = ndim
    for i in range(ndim - 1, -1, -1):
        g.dims[i] = dims[i]
        g.strides[i] = itemsize
        itemsize *= max(dims[i], 1)


# -- memory formats of images ------------------------------------------------------------------------------

cdef dict CHANNELS_LAST = {4: ((0, 2, 3, 1), (0, 3, 1, 2)), 5: ((0, 2, 3, 4, 1), (0, 4, 1, 2, 3))}    # there and back


cpdef bint is_channels_last(object array) except -1:
    """Whether the strides are those of a channels-last image or volume; False where they are also those of another order.

    As in PyTorch, strides of dimensions of length 1 count.
    """
    cdef Geometry g
    cdef Py_ssize_t least = 0
    cdef int i, dim
    geometry_of(array, &g)
    if g.ndim != 4 and g.ndim != 5 or g.strides[1] == 0:
        return False
    for i in range(g.ndim):
        dim = 1 if i == 0 else g.ndim - i if i < g.ndim - 1 else 0
        if g.dims[dim] == 0 or g.strides[dim] < least or (dim == 0 and least == g.strides[1]):
            return False
        least = g.strides[dim] * g.dims[dim]
    return True


cpdef object in_format_of(object array, object image):
    """Return `array` as a channels-last copy if `image`, of as many dimensions, is channels last; else as it is."""
    if not is_channels_last(image) or array.ndim != image.ndim or is_channels_last(array):
        return array
    there, back = CHANNELS_LAST[array.ndim]
    if tape_open:
        return copying.contiguous(array.transpose(there)).transpose(back)
    return array.transpose(there).copy("C").transpose(back)
