"""Elementwise ufuncs that call NumPy's inner loops directly.

Note [NumPy's inner loops]
--------------------------
A NumPy ufunc call on small arrays spends nearly all of its time before the inner loop: parsing arguments, promoting
types, building an iterator. The loop itself is public: the C struct `PyUFuncObject` exposes a ufunc's loops
(`functions`), the data to pass to them (`data`) and their types (`types`). A `Ufunc` looks them up once; a call is then
one allocation and one loop. The loops are NumPy's own SIMD code for the processor at hand, so results equal NumPy's bit
for bit.

A loop takes pointers, a count, and steps in bytes. It expects exact types, aligned pointers, native byte order, and an
output that either coincides with an input, element for element, or overlaps none. An output step of 0 would make it
reduce. It raises floating-point flags, which nobody reads; only integer `power` sets a Python error, for a negative
exponent. Some loops of NumPy 2.4 write outputs with gaps incorrectly (`_DENSE`): they only ever get dense outputs.

We replace NumPy's loops with our own where NumPy's are slow (ufuncs.h, integer_division.h, half_loops.h); results of
elementary functions among these may differ in the last two bits.

If there is no loop or an operand is not plain, we fall back to NumPy's function. CYGRAD_PURE=1 in the environment forces
the fallback everywhere.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_Occurred
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsDouble, PyLong_AsLongLong, PyLong_AsUnsignedLongLong
from libc.string cimport memcpy, memset

from cygrad._kernels.cpu.base.arrays cimport (
    MAXDIMS, NTYPES, PURE, RELEASE_ABOVE, Operand, PyArray_EquivTypenums, bfloat16_type, cast, cast_t, copy_in_numpy, empty,
    empty_strided, extents_meet, half_cast, is_plain, likely, operand, same_shape)
from cygrad._kernels.platform.thread_pool cimport HEAVY, LIGHT, share
from cygrad._kernels.cpu.base.nditer cimport (
    Loop, Walk, coalesce, extent_of_walk, join, lengthen_innermost, memory_order, run, run_row, run_shared, touch_ends)
from cygrad._kernels.tape.calls cimport run_on_tape
from cygrad._kernels.tape.tape cimport ITEMWISE, READS, SCATTERS, WRITES, Word, note, note_loop, refuse, tape_open, word
from cygrad._kernels.cpu.base import numpy_fallback

cnp.import_array()

cdef extern from "base/integer_division.h":
    bint replace_division(const char* name, bint is_wide, loop_t* loop, void** settings) noexcept

cdef extern from "simd/half_loops.h":
    ctypedef struct narrow_ufunc:
        int nin
        cast_t widen
        cast_t narrow
        loop_t wide
        void* settings
    void* taking_number(loop_t loop, void* settings, int operand) noexcept
    void replace_narrow(const char* name, bint is_bfloat16, const narrow_ufunc* own, loop_t* loop,
                        void** settings) noexcept

cdef extern from "base/ufuncs.h":
    bint replace_loop(const char* name, int is_double, loop_t* loop, void** settings) noexcept
    void replace_logical(const char* name, bint is_double, loop_t differ, void* differ_settings, loop_t* loop,
                         void** settings) noexcept

cdef enum:
    SHORT_ROW = 16              # elements: on the tape, calls for shorter rows would take longer than one walk

cdef union Number:              # storage for one value of any built-in type, suitably aligned
    unsigned char boolean
    int int_
    long long longlong
    unsigned long long ulonglong
    float float_
    double double_
    long double[2] longest

# ---------------------------------------------------------------------------------------- one call


cdef inline int _run_flat(Loop* loop, int nin, cnp.npy_intp n, char* a, cnp.npy_intp step_a,
                          char* b, cnp.npy_intp step_b, cnp.ndarray out) except -1:
    """Compute all of a C-contiguous output; a single loop call unless threads share it."""
    cdef char* data[3]
    cdef cnp.npy_intp[3] steps
    cdef Flat flat
    data[0] = a
    steps[0] = step_a
    data[1] = b                 # overwritten below for unary functions
    steps[1] = step_b
    data[nin] = cnp.PyArray_BYTES(out)
    steps[nin] = cnp.PyArray_ITEMSIZE(out)
    if tape_open:
        note_flat(loop, _kind_of(loop), nin, n, data, steps, _number)
    if n > RELEASE_ABOVE:
        with nogil:
            flat.loop = loop
            flat.count = nin + 1
            flat.data = data
            flat.steps = steps
            share(_run_part, &flat, n, loop.piece if loop.piece != 0 else n)
    elif likely(n != 0):
        touch_ends(data, &n, steps, nin + 1, False)
        loop.function(data, &n, steps, loop.data)
    return 0


cdef struct Flat:               # contiguous operands
    Loop* loop
    int count                   # number of operands
    char** data
    cnp.npy_intp* steps


cdef void _run_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef Flat* f = <Flat*>context
    run_row(f.loop, f.count, f.data, f.steps, first, n)


cdef char* _number = NULL       # where the Python number of the running call stands


cdef str _kind_of(Loop* loop):
    """What the tape is told of a loop: it leaves out products with 1."""
    cdef int t
    for t in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
        if loop.function == _product.loops[t].function and loop.data == _product.loops[t].data:
            return "multiply"
    return "loop"


# -- for the tape (Note [The tape] in tape.pyx): `number` is where an operand stands that is a Python number

cdef bint can_note(Loop* loop) noexcept:
    """Whether a loop can run again without Python, from a copy of `loop`."""
    if loop.piece == 0:
        refuse("a loop may raise an error")
        return False
    return True


cdef inline void keep_number(char** place, char* number, Number* kept) noexcept:
    """Let an operand that is a Python number stand in the noted context itself."""
    if place[0] == number:
        kept[0] = (<Number*>number)[0]
        place[0] = <char*>kept


# -- one row

cdef struct FlatCall:           # dense arrays and single numbers
    Loop loop
    int count                   # of operands
    cnp.npy_intp n
    char* data[3]
    cnp.npy_intp[3] steps
    Number number               # an operand that is a Python number


cdef void replay_flat(void* context) noexcept nogil:
    cdef FlatCall* call = <FlatCall*>context
    if call.n > RELEASE_ABOVE:
        share(replay_part, call, call.n, call.loop.piece)
    else:
        replay_part(call, 0, call.n)


cdef void replay_part(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef FlatCall* call = <FlatCall*>context
    run_row(&call.loop, call.count, call.data, call.steps, first, n)


cdef void note_flat(Loop* loop, str kind, int nin, cnp.npy_intp n, char** data, cnp.npy_intp* steps, char* number) noexcept:
    cdef FlatCall call
    cdef Word[3] words
    cdef cnp.npy_intp itemsize = max(steps[0], steps[nin - 1])
    cdef int k
    if n == 0 or not can_note(loop):
        return
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = nin + 1
    call.n = n
    for k in range(nin + 1):
        call.data[k] = data[k]
        call.steps[k] = steps[k]
        words[k] = word(&call, &call.data[k], (WRITES if k == nin else READS) | (ITEMWISE if steps[k] else 0), 0,
                        n * steps[k] if steps[k] else itemsize)
        if k < nin and steps[k] == 0:
            keep_number(&call.data[k], number, &call.number)
    note_loop(replay_flat, replay_part, kind, &call, sizeof(call), words, nin + 1, n)


cdef void note_row(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, cnp.npy_intp n, char* number) noexcept:
    """Note a walk along one row of dense arrays and single numbers."""
    cdef FlatCall call
    cdef Word[3] words
    cdef int k, last = walk.count - 1
    cdef cnp.npy_intp step
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = walk.count
    call.n = n
    for k in range(walk.count):
        step = walk.strides[k][0]
        call.data[k] = data[k]
        call.steps[k] = step
        words[k] = word(&call, &call.data[k], (WRITES if k == last else READS) | (ITEMWISE if step else 0), 0,
                        n * step if step else inputs[k].itemsize)
        if k < last and step == 0:
            keep_number(&call.data[k], number, &call.number)
    note_loop(replay_flat, replay_part, kind, &call, sizeof(call), words, walk.count, n)


# -- many rows

cdef struct RowsCall:           # dense arrays, and others whose row or column is there for all
    Loop loop
    int count
    cnp.npy_intp length         # of a row
    cnp.npy_intp rows
    char* data[3]
    cnp.npy_intp[3] steps       # along a row
    cnp.npy_intp[3] strides     # from row to row
    Number number


cdef void replay_rows(void* context) noexcept nogil:
    cdef RowsCall* call = <RowsCall*>context
    if call.length * call.rows > RELEASE_ABOVE:
        share(replay_part_of_rows, call, call.length * call.rows, call.loop.piece)
    else:
        replay_part_of_rows(call, 0, call.length * call.rows)


cdef void replay_part_of_rows(void* context, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    cdef RowsCall* call = <RowsCall*>context
    cdef char* data[3]
    cdef cnp.npy_intp row = first // call.length, at = first % call.length, count
    cdef int k
    while n > 0:
        count = min(n, call.length - at)
        for k in range(call.count):
            data[k] = call.data[k] + row * call.strides[k]
        run_row(&call.loop, call.count, data, call.steps, at, count)
        n -= count
        row += 1
        at = 0


cdef bint has_rows(Walk* walk, Operand* inputs, Py_ssize_t itemsize) noexcept:
    """Whether a walk goes along the rows of a dense output, with inputs that are dense too, or one row or column of such."""
    cdef cnp.npy_intp n, step, stride
    cdef int k, last = walk.count - 1
    if walk.ndim != 2 or walk.dims[0] < SHORT_ROW:
        return False
    for k in range(walk.count):
        n = inputs[k].itemsize if k < last else itemsize
        step, stride = walk.strides[k][0], walk.strides[k][1]
        if step == n and stride == n * walk.dims[0]:
            continue
        if k == last or not (step == n and stride == 0 or step == 0 and (stride == n or stride == 0)):
            return False
    return True


cdef void note_rows(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, char* number) noexcept:
    cdef RowsCall call
    cdef Word[3] words
    cdef int k, last = walk.count - 1
    cdef cnp.npy_intp size
    cdef bint is_dense
    memset(&call, 0, sizeof(call))
    call.loop = loop[0]
    call.count = walk.count
    call.length, call.rows = walk.dims[0], walk.dims[1]
    for k in range(walk.count):
        call.data[k] = data[k]
        call.steps[k], call.strides[k] = walk.strides[k][0], walk.strides[k][1]
        is_dense = call.steps[k] != 0 and call.strides[k] != 0
        size = call.steps[k] * call.length if call.steps[k] else inputs[k].itemsize
        if call.strides[k]:
            size = call.strides[k] * call.rows
        words[k] = word(&call, &call.data[k], (WRITES if k == last else READS) | (ITEMWISE if is_dense else 0), 0, size)
        if k < last and call.steps[k] == 0 and call.strides[k] == 0:
            keep_number(&call.data[k], number, &call.number)
    note_loop(replay_rows, replay_part_of_rows, kind, &call, sizeof(call), words, walk.count, call.length * call.rows)


# -- anything else

cdef struct WalkCall:           # the end of a call of `_run_general`
    Walk walk
    Loop loop
    char* data[3]
    cnp.npy_intp size
    Number number


cdef void replay_walk(void* context) noexcept nogil:
    cdef WalkCall* call = <WalkCall*>context
    if call.size > RELEASE_ABOVE:
        run_shared(&call.walk, &call.loop, call.data)
    else:
        run(&call.walk, &call.loop, call.data)


cdef void note_walk(Walk* walk, Loop* loop, str kind, Operand* inputs, char** data, cnp.npy_intp size, Py_ssize_t itemsize,
                    char* number) noexcept:
    cdef WalkCall call
    cdef Word[3] words
    cdef Py_ssize_t low, high, n
    cdef int k, d, last = walk.count - 1
    if not can_note(loop):
        return
    if walk.ndim == 1:
        call.size = 0               # one row, perhaps of expanded numbers: elementwise
        for k in range(walk.count):
            n = inputs[k].itemsize if k < last else itemsize
            call.size += walk.strides[k][0] != n and (k == last or walk.strides[k][0] != 0)
        if call.size == 0:
            note_row(walk, loop, kind, inputs, data, size, number)
            return
    if has_rows(walk, inputs, itemsize):
        note_rows(walk, loop, kind, inputs, data, number)
        return
    memset(&call, 0, sizeof(call))
    call.walk.count = walk.count
    call.walk.ndim = walk.ndim
    for d in range(walk.ndim):
        call.walk.dims[d] = walk.dims[d]
        for k in range(walk.count):
            call.walk.strides[k][d] = walk.strides[k][d]
    call.loop = loop[0]
    call.size = size
    for k in range(walk.count):
        call.data[k] = data[k]
        extent_of_walk(walk, k, inputs[k].itemsize if k < last else itemsize, &low, &high)
        words[k] = word(&call, &call.data[k], READS if k < last else WRITES if high - low == size * itemsize else SCATTERS,
                        low, high)
        if k < last:
            keep_number(&call.data[k], number, &call.number)
    note(replay_walk, "loop", &call, sizeof(call), words, walk.count)


cdef cnp.ndarray _new_output(Walk* walk, int* order, bint reordered, int typenum):
    """An array of the broadcast shape in the given memory order, as in PyTorch, so that all of it is one contiguous run."""
    cdef cnp.npy_intp[MAXDIMS] dims
    cdef cnp.npy_intp[MAXDIMS] strides
    cdef cnp.npy_intp step
    cdef int i, last = walk.ndim - 1
    for i in range(walk.ndim):
        dims[last - i] = walk.dims[i]
    if not reordered:
        return empty(walk.ndim, dims, typenum)
    step = (<cnp.dtype>cnp.PyArray_DescrFromType(typenum)).itemsize
    for i in range(walk.ndim):
        strides[last - order[i]] = step
        step *= max(walk.dims[order[i]], 1)
    return empty_strided(walk.ndim, dims, strides, typenum)


cdef void _enter_output(Walk* walk, cnp.ndarray out) noexcept:
    cdef int i, ndim = walk.ndim
    for i in range(ndim):
        walk.strides[walk.count - 1][i] = 0 if walk.dims[i] == 1 else cnp.PyArray_STRIDES(out)[ndim - 1 - i]


cdef int _check_output(Walk* walk, cnp.ndarray out, int typenum) except -1:
    cdef int i, ndim = walk.ndim
    cdef bint fits = cnp.PyArray_NDIM(out) == ndim
    for i in range(ndim):
        fits = fits and cnp.PyArray_DIM(out, ndim - 1 - i) == walk.dims[i]
    if not fits:
        shape = [walk.dims[ndim - 1 - i] for i in range(ndim)]
        raise RuntimeError(
            f"output with shape {[int(n) for n in (<object>out).shape]} doesn't match the broadcast shape {shape}")
    if cnp.PyArray_TYPE(out) != typenum and not PyArray_EquivTypenums(cnp.PyArray_TYPE(out), typenum):
        raise ValueError(f"output has dtype {out.dtype}, the result has {cnp.PyArray_DescrFromType(typenum)}")
    if not cnp.PyArray_ISWRITEABLE(out):
        raise ValueError("output array is read-only")
    return 0


cdef bint _is_safe(Walk* walk, Operand* inputs, cnp.ndarray out) noexcept:
    """Whether `out`, already entered in the walk, coincides with each input element for element, or does not overlap it."""
    cdef int i, k
    cdef bint same
    cdef Operand output = operand(out)
    for k in range(walk.count - 1):
        same = inputs[k].data == output.data and inputs[k].itemsize == output.itemsize
        for i in range(walk.ndim):
            same = same and walk.strides[k][i] == walk.strides[walk.count - 1][i]
        if not same and extents_meet(&inputs[k], &output):
            return False
    return True


cdef cnp.ndarray _run_general(Loop* loop, int nin, Operand* inputs, cnp.ndarray out):
    """Handle any shapes and strides: broadcast, reorder, fuse, walk."""
    cdef Walk walk
    cdef int[MAXDIMS] order
    cdef char* data[3]
    cdef int i
    cdef bint reordered
    cdef cnp.npy_intp size = 1
    cdef cnp.ndarray result
    join(&walk, nin, inputs)
    if out is None:
        walk.count = nin        # only the inputs determine the memory order
        reordered = memory_order(&walk, order)
        walk.count = nin + 1
        out = _new_output(&walk, order, reordered, loop.out_type)
        _enter_output(&walk, out)
    else:
        _check_output(&walk, out, loop.out_type)
        _enter_output(&walk, out)
        if not is_plain(out) or not _is_safe(&walk, inputs, out) or loop.is_dense and not cnp.PyArray_IS_C_CONTIGUOUS(out):
            result = _run_general(loop, nin, inputs, None)
            refuse("copies into an array in the way of its operands")
            cnp.PyArray_CopyInto(out, result)
            return out
        if loop.is_dense:
            for i in range(walk.ndim):
                order[i] = i
        else:
            memory_order(&walk, order)
    for i in range(walk.ndim):
        size *= walk.dims[i]
    if size == 0:
        return out
    coalesce(&walk, order, cnp.PyArray_ITEMSIZE(out))
    if not loop.is_dense:
        lengthen_innermost(&walk)
    for i in range(nin):
        data[i] = inputs[i].data
    data[nin] = cnp.PyArray_BYTES(out)
    if tape_open:
        note_walk(&walk, loop, _kind_of(loop), inputs, data, size, cnp.PyArray_ITEMSIZE(out), _number)
    if size > RELEASE_ABOVE:
        with nogil:
            run_shared(&walk, loop, data)
    else:
        run(&walk, loop, data)
    return out


cdef inline bint _meets_flat(cnp.ndarray a, cnp.ndarray out, cnp.npy_intp size) noexcept:
    """Whether two C-contiguous arrays of one size overlap without coinciding element for element."""
    cdef char* x = cnp.PyArray_BYTES(a)
    cdef char* y = cnp.PyArray_BYTES(out)
    cdef cnp.npy_intp m = cnp.PyArray_ITEMSIZE(a)
    cdef cnp.npy_intp n = cnp.PyArray_ITEMSIZE(out)
    return not (x == y and m == n) and x < y + n * size and y < x + m * size


cdef inline bint _takes_flat(cnp.ndarray out, cnp.ndarray a, cnp.ndarray b, int typenum) noexcept:
    """Whether C-contiguous inputs `a` and `b` of one shape can be written to `out` in a single contiguous run."""
    cdef cnp.npy_intp size = cnp.PyArray_SIZE(a)
    return (is_plain(out) and cnp.PyArray_TYPE(out) == typenum and cnp.PyArray_IS_C_CONTIGUOUS(out)
            and cnp.PyArray_ISWRITEABLE(out) and same_shape(out, a)
            and not _meets_flat(a, out, size) and not _meets_flat(b, out, size))


cdef inline double _as_double(object scalar) except? -1:
    """Convert a number to double; for an int without the temporary object of `float(scalar)`."""
    if type(scalar) is int:
        return PyLong_AsDouble(scalar)
    return PyFloat_AS_DOUBLE(scalar) if PyFloat_CheckExact(scalar) else <double>scalar


cdef int _store(Number* number, cnp.ndarray a, object scalar) except -1:
    """Store a Python number in the type of `a` with C's conversions (integers wrap)."""
    cdef int t = cnp.PyArray_TYPE(a)
    cdef long long integer
    if t == cnp.NPY_FLOAT:
        number.float_ = <float>_as_double(scalar)
    elif t == cnp.NPY_DOUBLE:
        number.double_ = _as_double(scalar)
    elif t == cnp.NPY_BOOL:
        number.boolean = bool(scalar)
    elif t <= cnp.NPY_ULONGLONG:
        try:
            integer = PyLong_AsLongLong(int(scalar))
        except OverflowError:
            integer = <long long>PyLong_AsUnsignedLongLong(int(scalar))
        _store_integer(number, cnp.PyArray_ITEMSIZE(a), integer)
    else:
        memcpy(number, cnp.PyArray_DATA(numpy_fallback.number(scalar, a.dtype)), cnp.PyArray_ITEMSIZE(a))
    return 0


cdef inline void _store_integer(Number* number, cnp.npy_intp itemsize, long long value) noexcept:
    if itemsize == 1:
        (<cnp.npy_int8*>number)[0] = <cnp.npy_int8>value
    elif itemsize == 2:
        (<cnp.npy_int16*>number)[0] = <cnp.npy_int16>value
    elif itemsize == 4:
        (<cnp.npy_int32*>number)[0] = <cnp.npy_int32>value
    else:
        number.longlong = value


# ---------------------------------------------------------------------------------------- ufuncs


cdef bint _is_number(int t) noexcept:
    return 0 <= t < NTYPES and cnp.PyTypeNum_ISNUMBER(t) or t == cnp.NPY_BOOL


# Memory-bound loops: one thread finishes a small array before another has woken up.
cdef frozenset _FAST = frozenset(
    "absolute add bitwise_and bitwise_or bitwise_xor conjugate copysign equal fabs greater greater_equal invert isfinite"
    " isinf isnan less less_equal logical_and logical_not logical_or logical_xor maximum minimum multiply negative"
    " not_equal positive sign signbit square subtract".split())


cdef frozenset _DENSE = frozenset("isfinite isinf isnan negative signbit".split())


cdef cnp.npy_intp _piece(str name, int typenum) noexcept:
    """The number of elements per chunk when threads share the work."""
    if name == "power" and typenum < cnp.NPY_FLOAT:
        return 0                    # sets a Python error, which must be set in this thread
    return LIGHT if name in _FAST else HEAVY


@cython.final
cdef class Ufunc:
    """The elementwise function of a NumPy ufunc with one or two inputs and one output.

    ``Ufunc(numpy.add)(a, b)`` returns the result of ``numpy.add(a, b)`` for arrays of one dtype: always an array, never a
    NumPy scalar, and without warnings. One of the two may be a Python number, which is converted to the array's dtype.
    ``out=`` must have the shape and the dtype of the result; it may overlap the inputs in any way.
    Shapes that cannot be broadcast raise ``RuntimeError``, a wrong or read-only ``out`` raises ``ValueError``.
    ``Ufunc(ufunc, function)`` computes `function` instead: with our own loops of that name where they exist, else by
    calling it.
    """

    def __init__(self, cnp.ufunc ufunc, function=None):
        cdef PyUFuncObject* source = <PyUFuncObject*>ufunc
        cdef int i, t, out_type
        cdef const char* types = source.types
        cdef Loop* loop
        cdef Ufunc other
        if not 1 <= source.nin <= 2 or source.nargs != source.nin + 1:
            raise ValueError(f"{ufunc.__name__} does not have one or two inputs and one output")
        self.numpy = ufunc if function is None else function
        self.name = self.numpy.__name__
        self.nin = source.nin
        self.keeps_numbers = self.name in ("multiply", "divide")  # PyTorch does not round the scalar to half precision here
        for t in range(NTYPES + 1):
            self.loops[t].function = NULL
        if PURE:
            return
        for i in range(source.ntypes):
            t = types[0]
            out_type = types[source.nin]
            if (types[source.nin - 1] == t and _is_number(t) and _is_number(out_type)
                    and self.loops[t].function == NULL):
                self.loops[t].function = source.functions[i]
                self.loops[t].data = source.data[i]
                self.loops[t].out_type = out_type
                self.loops[t].piece = _piece(self.name, t)
                self.loops[t].is_dense = self.name in _DENSE
            types += source.nargs
        name = self.name.encode()
        for t in range(NTYPES):
            loop = &self.loops[t]
            if loop.function == NULL:
                continue
            if t in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
                replaced = replace_loop(name, t == cnp.NPY_DOUBLE, &loop.function, &loop.data)
            else:
                replaced = t in (cnp.NPY_INT, cnp.NPY_LONG, cnp.NPY_LONGLONG) and replace_division(
                    name, cnp.PyArray_DescrFromType(t).itemsize == 8, &loop.function, &loop.data)
            if function is not None and not replaced:
                loop.function = NULL
        if self.nin == 2 and self.name.startswith("logical"):
            other = Ufunc(np.not_equal)
            for t in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
                replace_logical(ufunc.__name__.encode(), t == cnp.NPY_DOUBLE, other.loops[t].function, other.loops[t].data,
                                &self.loops[t].function, &self.loops[t].data)
        self._enter_narrow()
        if ufunc is np.log1p:  # NumPy's are not accurate near 0
            for t in (cnp.NPY_CFLOAT, cnp.NPY_CDOUBLE):
                self.loops[t].function = NULL
        if ufunc is np.reciprocal:
            self.quotient = Ufunc(np.divide)
            for t in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
                self.loops[t].function = NULL

    cdef void _enter_narrow(self):
        """Derive the loops of float16 and bfloat16 from those of float32."""
        cdef Loop* wide = &self.loops[<int>cnp.NPY_FLOAT]
        cdef Loop* half = &self.loops[<int>cnp.NPY_FLOAT16]
        cdef narrow_ufunc own
        cdef bytes name = self.name.encode()
        if wide.function == NULL or half.function == NULL or self.name in ("nextafter", "spacing"):
            return
        self.loops[NTYPES] = half[0]
        for is_bfloat16 in (False, True):
            own.nin = self.nin
            own.widen = half_cast(is_bfloat16, False)
            own.narrow = NULL if wide.out_type == cnp.NPY_BOOL else half_cast(is_bfloat16, True)
            own.wide = wide.function
            own.settings = wide.data
            half = &self.loops[NTYPES if is_bfloat16 else <int>cnp.NPY_FLOAT16]
            replace_narrow(name, is_bfloat16, &own, &half.function, &half.data)

    cdef inline int _row(self, cnp.ndarray a) noexcept:
        """Return the index into `loops` for the array's type; -1 if there is none."""
        cdef int t = cnp.PyArray_TYPE(a)
        if likely(t < NTYPES):
            return t
        if t != bfloat16_type:
            return -1
        if self.loops[NTYPES].out_type == cnp.NPY_FLOAT16:
            self.loops[NTYPES].out_type = t
        return NTYPES

    def __repr__(self):
        return f"Ufunc({self.name})"

    def __call__(self, *arrays, cnp.ndarray out=None):
        if len(arrays) != self.nin:
            raise TypeError(f"{self.name} takes {self.nin} arrays, got {len(arrays)}")
        a, b = arrays[0], arrays[self.nin - 1]
        if not isinstance(a, cnp.ndarray) and not isinstance(b, cnp.ndarray):
            raise TypeError(f"{self.name} takes an array, not {type(a).__name__}")
        if self.nin == 1:
            return self.call1(a, out)
        if not isinstance(b, cnp.ndarray):
            return self.call2_scalar(a, b, False, out)
        if not isinstance(a, cnp.ndarray):
            return self.call2_scalar(b, a, True, out)
        return self.call2(a, b, out)

    cdef cnp.ndarray call1(self, cnp.ndarray a, cnp.ndarray out):
        cdef int t = self._row(a)
        cdef Loop* loop
        cdef Operand[1] inputs
        if not (likely(t >= 0) and likely(self.nin == 1) and likely(is_plain(a))
                and likely(self.loops[t].function != NULL)):
            if self.quotient is not None and t in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
                return self.quotient.call2_scalar(a, 1, True, out)
            return self._fallback(a, None, out)
        loop = &self.loops[t]
        if cnp.PyArray_IS_C_CONTIGUOUS(a) and (out is None or _takes_flat(out, a, a, loop.out_type)):
            if out is None:
                out = empty(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), loop.out_type)
            _run_flat(loop, 1, cnp.PyArray_SIZE(a), cnp.PyArray_BYTES(a), cnp.PyArray_ITEMSIZE(a), NULL, 0, out)
            return out
        inputs[0] = operand(a)
        return _run_general(loop, 1, inputs, out)

    cdef cnp.ndarray call2(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out):
        cdef int t = self._row(a)
        cdef cnp.npy_intp step_a, step_b
        cdef cnp.ndarray shaped = None      # the operand that determines shape and order of the result
        cdef Loop* loop
        cdef Operand[2] inputs
        if not (likely(t >= 0) and likely(cnp.PyArray_TYPE(b) == cnp.PyArray_TYPE(a)) and likely(self.nin == 2)
                and likely(is_plain(a)) and likely(is_plain(b)) and likely(self.loops[t].function != NULL)):
            return self._fallback(a, b, out)
        loop = &self.loops[t]
        step_a = step_b = cnp.PyArray_ITEMSIZE(a)
        if likely(cnp.PyArray_IS_C_CONTIGUOUS(a) and cnp.PyArray_IS_C_CONTIGUOUS(b)):
            if likely(same_shape(a, b)):
                if out is None or _takes_flat(out, a, b, loop.out_type):
                    shaped = a
            elif out is None:
                if cnp.PyArray_SIZE(b) == 1 and cnp.PyArray_NDIM(b) <= cnp.PyArray_NDIM(a):
                    shaped = a
                    step_b = 0
                elif cnp.PyArray_SIZE(a) == 1 and cnp.PyArray_NDIM(a) <= cnp.PyArray_NDIM(b):
                    shaped = b
                    step_a = 0
        if likely(shaped is not None):
            if out is None:
                out = empty(cnp.PyArray_NDIM(shaped), cnp.PyArray_DIMS(shaped), loop.out_type)
            _run_flat(loop, 2, cnp.PyArray_SIZE(shaped), cnp.PyArray_BYTES(a), step_a,
                      cnp.PyArray_BYTES(b), step_b, out)
        else:
            inputs[0] = operand(a)
            inputs[1] = operand(b)
            out = _run_general(loop, 2, inputs, out)
        if t < cnp.NPY_FLOAT:
            _check_error()
        return out

    cdef cnp.ndarray call2_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out):
        global _number
        cdef int t = self._row(a)
        cdef Number number
        cdef Loop* loop
        cdef Loop of_number
        cdef void* settings
        cdef Operand[2] inputs
        if not (likely(t >= 0) and likely(self.nin == 2) and likely(is_plain(a))
                and likely(self.loops[t].function != NULL)):
            return self._fallback_scalar(a, scalar, scalar_first, out)
        loop = &self.loops[t]
        if tape_open:
            memset(&number, 0, sizeof(number))
            _number = <char*>&number
        if likely(t == cnp.NPY_FLOAT):
            number.float_ = <float>_as_double(scalar)
        else:
            settings = NULL
            if t >= cnp.NPY_FLOAT16 and self.keeps_numbers:
                settings = taking_number(loop.function, loop.data, 0 if scalar_first else 1)
            if settings != NULL:
                number.float_ = <float>_as_double(scalar)
                of_number = loop[0]
                of_number.data = settings
                loop = &of_number
            else:
                _store(&number, a, scalar)
        if likely(cnp.PyArray_IS_C_CONTIGUOUS(a)) and (out is None or _takes_flat(out, a, a, loop.out_type)):
            if out is None:
                out = empty(cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a), loop.out_type)
            if scalar_first:
                _run_flat(loop, 2, cnp.PyArray_SIZE(a), <char*>&number, 0,
                          cnp.PyArray_BYTES(a), cnp.PyArray_ITEMSIZE(a), out)
            else:
                _run_flat(loop, 2, cnp.PyArray_SIZE(a), cnp.PyArray_BYTES(a), cnp.PyArray_ITEMSIZE(a),
                          <char*>&number, 0, out)
        else:
            inputs[scalar_first] = operand(a)
            inputs[not scalar_first] = Operand(<char*>&number, 0, NULL, NULL, cnp.PyArray_ITEMSIZE(a))
            out = _run_general(loop, 2, inputs, out)
        if t < cnp.NPY_FLOAT:
            _check_error()
        return out

    cdef cnp.ndarray _fallback_scalar(self, cnp.ndarray a, object scalar, bint scalar_first, cnp.ndarray out):
        cdef int t = cnp.PyArray_TYPE(a)
        cdef cnp.ndarray number
        cdef Number value
        if self.keeps_numbers and (t == cnp.NPY_FLOAT16 or t == bfloat16_type):
            number = cast(self._fallback_scalar(cast(a, cnp.NPY_FLOAT), scalar, scalar_first, None), t)
            if out is None:
                return number
            copy_in_numpy(out, number)
            return out
        if t < NTYPES:
            number = empty(0, NULL, t)
            _store(&value, number, scalar)
            memcpy(cnp.PyArray_DATA(number), &value, cnp.PyArray_ITEMSIZE(number))
        else:
            number = numpy_fallback.number(scalar, a.dtype)
        return self._fallback(number, a, out) if scalar_first else self._fallback(a, number, out)

    cdef cnp.ndarray _fallback(self, cnp.ndarray a, cnp.ndarray b, cnp.ndarray out):
        """Call NumPy's function; `b` is None for unary functions."""
        cdef Walk walk
        cdef Operand[2] inputs
        cdef cnp.ndarray result
        inputs[0] = operand(a)
        inputs[1] = operand(a if b is None else b)
        join(&walk, self.nin, inputs)      # only to raise its error
        operands = (a,) if b is None else (a, b)
        if tape_open:
            result = run_on_tape(self.numpy, numpy_fallback.call, (self.numpy, *operands), {})
        else:
            result = numpy_fallback.call(self.numpy, *operands)
        if out is None:
            return result
        _check_output(&walk, out, cnp.PyArray_TYPE(result))
        copy_in_numpy(out, result)
        return out


cdef inline int _check_error() except -1:
    return -1 if PyErr_Occurred() != NULL else 0


cdef Ufunc _product = Ufunc(np.multiply)
