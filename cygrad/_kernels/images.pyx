"""Windows of images: their patches and the way back, and the largest element of each (`images.h`).

Arrays are dense, of float32 or float64; planes of images are shared among threads. A geometry is
(image, kernel, stride, dilation, low, first row, last row, width), the first five pairs: see sliding.py.
"""

cimport numpy as cnp

from cygrad._kernels.arrays cimport PURE, is_plain
from cygrad._kernels.parallel cimport part_t, share

cnp.import_array()

cdef extern from "images.h" nogil:
    ctypedef struct windows:
        Py_ssize_t[2] image
        Py_ssize_t[2] kernel
        Py_ssize_t[2] stride
        Py_ssize_t[2] dilation
        Py_ssize_t[2] low
        Py_ssize_t first
        Py_ssize_t last
        Py_ssize_t width

    # float if `is_double` is 0, else double
    void copy_patches_of "copy_patches"(bint is_double, const void* image, void* patches, Py_ssize_t tap_step,
                                        const windows* w) noexcept
    void add_patches_of "add_patches"(bint is_double, void* image, const void* patches, Py_ssize_t tap_step,
                                      const windows* w) noexcept
    void largest_of_windows(bint is_double, const void* image, void* out, cnp.npy_int64* places,
                            const windows* w) noexcept
    int add_at_of "add_at"(bint is_double, void* out, Py_ssize_t n, const cnp.npy_int64* places, const void* values,
                           Py_ssize_t count) noexcept

cdef enum:
    PIECE = 1 << 14             # elements that one thread works on


def has_loops(cnp.ndarray a not None):
    """Whether there are loops for the type of the array."""
    return cnp.PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) and not PURE


cdef struct Planes:             # of images (n, channels, height, width), and what becomes of them
    bint is_double
    windows w
    Py_ssize_t n
    Py_ssize_t channels
    Py_ssize_t image            # bytes of one plane
    Py_ssize_t result           # elements of one plane of the result
    Py_ssize_t itemsize
    char* x
    char* y
    cnp.npy_int64* places
    bint failed


cdef int _check(cnp.ndarray a, int t, int ndim, bint writes) except -1:
    if not (is_plain(a) and cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_NDIM(a) == ndim
            and cnp.PyArray_TYPE(a) == t and (cnp.PyArray_ISWRITEABLE(a) or not writes)):
        raise ValueError(f"an array of {ndim} dense dimensions, not {(<object>a).shape} of {a.dtype}")
    return 0


cdef Planes _planes(cnp.ndarray x, tuple geometry) except *:
    cdef Planes p
    cdef int d
    if cnp.PyArray_TYPE(x) not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
        raise ValueError("an array of float32 or float64")
    _check(x, cnp.PyArray_TYPE(x), 4, False)
    image, kernel, stride, dilation, low, p.w.first, p.w.last, p.w.width = geometry
    for d in range(2):
        p.w.image[d], p.w.kernel[d], p.w.stride[d], p.w.dilation[d] = image[d], kernel[d], stride[d], dilation[d]
        p.w.low[d] = low[d]
        if (p.w.image[d] != cnp.PyArray_DIM(x, d + 2) or p.w.kernel[d] < 1 or p.w.stride[d] < 1 or p.w.dilation[d] < 1):
            raise ValueError(f"images {(<object>x).shape} in windows of {geometry}")
    if not 0 <= p.w.first <= p.w.last or p.w.width < 0:
        raise ValueError(f"windows of {geometry}")
    p.is_double = cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE
    p.itemsize = cnp.PyArray_ITEMSIZE(x)
    p.n = cnp.PyArray_DIM(x, 0)
    p.channels = cnp.PyArray_DIM(x, 1)
    p.image = p.w.image[0] * p.w.image[1] * p.itemsize
    p.result = (p.w.last - p.w.first) * p.w.width
    p.x = cnp.PyArray_BYTES(x)
    p.failed = False
    return p


cdef void _share(part_t part, Planes* p, Py_ssize_t work) noexcept:
    with nogil:
        share(part, p, p.n * p.channels, max(1, PIECE // max(work, 1)))


# ---------------------------------------------------------------------------------------- patches


cdef inline char* _patches_of(Planes* p, Py_ssize_t plane) noexcept nogil:
    """Of image `plane // channels`; they have the shape (channels, taps, images, rows, width)."""
    cdef Py_ssize_t taps = p.w.kernel[0] * p.w.kernel[1]
    return p.y + (plane % p.channels * taps * p.n + plane // p.channels) * p.result * p.itemsize


cdef void _copy(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Planes* p = <Planes*>context
    cdef Py_ssize_t i
    for i in range(first, first + count):
        copy_patches_of(p.is_double, <void*>(p.x + i * p.image), <void*>_patches_of(p, i), p.n * p.result, &p.w)


cdef void _add(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Planes* p = <Planes*>context
    cdef Py_ssize_t i
    for i in range(first, first + count):
        add_patches_of(p.is_double, <void*>(p.x + i * p.image), <void*>_patches_of(p, i), p.n * p.result, &p.w)


cdef int _join(part_t part, cnp.ndarray x, cnp.ndarray patches, tuple geometry, bint writes) except -1:
    cdef Planes p = _planes(x, geometry)
    cdef Py_ssize_t taps = p.w.kernel[0] * p.w.kernel[1]
    _check(patches, cnp.PyArray_TYPE(x), 1, not writes)
    if writes:
        _check(x, cnp.PyArray_TYPE(x), 4, True)
    if cnp.PyArray_SIZE(patches) != p.channels * taps * p.n * p.result:
        raise ValueError(f"{cnp.PyArray_SIZE(patches)} elements for patches of {(<object>x).shape} in {geometry}")
    p.y = cnp.PyArray_BYTES(patches)
    _share(part, &p, taps * p.result)
    return 0


def copy_patches(cnp.ndarray x not None, cnp.ndarray patches not None, tuple geometry):
    """Overwrite `patches`, flat, with (channels, taps, images, rows, width): what each tap sees of the images."""
    _join(_copy, x, patches, geometry, False)


def add_patches(cnp.ndarray x not None, cnp.ndarray patches not None, tuple geometry):
    """Add patches to the places of the images from which `copy_patches` would take them."""
    _join(_add, x, patches, geometry, True)


# ---------------------------------------------------------------------------------------- largest elements


cdef void _find_largest(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Planes* p = <Planes*>context
    cdef Py_ssize_t i
    for i in range(first, first + count):
        largest_of_windows(p.is_double, <void*>(p.x + i * p.image), <void*>(p.y + i * p.result * p.itemsize),
                           p.places + i * p.result, &p.w)


def largest(cnp.ndarray x not None, cnp.ndarray values not None, cnp.ndarray places not None, tuple geometry):
    """Overwrite `values` and `places`, flat, with the largest element of each window and its place in its plane.

    Each window must see some place of the image.
    """
    cdef Planes p = _planes(x, geometry)
    cdef Py_ssize_t d, last
    _check(values, cnp.PyArray_TYPE(x), 1, True)
    _check(places, cnp.NPY_INT64, 1, True)
    if (cnp.PyArray_SIZE(values) != p.n * p.channels * p.result
            or cnp.PyArray_SIZE(places) != cnp.PyArray_SIZE(values)):
        raise ValueError(f"{cnp.PyArray_SIZE(values)} results for {(<object>x).shape} in {geometry}")
    for d in range(2):
        last = (p.w.width if d else p.w.last) - 1
        if p.w.low[d] > (p.w.kernel[d] - 1) * p.w.dilation[d] or p.w.low[d] > 0 and p.w.dilation[d] > 1 or (
                last * p.w.stride[d] - p.w.low[d] >= p.w.image[d]):
            raise ValueError(f"a window of {geometry} sees nothing of the image")
    p.y = cnp.PyArray_BYTES(values)
    p.places = <cnp.npy_int64*>cnp.PyArray_DATA(places)
    _share(_find_largest, &p, p.result * p.w.kernel[0] * p.w.kernel[1])


# ---------------------------------------------------------------------------------------- adding to places


cdef void _add_at(void* context, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Planes* p = <Planes*>context
    cdef Py_ssize_t i
    for i in range(first, first + count):
        if not add_at_of(p.is_double, <void*>(p.x + i * p.image), p.image // p.itemsize, p.places + i * p.result,
                         <void*>(p.y + i * p.result * p.itemsize), p.result):
            p.failed = True


def add_at(cnp.ndarray out not None, cnp.ndarray places not None, cnp.ndarray values not None):
    """Add each of `values` (rows, m) to row i of `out` (rows, n) at its place, one after the other.

    Raises IndexError for a place that is none; negative ones are none.
    """
    cdef Planes p
    cdef int t = cnp.PyArray_TYPE(out)
    _check(out, t, 2, True)
    _check(places, cnp.NPY_INT64, 2, False)
    _check(values, t, 2, False)
    p.n, p.channels, p.result = cnp.PyArray_DIM(out, 0), 1, cnp.PyArray_DIM(values, 1)
    if (t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE or cnp.PyArray_DIM(values, 0) != p.n
            or cnp.PyArray_DIM(places, 0) != p.n or cnp.PyArray_DIM(places, 1) != p.result):
        raise ValueError("places and values do not fit")
    p.is_double, p.itemsize, p.failed = t == cnp.NPY_DOUBLE, cnp.PyArray_ITEMSIZE(out), False
    p.image = cnp.PyArray_DIM(out, 1) * p.itemsize
    p.x, p.y = cnp.PyArray_BYTES(out), cnp.PyArray_BYTES(values)
    p.places = <cnp.npy_int64*>cnp.PyArray_DATA(places)
    _share(_add_at, &p, p.result)
    if p.failed:
        raise IndexError("index out of range in self")
