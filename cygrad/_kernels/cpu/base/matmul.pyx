"""Matrix products through the loops of NumPy's `matmul`, which call BLAS.

BLAS reads matrices in row-major or column-major order at no cost, so transposed operands are not copied. Operands without a
contiguous dimension are copied: NumPy's loop would be far slower without BLAS. See Note [NumPy's inner loops] in ufunc.pyx.

We split large products into tiles whose bounds depend on the shapes alone (Note [Pieces] in thread_pool.pyx), and our own
threads share them; BLAS threads would compete with ours for the processors (blas_threads.h). Small products, and float32
tiles on processors with AVX2, are computed by our own loops (matmul.h).

LAPACK functions are called through Fortran's calling convention, by their address in the library that NumPy has loaded
(lapack.py).
"""

import numpy as np

from libc.math cimport fabs
from libc.string cimport memset

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport MAXDIMS, NTYPES, PURE, Operand, cast, dense, empty, is_plain, operand
from cygrad._kernels.cpu.base.ufunc cimport PyUFuncObject, Ufunc
from cygrad._kernels.platform.thread_pool cimport blas_has_short_vectors, blas_works_alone, share_products
from cygrad._kernels.cpu.base.nditer cimport (
    Core, Loop, Walk, coalesce, extent_of_walk, join, loop_t, run, run_at, run_shared)
from cygrad._kernels.cpu.base import numpy_fallback
from cygrad._kernels.device.dispatch import dispatching
from cygrad._kernels.tape.tape cimport READS, SCATTERS, WRITES, Word, note, refuse, tape_open, word

cnp.import_array()

cdef extern from "base/matmul.h":
    ctypedef struct blas_loop:
        loop_t function
        void* data
    bint has_own_tiles, is_blas_short
    bint can_tile() noexcept
    bint has_long_vectors() noexcept
    void multiply_float(char** args, const cnp.npy_intp* counts, const cnp.npy_intp* steps, void* data) noexcept nogil
    void multiply_double(char** args, const cnp.npy_intp* counts, const cnp.npy_intp* steps, void* data) noexcept nogil

cdef extern from "<float.h>":
    const double DBL_MIN
    const float FLT_MIN

cdef extern from "base/lapack.h":
    void* cygrad_find_lapack(const char* library, const char* name, int* is_wide)

ctypedef void (*fortran_t)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*,
                           void*, void*, void*, void*, void*) noexcept nogil

cdef enum:
    RELEASE_ABOVE_PRODUCTS = 100000     # multiplications; for fewer, keep the GIL
    PIECE = 1 << 20                     # multiplications worth handing to a thread
    NARROW = 64                         # rows or columns that are never split
    LARGE_OUTER = 1 << 17               # elements of an outer product that threads share
    ARGUMENTS = 18                      # passed to a LAPACK function

cdef Loop[NTYPES] _loops
cdef blas_loop[2] _blas         # NumPy's loops for float and double, which ours call
cdef Ufunc _add = Ufunc(np.add)
cdef Ufunc _multiply = Ufunc(np.multiply)


cdef int _keep_loops(cnp.ufunc ufunc) except -1:
    cdef PyUFuncObject* source = <PyUFuncObject*>ufunc
    cdef int i, t
    cdef const char* types = source.types
    for t in range(NTYPES):
        _loops[t].function = NULL
    if PURE:
        return 0
    for i in range(source.ntypes):
        t = types[3 * i]
        if 0 <= t < NTYPES and types[3 * i + 1] == t and types[3 * i + 2] == t and t != cnp.NPY_OBJECT:
            _loops[t].function = source.functions[i]
            _loops[t].data = source.data[i]
            _loops[t].out_type = t
    for i, t in enumerate((cnp.NPY_FLOAT, cnp.NPY_DOUBLE)):
        _blas[i] = blas_loop(_loops[t].function, _loops[t].data)
        _loops[t].function = multiply_double if i else multiply_float
        _loops[t].data = &_blas[i]
    return 0

has_own_tiles = can_tile() and blas_works_alone()
is_blas_short = has_long_vectors() and blas_works_alone() and blas_has_short_vectors()
_keep_loops(np.matmul)


cdef Loop* matmul_loop(int t) noexcept:
    return &_loops[t]


cdef cnp.ndarray _readable(cnp.ndarray a):
    """Return `a`, or a contiguous copy if BLAS cannot read its last two dimensions."""
    cdef int ndim = cnp.PyArray_NDIM(a)
    cdef cnp.npy_intp itemsize = cnp.PyArray_ITEMSIZE(a), row, column, m, n
    if not is_plain(a):
        return np.array(a, dtype=cnp.PyArray_DescrFromType(cnp.PyArray_TYPE(a)), order="C")
    if cnp.PyArray_IS_C_CONTIGUOUS(a):
        return a
    if ndim == 1:
        return dense(a) if tape_open else cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)
    row = cnp.PyArray_STRIDE(a, ndim - 2)
    column = cnp.PyArray_STRIDE(a, ndim - 1)
    m = cnp.PyArray_DIM(a, ndim - 2)
    n = cnp.PyArray_DIM(a, ndim - 1)
    if (column == itemsize and row >= n * itemsize and row % itemsize == 0
            or row == itemsize and column >= m * itemsize and column % itemsize == 0):
        return a
    return dense(a) if tape_open else cnp.PyArray_NewCopy(a, cnp.NPY_CORDER)    # the tape knows `dense`


cdef inline void _run(Walk* walk, int t, Core* core, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out) noexcept:
    cdef char* data[3]
    cdef cnp.npy_intp work = core.dims[0] * core.dims[1] * core.dims[2]
    cdef int i
    if cnp.PyArray_SIZE(out) == 0:
        return
    if work == 0:               # empty sums
        refuse("adds up nothing", "matmul")
        out.fill(0)
        return
    for i in range(walk.ndim):
        work *= walk.dims[i]
    data[0] = cnp.PyArray_BYTES(a)
    data[1] = cnp.PyArray_BYTES(b)
    data[2] = cnp.PyArray_BYTES(out)
    if tape_open:
        _note(walk, t, core, data, work, out)
    if work > RELEASE_ABOVE_PRODUCTS:
        with nogil:
            _share(walk, &_loops[t], data, core)
    else:
        run(walk, &_loops[t], data, core)


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct ProductCall:        # the end of a call of `_run`
    Walk walk
    Core core
    Loop loop
    char* data[3]
    cnp.npy_intp work


cdef void _replay(void* context) noexcept nogil:
    cdef ProductCall* call = <ProductCall*>context
    if call.work > RELEASE_ABOVE_PRODUCTS:
        _share(&call.walk, &call.loop, call.data, &call.core)
    else:
        run(&call.walk, &call.loop, call.data, &call.core)


cdef void _note(Walk* walk, int t, Core* core, char** data, cnp.npy_intp work, cnp.ndarray out) noexcept:
    cdef ProductCall call
    cdef Word[3] words
    cdef Py_ssize_t low, high, n, itemsize = cnp.PyArray_ITEMSIZE(out)
    cdef int[6] sizes = [0, 1, 1, 2, 0, 2]      # the dimension behind each stride of the core
    cdef int d, k
    memset(&call, 0, sizeof(call))
    call.walk.count = walk.count
    call.walk.ndim = walk.ndim
    for d in range(walk.ndim):
        call.walk.dims[d] = walk.dims[d]
        for k in range(3):
            call.walk.strides[k][d] = walk.strides[k][d]
    call.core = core[0]
    call.loop = _loops[t]
    call.work = work
    for k in range(3):
        call.data[k] = data[k]
        extent_of_walk(walk, k, itemsize, &low, &high)
        for d in range(2 * k, 2 * k + 2):
            n = (core.dims[sizes[d]] - 1) * core.strides[d]
            low += min(n, 0)
            high += max(n, 0)
        words[k] = word(&call, &call.data[k],
                        READS if k < 2 else WRITES if high - low == cnp.PyArray_NBYTES(out) else SCATTERS, low, high)
    note(_replay, "product", &call, sizeof(call), words, 3)


cdef struct Tiles:
    Walk* walk
    Loop* loop
    char** start
    const Core* core
    cnp.npy_intp rows, columns          # per tile
    cnp.npy_intp down, across           # tiles per product


cdef void _share(Walk* walk, Loop* loop, char** data, const Core* core) noexcept nogil:
    """Compute all products in chunks: several small products each, or tiles of large ones."""
    cdef cnp.npy_intp depth = core.dims[1], thin = min(core.dims[0], core.dims[2]), work, products = 1
    cdef Tiles tiles = Tiles(walk, loop, data, core, core.dims[0], core.dims[2], 1, 1)
    cdef Loop several = loop[0]
    cdef int i
    if thin < 8:
        depth = depth * 8 // thin   # memory-bound work takes that much longer
    work = core.dims[0] * depth * core.dims[2]
    for i in range(walk.ndim):
        products *= walk.dims[i]
    if not blas_works_alone() or _is_square(data, core):
        run(walk, loop, data, core)
    elif work < PIECE:
        several.piece = PIECE // work
        run_shared(walk, &several, data, core)
    else:
        _cut(&tiles, depth)
        share_products(_run_tiles, &tiles, products * tiles.down * tiles.across, 1)


cdef bint _is_square(char** data, const Core* core) noexcept nogil:
    """Whether this is a matrix times its own transpose, of which BLAS computes only one half."""
    return data[0] == data[1] and core.strides[0] == core.strides[3] and core.strides[1] == core.strides[2]


cdef void _cut(Tiles* s, cnp.npy_intp depth) noexcept nogil:
    """Halve the longer side of the tiles, which minimizes the memory that BLAS reads, as long as that pays off.

    The minimum tile size suffices to get four tiles, enough for two or four threads; more tiles must be large enough to be
    worth reading twice.
    """
    cdef cnp.npy_intp work, count
    while max(s.rows, s.columns) > NARROW:
        work = s.rows * s.columns * depth
        count = s.down * s.across
        if work < 2 * PIECE or count >= 4 and work < 16 * PIECE or count >= 16 and work < 256 * PIECE:
            return
        if s.rows >= s.columns:
            s.rows = _half(s.rows)
            s.down = (s.core.dims[0] + s.rows - 1) // s.rows
        else:
            s.columns = _half(s.columns)
            s.across = (s.core.dims[2] + s.columns - 1) // s.columns


cdef cnp.npy_intp _half(cnp.npy_intp n) noexcept nogil:
    """Half of n, rounded up to a multiple of 16, which BLAS computes together."""
    return ((n + 1) // 2 + 15) // 16 * 16


cdef void _run_tiles(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Tiles* s = <Tiles*>context
    cdef const Core* whole = s.core
    cdef Core core = whole[0]
    cdef char* data[3]
    cdef cnp.npy_intp i, row, column
    for i in range(first, first + n):
        row = i // s.across % s.down * s.rows
        column = i % s.across * s.columns
        core.dims[0] = min(s.rows, whole.dims[0] - row)
        core.dims[2] = min(s.columns, whole.dims[2] - column)
        data[0] = s.start[0] + row * whole.strides[0]
        data[1] = s.start[1] + column * whole.strides[3]
        data[2] = s.start[2] + row * whole.strides[4] + column * whole.strides[5]
        run_at(s.walk, s.loop, data, &core, i // (s.down * s.across))


cdef inline int _set_core(Core* core, cnp.ndarray a, cnp.ndarray b) except -1:
    """Set sizes and strides of (m, n) @ (n, p); a vector is one row on the left and one column on the right."""
    cdef int i = cnp.PyArray_NDIM(a), j = cnp.PyArray_NDIM(b)
    cdef cnp.npy_intp itemsize = cnp.PyArray_ITEMSIZE(a), n
    if i == 0 or j == 0:
        raise ValueError("matmul of a 0-dim array")
    core.dims[0] = 1 if i == 1 else cnp.PyArray_DIM(a, i - 2)
    core.dims[1] = cnp.PyArray_DIM(a, i - 1)
    n = cnp.PyArray_DIM(b, 0 if j == 1 else j - 2)
    core.dims[2] = 1 if j == 1 else cnp.PyArray_DIM(b, j - 1)
    if core.dims[1] != n:
        raise ValueError(f"matmul of shapes {(<object>a).shape} and {(<object>b).shape}")
    # The stride of a single row or column is arbitrary; this one lets BLAS treat it as a matrix.
    core.strides[0] = core.dims[1] * itemsize if i == 1 else cnp.PyArray_STRIDE(a, i - 2)
    core.strides[1] = cnp.PyArray_STRIDE(a, i - 1)
    core.strides[2] = cnp.PyArray_STRIDE(b, 0 if j == 1 else j - 2)
    core.strides[3] = itemsize if j == 1 else cnp.PyArray_STRIDE(b, j - 1)
    core.strides[4] = core.dims[2] * itemsize
    core.strides[5] = itemsize
    return 0


cpdef cnp.ndarray matmul(cnp.ndarray a, cnp.ndarray b):
    """The product of ``numpy.matmul``: of vectors, matrices, or batches of matrices, of one dtype.

    Incompatible shapes raise ``ValueError``. float16 is multiplied in float32.
    """
    cdef int t = cnp.PyArray_TYPE(a)
    cdef cnp.npy_intp[2] dims
    cdef int ndim = 0
    cdef Core core
    cdef Walk walk
    cdef cnp.ndarray out
    _set_core(&core, a, b)
    if (t == cnp.NPY_FLOAT16 or t >= NTYPES) and cnp.PyArray_TYPE(b) == t:
        return cast(matmul(cast(a, cnp.NPY_FLOAT), cast(b, cnp.NPY_FLOAT)), t)
    if t >= NTYPES or cnp.PyArray_TYPE(b) != t or _loops[t].function == NULL:
        refuse("runs in NumPy", "matmul")
        return numpy_fallback.call(np.matmul, a, b)
    if cnp.PyArray_NDIM(a) > 2 or cnp.PyArray_NDIM(b) > 2:
        return _stacked(t, a, b, None)
    if (core.dims[1] == 1 and core.dims[2] >= 8 and cnp.PyArray_NDIM(a) == cnp.PyArray_NDIM(b) == 2
            and (core.dims[0] * core.dims[2] > LARGE_OUTER or t != cnp.NPY_FLOAT and t != cnp.NPY_DOUBLE)):
        return _multiply.call2(a, b, None)      # no sums: NumPy's matmul would go element by element
    a = _readable(a)
    b = _readable(b)
    _set_core(&core, a, b)      # again, because copies have different strides
    if cnp.PyArray_NDIM(a) == 2:
        dims[ndim] = core.dims[0]
        ndim += 1
    if cnp.PyArray_NDIM(b) == 2:
        dims[ndim] = core.dims[2]
        ndim += 1
    out = empty(ndim, dims, t)
    walk.count = 3
    walk.ndim = 1
    walk.dims[0] = 1
    walk.strides[0][0] = walk.strides[1][0] = walk.strides[2][0] = 0
    _run(&walk, t, &core, a, b, out)
    return out


def matmul_into(cnp.ndarray a not None, cnp.ndarray b not None, cnp.ndarray out not None):
    """Multiply two batches of matrices into an array of the product's shape and dtype, and return that.

    `out` must not overlap the operands. Falls back to ``numpy.matmul`` for dtypes without a loop and for an `out` whose rows
    are not contiguous.
    """
    cdef int t = cnp.PyArray_TYPE(a)
    if (min(cnp.PyArray_NDIM(a), cnp.PyArray_NDIM(b)) < 3 or cnp.PyArray_TYPE(b) != t or cnp.PyArray_TYPE(out) != t
            or t >= NTYPES or t == cnp.NPY_FLOAT16 or _loops[t].function == NULL or not _has_rows(out)):
        refuse("runs in NumPy", "matmul")
        return np.matmul(a, b, out=out)
    return _stacked(t, a, b, out)


cdef bint _has_rows(cnp.ndarray a) noexcept:
    """Whether BLAS can write to the last two dimensions as a matrix."""
    cdef int ndim = cnp.PyArray_NDIM(a)
    cdef cnp.npy_intp itemsize = cnp.PyArray_ITEMSIZE(a), row
    if ndim < 3 or not is_plain(a) or not cnp.PyArray_ISWRITEABLE(a):
        return False
    row = cnp.PyArray_STRIDE(a, ndim - 2)
    return (cnp.PyArray_STRIDE(a, ndim - 1) == itemsize and row % itemsize == 0
            and row >= cnp.PyArray_DIM(a, ndim - 1) * itemsize)


cdef cnp.ndarray _stacked(int t, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out):
    """Multiply batches of matrices with broadcast leading dimensions; into `out` if it is not None."""
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef int[MAXDIMS] order
    cdef Operand[2] stacks
    cdef Core core
    cdef Walk walk
    cdef int i, ndim
    if out is None and cnp.PyArray_NDIM(b) == 2 and cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_SIZE(a) != 0:
        *leading, last = (<object>a).shape      # one product of all the rows
        out = matmul((<object>a).reshape(-1, last), b)
        return (<object>out).reshape(*leading, cnp.PyArray_DIM(b, 1))
    a = _readable(a)
    b = _readable(b)
    _set_core(&core, a, b)
    stacks[0] = operand(a)
    stacks[1] = operand(b)
    for i in range(2):
        stacks[i].ndim = max(stacks[i].ndim - 2, 0)
    try:
        join(&walk, 2, stacks)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    ndim = walk.ndim
    for i in range(ndim):
        order[i] = i
        dims[ndim - 1 - i] = walk.dims[i]
    if cnp.PyArray_NDIM(a) > 1:
        dims[ndim] = core.dims[0]
        ndim += 1
    if cnp.PyArray_NDIM(b) > 1:
        dims[ndim] = core.dims[2]
        ndim += 1
    if ndim > MAXDIMS:
        raise ValueError("too many dimensions")
    if out is None:
        out = empty(ndim, dims, t)
    elif cnp.PyArray_NDIM(out) != ndim or not cnp.PyArray_CompareLists(cnp.PyArray_DIMS(out), dims, ndim):
        raise ValueError(f"a product of shape {[dims[i] for i in range(ndim)]} into an array of {(<object>out).shape}")
    else:
        core.strides[4] = cnp.PyArray_STRIDE(out, ndim - 2)
    for i in range(walk.ndim):
        walk.strides[2][i] = cnp.PyArray_STRIDE(out, walk.ndim - 1 - i)
    coalesce(&walk, order, 0)
    _run(&walk, t, &core, a, b, out)
    return out


cpdef cnp.ndarray dot(cnp.ndarray a, cnp.ndarray b):
    """The inner product of two vectors, 0-dim. Other shapes raise ``ValueError``."""
    if cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1:
        raise ValueError("dot takes two vectors")
    return matmul(a, b)


cpdef cnp.ndarray outer(cnp.ndarray a, cnp.ndarray b):
    """Outer product of two vectors: (n,), (m,) -> (n, m). Other shapes raise ``ValueError``."""
    if cnp.PyArray_NDIM(a) != 1 or cnp.PyArray_NDIM(b) != 1:
        raise ValueError("outer takes two vectors")
    return _multiply.call2((<object>a).reshape(-1, 1), b, None)


cpdef cnp.ndarray addmm(cnp.ndarray bias, cnp.ndarray a, cnp.ndarray b):
    """Compute bias + a @ b. The bias must have the same dtype and broadcast to the product's shape, else ``ValueError``.

    Half precision is multiplied and added in float32, and rounded once.
    """
    cdef int t = cnp.PyArray_TYPE(a)
    cdef cnp.ndarray out
    if (t == cnp.NPY_FLOAT16 or t >= NTYPES) and cnp.PyArray_TYPE(b) == cnp.PyArray_TYPE(bias) == t:
        return cast(addmm(cast(bias, cnp.NPY_FLOAT), cast(a, cnp.NPY_FLOAT), cast(b, cnp.NPY_FLOAT)), t)
    out = matmul(a, b)
    try:
        return _add.call2(out, bias, out)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


dispatching(globals(), "matmul matmul_into dot outer addmm")


# -- LAPACK ------------------------------------------------------------------------------------------------

def find_lapack(bytes library not None, bytes name not None):
    """Return (address, whether integers have 64 bits) of a function in the libraries that `library` links; or None."""
    cdef int is_wide = 0
    cdef void* found = NULL if PURE else cygrad_find_lapack(library, name, &is_wide)
    return (<size_t>found, bool(is_wide)) if found else None


def call_lapack(size_t address, Py_ssize_t count, *given):
    """Call a LAPACK function for each of `count` matrices.

    Numbers, letters and arrays in tuples are the same for all calls; other arrays hold `count` consecutive parts. The caller
    must check that array sizes match the integer arguments.
    """
    cdef fortran_t function = <fortran_t>address
    cdef char* data[ARGUMENTS]
    cdef Py_ssize_t steps[ARGUMENTS]
    cdef cnp.int64_t numbers[ARGUMENTS]
    cdef cnp.ndarray array
    cdef Py_ssize_t _i
    cdef int k, n = len(given)
    refuse("calls LAPACK")
    if n > ARGUMENTS - 3:
        raise ValueError("too many arguments")
    for k in range(ARGUMENTS):
        # Fortran passes the lengths of character arguments after the others: 1 for each; extra ones are ignored.
        data[k], steps[k] = <char*>1, 0
        if k >= n:
            continue
        value = given[k]
        if isinstance(value, int) or isinstance(value, str) and len(value) == 1:
            numbers[k] = ord(value) if isinstance(value, str) else value
            data[k] = <char*>&numbers[k]
            continue
        array = value[0] if isinstance(value, tuple) else value
        if array is None:
            raise TypeError("no array")
        if not is_plain(array):
            raise ValueError("not aligned, or of swapped bytes")
        data[k] = cnp.PyArray_BYTES(array)
        if array is value:
            steps[k] = cnp.PyArray_NBYTES(array) // max(count, 1)
    with nogil:
        for _i in range(count):
            function(data[0], data[1], data[2], data[3], data[4], data[5], data[6], data[7], data[8], data[9], data[10],
                     data[11], data[12], data[13], data[14], data[15], data[16], data[17])
            for k in range(ARGUMENTS):
                data[k] += steps[k]


def has_normal_diagonal(cnp.ndarray a not None, bint or_zero):
    """Whether no diagonal element is NaN, subnormal, or 0 (allowed with `or_zero`). The matrices are row- or column-major.

    OpenBLAS multiplies by reciprocals, which such numbers do not have, and does not swap rows with subnormal pivots.
    """
    cdef int d = cnp.PyArray_NDIM(a), t = cnp.PyArray_TYPE(a)
    cdef bint is_double = t == cnp.NPY_DOUBLE or t == cnp.NPY_CDOUBLE
    cdef bint is_complex = t == cnp.NPY_CFLOAT or t == cnp.NPY_CDOUBLE
    cdef Py_ssize_t i, _j, n, count, step
    cdef char* at
    cdef double size, other, least = DBL_MIN if is_double else FLT_MIN
    refuse("looks at values")
    if d < 2 or not is_plain(a) or not (is_double or is_complex or t == cnp.NPY_FLOAT):
        raise ValueError("no matrices that LAPACK takes")
    if cnp.PyArray_SIZE(a) == 0:
        return True
    n = min(cnp.PyArray_DIM(a, d - 1), cnp.PyArray_DIM(a, d - 2))
    count = cnp.PyArray_SIZE(a) // (cnp.PyArray_DIM(a, d - 1) * cnp.PyArray_DIM(a, d - 2))
    step = cnp.PyArray_STRIDE(a, d - 1) + cnp.PyArray_STRIDE(a, d - 2)
    for i in range(count):
        at = cnp.PyArray_BYTES(a) + i * (cnp.PyArray_NBYTES(a) // count)
        for _j in range(n):
            size = fabs((<double*>at)[0] if is_double else (<float*>at)[0])
            if is_complex:
                other = fabs((<double*>at)[1] if is_double else (<float*>at)[1])
                if other > size:
                    size = other
            if not (size >= least or or_zero and size == 0):
                return False
            at += step
    return True
