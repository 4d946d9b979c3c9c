"""Normalisations of float32 and float64, forward and backward, in as few passes as there are (`norms.h`).

Of rows: `normalize_rows` and `rows_gradients`. Of groups of runs, an array (a, b, length) whose groups are along its
first dimension and each group's runs along the second, or the other way round: its passes one by one, to be put together
by normalizing.py. Numbers that belong to runs are arrays (groups, runs), those of groups (groups,).
"""

cimport numpy as cnp

from cygrad._kernels.arrays cimport PURE, dense, empty, same_shape
from cygrad._kernels.parallel cimport part_t, share

cnp.import_array()

cdef extern from "norms.h" nogil:
    ctypedef struct run_layout:
        Py_ssize_t groups
        Py_ssize_t group_step
        Py_ssize_t runs
        Py_ssize_t run_step
        Py_ssize_t length

    # float if `is_double` is 0, else double
    void normalize_rows_of "normalize_rows"(
        bint is_double, const void* x, const void* w, const void* b, void* out, void* mean, void* factor,
        Py_ssize_t rows, Py_ssize_t n, double eps, bint centered) noexcept
    void rows_gradient(
        bint is_double, const void* g, const void* x, const void* w, const void* mean, const void* factor,
        void* grad_x, void* grad_w, void* grad_b, Py_ssize_t rows, Py_ssize_t n, bint centered) noexcept
    void moments_of_groups(bint is_double, const void* x, void* mean, void* square, const run_layout* layout) noexcept
    void scale_runs_of "scale_runs"(
        bint is_double, const void* x, void* out, const void* mean, const void* scale, const void* shift,
        const run_layout* layout) noexcept
    void sums_of_runs_of "sums_of_runs"(
        bint is_double, const void* g, const void* x, const void* mean, void* sums, void* products,
        const run_layout* layout) noexcept
    void combine_runs_of "combine_runs"(
        bint is_double, const void* g, const void* x, void* out, const void* mean, const void* scale,
        const void* along, const void* level, const run_layout* layout) noexcept

cdef enum:
    PIECE = 16384               # elements of rows that are worked on together
    FEWEST_ROWS = 16            # so that sums of pieces take little memory


def has_loops(cnp.ndarray a):
    """Whether there are loops for the type of the array."""
    return cnp.PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) and not PURE


cdef cnp.ndarray _of_type(cnp.ndarray a, int t, int ndim, Py_ssize_t m, Py_ssize_t n, str name):
    """The array, dense, of type `t` and shape (m,) or (m, n)."""
    if (cnp.PyArray_TYPE(a) != t or cnp.PyArray_NDIM(a) != ndim or cnp.PyArray_DIM(a, 0) != m
            or ndim == 2 and cnp.PyArray_DIM(a, 1) != n):
        raise ValueError(f"{name} of shape {(<object>a).shape} and type {a.dtype} do not fit")
    return dense(a)


cdef inline void* _data(cnp.ndarray a) noexcept:
    return NULL if a is None else cnp.PyArray_DATA(a)


cdef inline void* _after(void* data, Py_ssize_t elements, bint is_double) noexcept nogil:
    return NULL if data == NULL else <char*>data + elements * (sizeof(double) if is_double else sizeof(float))


cdef int _check_type(cnp.ndarray a, int ndim) except -1:
    if cnp.PyArray_TYPE(a) not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) or cnp.PyArray_NDIM(a) != ndim:
        raise ValueError(f"an array of {ndim} dimensions of float32 or float64, not {(<object>a).shape} of {a.dtype}")
    return 0


# ---------------------------------------------------------------------------------------- rows


cdef struct Rows:               # and what is done with them; see norms.h
    bint is_double
    bint centered
    double eps
    Py_ssize_t n
    Py_ssize_t piece
    void* g
    void* x
    void* w
    void* b
    void* mean
    void* factor
    void* out
    void* grad_w
    void* grad_b


cdef void _normalize(void* context, Py_ssize_t first, Py_ssize_t rows) noexcept nogil:
    cdef Rows* r = <Rows*>context
    cdef bint f64 = r.is_double
    normalize_rows_of(f64, _after(r.x, first * r.n, f64), r.w, r.b, _after(r.out, first * r.n, f64),
                      _after(r.mean, first, f64), _after(r.factor, first, f64), rows, r.n, r.eps, r.centered)


cdef void _find_gradients(void* context, Py_ssize_t first, Py_ssize_t rows) noexcept nogil:
    """Each piece has a row of its own in the gradients of weight and bias."""
    cdef Rows* r = <Rows*>context
    cdef bint f64 = r.is_double
    cdef Py_ssize_t own = first // r.piece * r.n
    rows_gradient(f64, _after(r.g, first * r.n, f64), _after(r.x, first * r.n, f64), r.w, _after(r.mean, first, f64),
                  _after(r.factor, first, f64), _after(r.out, first * r.n, f64), _after(r.grad_w, own, f64),
                  _after(r.grad_b, own, f64), rows, r.n, r.centered)


cdef void _set(Rows* r, cnp.ndarray x, bint centered) noexcept:
    r.is_double = cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE
    r.centered = centered
    r.n = cnp.PyArray_DIM(x, 1)
    r.piece = max(FEWEST_ROWS, PIECE // max(r.n, 1))
    r.x = cnp.PyArray_DATA(x)


def normalize_rows(cnp.ndarray x not None, cnp.ndarray weight not None, cnp.ndarray bias not None, double eps,
                   bint centered):
    """(result, mean, factor) for rows x (m, n): (x - mean) * factor * weight + bias; factor is 1 / sqrt(variance + eps).

    weight and bias are (n,). Not `centered`: the mean is 0. The last two results are (m,).
    """
    cdef Rows r
    cdef cnp.npy_intp m
    cdef cnp.ndarray out, mean, factor
    _check_type(x, 2)
    x = dense(x)
    m = cnp.PyArray_DIM(x, 0)
    _set(&r, x, centered)
    cdef int t = cnp.PyArray_TYPE(x)
    weight = _of_type(weight, t, 1, r.n, 0, "weights")
    bias = _of_type(bias, t, 1, r.n, 0, "biases")
    out, mean, factor = empty(2, cnp.PyArray_DIMS(x), t), empty(1, &m, t), empty(1, &m, t)
    r.w, r.b, r.eps = _data(weight), _data(bias), eps
    r.out, r.mean, r.factor = _data(out), _data(mean), _data(factor)
    with nogil:
        share(_normalize, &r, m, r.piece)
    return out, mean, factor


def rows_gradients(cnp.ndarray g not None, cnp.ndarray x not None, cnp.ndarray weight not None,
                   cnp.ndarray mean not None, cnp.ndarray factor not None, bint centered, bint of_input,
                   bint of_weight, bint of_bias):
    """(gradient of x, of weight, of bias) of `normalize_rows`, from that of its result; None for what is not wanted."""
    cdef Rows r
    cdef cnp.npy_intp[2] dims
    cdef cnp.ndarray out = None, grad_weight = None, grad_bias = None
    _check_type(x, 2)
    x = dense(x)
    _set(&r, x, centered)
    cdef int t = cnp.PyArray_TYPE(x)
    cdef Py_ssize_t m = cnp.PyArray_DIM(x, 0)
    g = _of_type(g, t, 2, m, r.n, "gradients")
    weight = _of_type(weight, t, 1, r.n, 0, "weights")
    mean = _of_type(mean, t, 1, m, 0, "means")
    factor = _of_type(factor, t, 1, m, 0, "factors")
    dims[0] = (m + r.piece - 1) // r.piece
    dims[1] = r.n
    if of_input:
        out = empty(2, cnp.PyArray_DIMS(x), t)
    if of_weight:
        grad_weight = cnp.PyArray_ZEROS(2, dims, t, 0)
    if of_bias:
        grad_bias = cnp.PyArray_ZEROS(2, dims, t, 0)
    r.g, r.w, r.mean, r.factor = _data(g), _data(weight), _data(mean), _data(factor)
    r.out, r.grad_w, r.grad_b = _data(out), _data(grad_weight), _data(grad_bias)
    with nogil:
        share(_find_gradients, &r, m, r.piece)
    return (out, None if grad_weight is None else (<object>grad_weight).sum(0),
            None if grad_bias is None else (<object>grad_bias).sum(0))


# ---------------------------------------------------------------------------------------- groups of runs


cdef struct Groups:             # and what is done with them; see norms.h
    bint is_double
    run_layout layout
    void* g
    void* x
    void* out
    void* mean
    void* one
    void* two
    void* three


cdef Groups _groups(cnp.ndarray x, bint groups_first) noexcept:
    cdef Groups r
    r.is_double = cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE
    r.x = cnp.PyArray_DATA(x)
    r.g = r.out = r.mean = r.one = r.two = r.three = NULL
    r.layout.length = cnp.PyArray_DIM(x, 2)
    if groups_first:
        r.layout.groups = cnp.PyArray_DIM(x, 0)
        r.layout.runs = cnp.PyArray_DIM(x, 1)
        r.layout.run_step = r.layout.length
        r.layout.group_step = r.layout.runs * r.layout.length
    else:
        r.layout.groups = cnp.PyArray_DIM(x, 1)
        r.layout.runs = cnp.PyArray_DIM(x, 0)
        r.layout.group_step = r.layout.length
        r.layout.run_step = r.layout.groups * r.layout.length
    return r


cdef Groups _part(void* context, Py_ssize_t first, Py_ssize_t groups) noexcept nogil:
    """The groups from `first` on; of `one`, `two` and `three` those that belong to runs are moved by the caller."""
    cdef Groups r = (<Groups*>context)[0]
    cdef bint f64 = r.is_double
    cdef Py_ssize_t at = first * r.layout.group_step
    r.layout.groups = groups
    r.g, r.x, r.out = _after(r.g, at, f64), _after(r.x, at, f64), _after(r.out, at, f64)
    r.mean = _after(r.mean, first, f64)
    r.two, r.three = _after(r.two, first, f64), _after(r.three, first, f64)
    return r


cdef void _find_moments(void* context, Py_ssize_t first, Py_ssize_t groups) noexcept nogil:
    cdef Groups r = _part(context, first, groups)
    moments_of_groups(r.is_double, r.x, r.mean, r.two, &r.layout)


cdef void _scale(void* context, Py_ssize_t first, Py_ssize_t groups) noexcept nogil:
    cdef Groups r = _part(context, first, groups)
    cdef Py_ssize_t runs = first * r.layout.runs
    scale_runs_of(r.is_double, r.x, r.out, r.mean, _after(r.one, runs, r.is_double),
                  _after((<Groups*>context).two, runs, r.is_double), &r.layout)


cdef void _find_sums(void* context, Py_ssize_t first, Py_ssize_t groups) noexcept nogil:
    cdef Groups r = _part(context, first, groups)
    cdef Py_ssize_t runs = first * r.layout.runs
    sums_of_runs_of(r.is_double, r.g, r.x, r.mean, _after(r.one, runs, r.is_double),
                    _after((<Groups*>context).two, runs, r.is_double), &r.layout)


cdef void _combine(void* context, Py_ssize_t first, Py_ssize_t groups) noexcept nogil:
    cdef Groups r = _part(context, first, groups)
    combine_runs_of(r.is_double, r.g, r.x, r.out, r.mean, _after(r.one, first * r.layout.runs, r.is_double), r.two,
                    r.three, &r.layout)


cdef void _share(part_t part, Groups* r) noexcept:
    cdef Py_ssize_t size = max(r.layout.runs * r.layout.length, 1)
    with nogil:
        share(part, r, r.layout.groups, max(1, PIECE // size))


cdef cnp.ndarray _empty_for(run_layout* layout, int ndim, int t):
    cdef cnp.npy_intp[2] dims
    dims[0] = layout.groups
    dims[1] = layout.runs
    return empty(ndim, dims, t)


def moments(cnp.ndarray x not None, bint groups_first):
    """(mean, mean square about it) of each group."""
    _check_type(x, 3)
    x = dense(x)
    cdef Groups r = _groups(x, groups_first)
    cdef cnp.ndarray mean = _empty_for(&r.layout, 1, cnp.PyArray_TYPE(x))
    cdef cnp.ndarray square = _empty_for(&r.layout, 1, cnp.PyArray_TYPE(x))
    r.mean, r.two = _data(mean), _data(square)
    _share(_find_moments, &r)
    return mean, square


def scale_runs(cnp.ndarray x not None, cnp.ndarray mean not None, cnp.ndarray scale not None,
               cnp.ndarray shift not None, bint groups_first):
    """(x - mean) * scale + shift: the mean that of the group, scale and shift those of the run."""
    _check_type(x, 3)
    x = dense(x)
    cdef int t = cnp.PyArray_TYPE(x)
    cdef Groups r = _groups(x, groups_first)
    cdef cnp.ndarray out = empty(3, cnp.PyArray_DIMS(x), t)
    mean = _of_type(mean, t, 1, r.layout.groups, 0, "means")
    scale = _of_type(scale, t, 2, r.layout.groups, r.layout.runs, "scales")
    shift = _of_type(shift, t, 2, r.layout.groups, r.layout.runs, "shifts")
    r.out, r.mean, r.one, r.two = _data(out), _data(mean), _data(scale), _data(shift)
    _share(_scale, &r)
    return out


def sums_of_runs(cnp.ndarray g not None, cnp.ndarray x not None, cnp.ndarray mean not None, bint groups_first):
    """For each run (the sum of g, the sum of g * (x - mean))."""
    _check_type(x, 3)
    x = dense(x)
    cdef int t = cnp.PyArray_TYPE(x)
    cdef Groups r = _groups(x, groups_first)
    g = _like(g, x)
    mean = _of_type(mean, t, 1, r.layout.groups, 0, "means")
    cdef cnp.ndarray sums = _empty_for(&r.layout, 2, t), products = _empty_for(&r.layout, 2, t)
    r.g, r.mean, r.one, r.two = _data(g), _data(mean), _data(sums), _data(products)
    _share(_find_sums, &r)
    return sums, products


def combine_runs(cnp.ndarray g not None, cnp.ndarray x not None, cnp.ndarray mean not None,
                 cnp.ndarray scale not None, cnp.ndarray along not None, cnp.ndarray level not None,
                 bint groups_first):
    """g * scale + (x - mean) * along + level: the scale that of the run, the others those of the group."""
    _check_type(x, 3)
    x = dense(x)
    cdef int t = cnp.PyArray_TYPE(x)
    cdef Groups r = _groups(x, groups_first)
    cdef cnp.ndarray out = empty(3, cnp.PyArray_DIMS(x), t)
    g = _like(g, x)
    mean = _of_type(mean, t, 1, r.layout.groups, 0, "means")
    scale = _of_type(scale, t, 2, r.layout.groups, r.layout.runs, "scales")
    along = _of_type(along, t, 1, r.layout.groups, 0, "slopes")
    level = _of_type(level, t, 1, r.layout.groups, 0, "levels")
    r.g, r.out, r.mean = _data(g), _data(out), _data(mean)
    r.one, r.two, r.three = _data(scale), _data(along), _data(level)
    _share(_combine, &r)
    return out


cdef cnp.ndarray _like(cnp.ndarray g, cnp.ndarray x):
    if not same_shape(g, x) or cnp.PyArray_TYPE(g) != cnp.PyArray_TYPE(x):
        raise ValueError(f"gradients of shape {(<object>g).shape} and type {g.dtype} do not fit")
    return dense(g)
