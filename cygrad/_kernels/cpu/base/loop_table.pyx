"""Call C loops by number, for kernels whose arguments are better checked in Python (fused_normalization.py, patches.py,
recurrent.py).

Each header documents the arguments of its loops. `run` checks that every array is dense. The caller must check that array
sizes match the integer arguments; the loops do not.
"""

from types import SimpleNamespace

from libc.stdint cimport uint64_t
from libc.string cimport memset

cimport numpy as cnp

from cygrad._kernels.cpu.base.arrays cimport (
    PURE, PyArray_CheckExact, broadcasts_to, dense, empty, is_plain, may_overlap, same_shape)
from cygrad._kernels.platform.thread_pool cimport HEAVY, LIGHT, RELEASE_ABOVE, part_t, share
from cygrad._kernels.cpu.base.matmul cimport matmul_loop
from cygrad._kernels.cpu.base.nditer cimport Loop, loop_t
from cygrad._kernels.tape.tape cimport ITEMWISE, READS, WRITES, Word, note_loop, refuse, tape_open, word

cnp.import_array()

cdef extern from "base/loop_table.h":
    enum:
        LOOP_COUNT
        GATHER
        FUSED
        EACH
        SPREAD
        QUERIES
        INPUTS
        PULLED_TOGETHER
        SUMS_TOGETHER
        MOST_FIRSTS
        DEPTH
        POINTS
        TAIL
        FEW_RESAMPLED
        MOST_POINTS
        CTC_ROWS
        FUSED_COUNT
    ctypedef struct product_loop:
        loop_t function
        void* data
    product_loop product_loops[2]
    const part_t native_parts[]
    const char* loop_names[]
    ctypedef struct fused_formula:
        const char* name
        int operands
        const char* stage
        const char* argument
        const char* formula
    const fused_formula fused_formulas[]
    bint native_has(int loop) nogil
    bint native_moves(int loop)


cdef void _keep_product_loop(bint is_double) noexcept:
    cdef Loop* loop = matmul_loop(cnp.NPY_DOUBLE if is_double else cnp.NPY_FLOAT)
    product_loops[is_double].function = loop.function
    product_loops[is_double].data = loop.data

_keep_product_loop(False)
_keep_product_loop(True)


# The number of each loop by its name, as in LOOPS.GATHER. Callers bind it to a constant of their module.
LOOPS = SimpleNamespace(**{loop_names[number].decode(): number for number in range(LOOP_COUNT)})

# The number of each function of fused_formulas.h by its name, for `fused`.
FUSED_NUMBERS = {fused_formulas[number].name.decode(): number for number in range(FUSED_COUNT)}


def formulas():
    """Return the formulas that GPUs share, {name: (number of operands, stage, its argument, formula)}, as C text.

    The stage and its argument are None for formulas without one; fused_formulas.h describes the notation.
    """
    cdef const fused_formula* f
    found = {}
    for number in range(FUSED_COUNT):
        f = &fused_formulas[number]
        if f.formula != NULL:
            stage = (None, None) if f.stage == NULL else (f.stage.decode(), f.argument.decode())
            found[f.name.decode()] = (f.operands, *stage, f.formula.decode())
    return found

# Sizes that both a loop and its caller use. The headers of the loops explain them.
LOOP_SIZES = SimpleNamespace(
    QUERIES=QUERIES, INPUTS=INPUTS, PULLED_TOGETHER=PULLED_TOGETHER, SUMS_TOGETHER=SUMS_TOGETHER, MOST_FIRSTS=MOST_FIRSTS,
    DEPTH=DEPTH, POINTS=POINTS, TAIL=TAIL, FEW_RESAMPLED=FEW_RESAMPLED, MOST_POINTS=MOST_POINTS, CTC_ROWS=CTC_ROWS)


def has_loops(cnp.ndarray a not None):
    """Whether there are loops for the type of the array."""
    return cnp.PyArray_TYPE(a) in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE) and not PURE


def can_move(cnp.ndarray a not None):
    """Whether loops that only move elements support the array's type."""
    return cnp.PyArray_ITEMSIZE(a) in (4, 8) and cnp.PyArray_TYPE(a) <= cnp.NPY_CLONGDOUBLE and (
        cnp.PyArray_ISNOTSWAPPED(a) and not PURE)


def check(object a, cnp.dtype dtype not None, int ndim, bint writes):
    """Raise unless the array is dense, of that type and dimension, and (if `writes`) writable."""
    if PyArray_CheckExact(a) and cnp.PyArray_NDIM(<cnp.ndarray>a) == ndim and cnp.PyArray_IS_C_CONTIGUOUS(a) and (
            cnp.PyArray_TYPE(<cnp.ndarray>a) == dtype.num and is_plain(a)) and (
            not writes or cnp.PyArray_ISWRITEABLE(<cnp.ndarray>a)):
        return
    raise ValueError(f"not a dense array of {ndim} dimensions and type {dtype}")


def of_size(cnp.ndarray a or None, cnp.ndarray like not None, Py_ssize_t size):
    """Return the array, made dense, after checking its size and that its type is that of `like`; None for None."""
    if a is None:
        return None
    if cnp.PyArray_SIZE(a) != size or cnp.PyArray_TYPE(a) != cnp.PyArray_TYPE(like):
        raise ValueError(f"an array of {a.size} elements and type {a.dtype}, not {size} and {like.dtype}")
    return dense(a)


def outside(cnp.ndarray index not None, Py_ssize_t length):
    """Whether any element is negative or not less than `length`; None if the caller must check in another way."""
    cdef const uint64_t* element = <const uint64_t*>cnp.PyArray_DATA(index)
    cdef Py_ssize_t i, n = cnp.PyArray_SIZE(index)
    refuse("reads an index")
    if cnp.PyArray_TYPE(index) != cnp.NPY_INT64 or not is_plain(index) or not cnp.PyArray_IS_C_CONTIGUOUS(index) or (
            n > RELEASE_ABOVE):
        return None
    for i in range(n):
        if element[i] >= <uint64_t>length:
            return True
    return False


def has_loop(int loop):
    """Whether the loop was compiled and this processor can run it."""
    return bool(native_has(loop))


cdef Py_ssize_t _elements_behind(cnp.ndarray a, cnp.ndarray target) noexcept:
    """How many consecutive elements of the target share one element of `a`; 0 if broadcasting is not that regular."""
    cdef Py_ssize_t behind = 1
    cdef int i = cnp.PyArray_NDIM(a) - 1, before = cnp.PyArray_NDIM(target) - cnp.PyArray_NDIM(a)
    while i >= 0 and cnp.PyArray_DIM(a, i) == 1:
        behind *= cnp.PyArray_DIM(target, before + i)
        i -= 1
    while i >= 0 and cnp.PyArray_DIM(a, i) == cnp.PyArray_DIM(target, before + i):
        i -= 1
    while i >= 0 and cnp.PyArray_DIM(a, i) == 1:
        i -= 1
    return behind if i < 0 else 0


def fused(int number, tuple operands, tuple numbers, cnp.ndarray out=None):
    """Apply a function of fused_loops.h to dense arrays of one type that broadcast to one of them; None if they do not
    qualify.

    The result is written to `out` if given: either an operand, or an array that overlaps none.
    """
    cdef native_call c
    cdef double[3] given
    cdef cnp.ndarray a, largest = None
    cdef int k, typenum, count = len(operands)
    memset(&c, 0, sizeof(c))
    memset(given, 0, sizeof(given))
    for k in range(count):
        if not PyArray_CheckExact(operands[k]):
            return None
        a = operands[k]
        if not is_plain(a) or not cnp.PyArray_IS_C_CONTIGUOUS(a):
            return None
        c.data[k + 1] = cnp.PyArray_BYTES(a)
        if largest is None or cnp.PyArray_SIZE(a) > cnp.PyArray_SIZE(largest):
            largest = a
    if not has_loops(largest):
        return None
    typenum = cnp.PyArray_TYPE(largest)
    for k in range(count):
        a = operands[k]
        if cnp.PyArray_TYPE(a) != typenum or not broadcasts_to(a, largest):
            return None
        if same_shape(a, largest):
            c.n[k + 1] = EACH
        elif cnp.PyArray_SIZE(a) != 1:
            c.n[k + 1] = SPREAD
            c.n[k + 4] = _elements_behind(a, largest)
            c.n[k + 7] = cnp.PyArray_SIZE(a)
            if c.n[k + 4] == 0:
                return None
    if out is None:
        out = empty(cnp.PyArray_NDIM(largest), cnp.PyArray_DIMS(largest), typenum)
    elif not (is_plain(out) and cnp.PyArray_IS_C_CONTIGUOUS(out) and same_shape(out, largest)
              and cnp.PyArray_TYPE(out) == typenum and cnp.PyArray_ISWRITEABLE(out)):
        return None
    for k in range(len(numbers)):
        given[k] = numbers[k]
    c.n[0] = number
    c.data[0] = cnp.PyArray_BYTES(out)
    c.data[4] = <char*>given
    c.is_double = typenum == cnp.NPY_DOUBLE
    if tape_open:
        _note_fused(&c, given, operands, out)
    if cnp.PyArray_SIZE(out) <= RELEASE_ABOVE:
        native_parts[FUSED](&c, 0, cnp.PyArray_SIZE(out))
    else:
        with nogil:
            share(native_parts[FUSED], &c, cnp.PyArray_SIZE(out), LIGHT)
    return out


# -- for the tape (Note [The tape] in tape.pyx)

cdef struct FusedCall:
    native_call call
    double[3] given
    Py_ssize_t count


cdef void _replay_fused(void* context) noexcept nogil:
    cdef FusedCall* f = <FusedCall*>context
    if f.count <= RELEASE_ABOVE:
        native_parts[FUSED](&f.call, 0, f.count)
    else:
        share(native_parts[FUSED], &f.call, f.count, LIGHT)


cdef void _note_fused(native_call* c, double* given, tuple operands, cnp.ndarray out) noexcept:
    cdef FusedCall f
    cdef Word[5] words
    cdef int k, count = len(operands)
    if cnp.PyArray_SIZE(out) == 0:
        return
    f.call = c[0]
    for k in range(3):
        f.given[k] = given[k]
    f.count = cnp.PyArray_SIZE(out)
    f.call.data[4] = <char*>f.given
    words[0] = word(&f, &f.call.data[4], 0, 0, 1)
    for k in range(count):
        words[k + 1] = word(&f, &f.call.data[k + 1], READS | (ITEMWISE if c.n[k + 1] == EACH else 0), 0,
                            cnp.PyArray_NBYTES(<cnp.ndarray>operands[k]))
    words[count + 1] = word(&f, &f.call.data[0], WRITES | ITEMWISE, 0, cnp.PyArray_NBYTES(out))
    note_loop(_replay_fused, native_parts[FUSED], "loop", &f, sizeof(f), words, count + 2, f.count)


cdef part_t loop_of(int loop) noexcept:
    return native_parts[loop]


cdef bint is_dense(cnp.ndarray a) noexcept:
    return is_plain(a) and cnp.PyArray_IS_C_CONTIGUOUS(a)


def along(int loop, cnp.ndarray whole not None, int axis, cnp.ndarray index not None, cnp.ndarray part not None,
          Py_ssize_t how=0, bint to_zeros=False):
    """Run a loop of scatter.h or gather.h that reads or writes `whole` along an axis, at positions given by an index.

    Return whether it failed, or None if the arguments do not qualify: arrays must be dense, and have equal lengths along the
    other axes.
    """
    cdef native_call c
    cdef Py_ssize_t inner = 1, outer = 1, given = 0
    cdef int d, ndim = cnp.PyArray_NDIM(whole), of_part = cnp.PyArray_NDIM(part)
    cdef cnp.npy_intp* lengths = cnp.PyArray_DIMS(index)
    cdef part_t function = native_parts[loop]
    if not (has_loops(whole) or native_moves(loop) and can_move(whole)) or not 0 <= axis < ndim or (
            cnp.PyArray_NDIM(index) != ndim or of_part and of_part != ndim or cnp.PyArray_SIZE(index) == 0
            or cnp.PyArray_TYPE(index) != cnp.NPY_INT64 or cnp.PyArray_TYPE(part) != cnp.PyArray_TYPE(whole)
            or not (is_dense(whole) and is_dense(index) and is_dense(part))
            or not cnp.PyArray_ISWRITEABLE(part if loop == GATHER else whole)):
        return None
    for d in range(ndim):
        if d == axis:
            if of_part:
                given = cnp.PyArray_DIM(part, d)
            continue
        if lengths[d] != cnp.PyArray_DIM(whole, d) or of_part and lengths[d] != cnp.PyArray_DIM(part, d):
            return None
        if d < axis:
            outer *= lengths[d]
        else:
            inner *= lengths[d]
    if of_part and given < lengths[axis]:
        return None
    if may_overlap(whole, part):
        part = cnp.PyArray_NewCopy(part, cnp.NPY_CORDER)
    memset(&c, 0, sizeof(c))
    c.data[0], c.data[1], c.data[2] = cnp.PyArray_BYTES(whole), cnp.PyArray_BYTES(index), cnp.PyArray_BYTES(part)
    c.n[0], c.n[1], c.n[2], c.n[3] = cnp.PyArray_DIM(whole, axis), lengths[axis], inner, given
    c.n[4], c.n[5] = how, to_zeros
    c.is_double = cnp.PyArray_ITEMSIZE(whole) == 8
    c.itemsize = cnp.PyArray_ITEMSIZE(whole)
    if loop == GATHER:
        outer *= lengths[axis]
    else:
        inner *= lengths[axis]
    refuse("finds elements by an index")
    if cnp.PyArray_SIZE(index) <= RELEASE_ABOVE:
        function(&c, 0, outer)
    else:
        with nogil:
            share(function, &c, outer, max(HEAVY // inner, 1))
    return c.failed


def run(int loop, tuple arrays, tuple numbers, double real, Py_ssize_t items, Py_ssize_t piece):
    """Run a loop over `items` items, in chunks of `piece` for threads. Return whether it failed.

    The first array determines the type. Arrays must be dense, and float32 or float64 except for loops that support other
    types; None and omitted trailing arrays become NULL.
    """
    cdef native_call c
    cdef cnp.ndarray array
    cdef Py_ssize_t i
    cdef part_t part
    memset(&c, 0, sizeof(c))
    fits = 0 <= loop < LOOP_COUNT and len(arrays) <= 23 and len(numbers) <= 23
    if not fits or not native_has(loop) or not (has_loops(arrays[0]) or native_moves(loop) and can_move(arrays[0])):
        raise ValueError(f"no loop {loop}")
    for i in range(len(arrays)):
        array = arrays[i]
        if array is not None and not (is_plain(array) and cnp.PyArray_IS_C_CONTIGUOUS(array)):
            raise ValueError("an array is not dense")
        c.data[i] = NULL if array is None else cnp.PyArray_BYTES(array)
    for i in range(len(numbers)):
        c.n[i] = numbers[i]
    c.is_double = cnp.PyArray_ITEMSIZE(arrays[0]) == 8
    c.itemsize = 8 if c.is_double else 4
    c.piece = max(piece, 1)
    c.real = real
    part = native_parts[loop]
    refuse("runs a loop that the tape does not know", loop_names[loop].decode())
    with nogil:
        share(part, &c, items, c.piece)
    return c.failed
