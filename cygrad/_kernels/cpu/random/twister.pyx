"""The Mersenne Twister, PyTorch's generator on the CPU, and the numbers that PyTorch draws from it."""

from types import SimpleNamespace

from libc.stdint cimport int64_t, uint64_t

cimport numpy as cnp

from libc.string cimport memset

from cygrad._kernels.tape.tape cimport READS, WRITES, Tape, Word, current_tape, note, refuse_always, tape_open, word
from cygrad._kernels.cpu.base.arrays cimport empty, is_plain
from cygrad._kernels.platform.thread_pool cimport RELEASE_ABOVE

cnp.import_array()

cdef extern from "platform/lock.h":
    void cygrad_make_lock(cygrad_lock* lock) noexcept nogil
    void cygrad_acquire(cygrad_lock* lock) noexcept nogil
    void cygrad_release_lock(cygrad_lock* lock) noexcept nogil

cdef extern from "random/twister_draws.h":
    enum:
        UNIFORM_NUMBERS
        NORMAL_NUMBERS
        EXPONENTIAL_NUMBERS
        COINS
        INTEGERS
        SHUFFLED
        CAUCHY_NUMBERS
        LOG_NORMAL_NUMBERS
        TRIALS
        WORDS_BELOW
        DENSE_NORMAL_NUMBERS
        DENSE_NORMAL_NUMBERS_TO_BE_ROUNDED
        PAIR_GROUP
        STATE_BYTES
        OF_FLOATS
        OF_DOUBLES
        OF_WHOLES
        AS_FLOATS
        AS_DOUBLES
        AS_INT32
        AS_UINT8
    ctypedef struct twister_wish:
        int what
        int type
        void* out
        Py_ssize_t size
        int64_t low
        uint64_t span
        double a
        double b
    void twister_seed(twister* t, uint64_t seed) noexcept nogil
    void twister_write(const twister* t, char* state) noexcept nogil
    bint twister_read(twister* t, const char* state) noexcept nogil
    void twister_fill(twister* t, const twister_wish* w) noexcept nogil
    void twister_fill_as(twister* t, const twister_wish* w, int kind) noexcept nogil

cdef extern from "random/twister_samples.h":
    enum:
        BY_RATE
        BY_SHAPE
        BY_SHAPE_TO_LOG
        BY_TRIALS
        BY_CHANCE
    bint floats_lie_between(const float* x, Py_ssize_t n, double low, double high) noexcept nogil
    bint doubles_lie_between(const double* x, Py_ssize_t n, double low, double high) noexcept nogil
    bint floats_are_weights(const float* x, Py_ssize_t rows, Py_ssize_t length) noexcept nogil
    bint doubles_are_weights(const double* x, Py_ssize_t rows, Py_ssize_t length) noexcept nogil
    void sample_each(twister* t, int what, bint is_float, const void* first, const void* second, void* out,
                     Py_ssize_t size) noexcept nogil
    void pick_by_floats(twister* t, const float* weights, float* sums, int64_t* out, Py_ssize_t rows,
                        Py_ssize_t length, Py_ssize_t count) noexcept nogil
    void pick_by_doubles(twister* t, const double* weights, double* sums, int64_t* out, Py_ssize_t rows,
                         Py_ssize_t length, Py_ssize_t count) noexcept nogil

# Kinds of random numbers besides those of draw.pyx, and kinds of parameters per element.
KINDS = SimpleNamespace(CAUCHY=CAUCHY_NUMBERS, LOG_NORMAL=LOG_NORMAL_NUMBERS, TRIALS=TRIALS, WORDS_BELOW=WORDS_BELOW,
                        ROUNDED_NORMALS=DENSE_NORMAL_NUMBERS_TO_BE_ROUNDED,
                        RATES=BY_RATE, SHAPES=BY_SHAPE, LOG_SHAPES=BY_SHAPE_TO_LOG,
                        COUNTS=BY_TRIALS, CHANCES=BY_CHANCE)


cdef class Twister:
    """A stream of random numbers. Each method and each draw is atomic, whichever threads call it."""

    def __cinit__(self, object seed=0):
        cygrad_make_lock(&self.lock)
        twister_seed(&self.state, seed)

    def restart(self, object seed not None):
        """Begin the stream of a seed below 2^64."""
        cdef uint64_t first = seed
        cygrad_acquire(&self.lock)
        twister_seed(&self.state, first)
        cygrad_release_lock(&self.lock)

    @property
    def seed(self):
        """The seed with which the stream began."""
        return self.state.seed

    def read(self):
        """Return the position in the stream: PyTorch's state, an array of 5056 bytes."""
        cdef cnp.npy_intp size = STATE_BYTES
        cdef cnp.ndarray found = empty(1, &size, cnp.NPY_UINT8)
        cygrad_acquire(&self.lock)
        twister_write(&self.state, cnp.PyArray_BYTES(found))
        cygrad_release_lock(&self.lock)
        return found

    def move(self, cnp.ndarray state not None):
        """Move to a position that `read` has returned, and return True; for an invalid state, do nothing."""
        if cnp.PyArray_NBYTES(state) != STATE_BYTES or not cnp.PyArray_IS_C_CONTIGUOUS(state):
            return False
        cygrad_acquire(&self.lock)
        is_valid = twister_read(&self.state, cnp.PyArray_BYTES(state))
        cygrad_release_lock(&self.lock)
        return is_valid


cdef int _type_of(int typenum) noexcept:
    if typenum == cnp.NPY_FLOAT:
        return OF_FLOATS
    if typenum == cnp.NPY_DOUBLE:
        return OF_DOUBLES
    return OF_WHOLES if typenum == cnp.NPY_INT64 else -1


# Whether `twister_fill` makes such numbers in this type.
cdef bint _makes(int what, int type) noexcept:
    if what == INTEGERS or what == SHUFFLED or what == WORDS_BELOW:
        return type == OF_WHOLES
    return type == OF_FLOATS or (type == OF_DOUBLES and what != COINS)


cdef bint drew(Twister numbers, cnp.ndarray out, int what, object a, object b) except -1:
    cdef twister_wish wish
    cdef Py_ssize_t size = cnp.PyArray_SIZE(out)
    cdef int kind = -1
    wish.type = _type_of(cnp.PyArray_TYPE(out))
    if not is_plain(out) or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        refuse_always(_UNNOTED)
        return False
    if not _makes(what, wish.type):
        kind = _kind_of(cnp.PyArray_TYPE(out)) if what == INTEGERS or what == WORDS_BELOW else -1
        if kind < 0:
            return _drew_converted(numbers, out, what, a, b)
        wish.type = OF_WHOLES
    wish.what, wish.size, wish.out = what, size, cnp.PyArray_DATA(out)
    if wish.type == OF_WHOLES:
        wish.low, wish.span = a, b
    else:
        wish.a, wish.b = a, b
        if what == NORMAL_NUMBERS and size >= PAIR_GROUP:
            wish.what = DENSE_NORMAL_NUMBERS
    if tape_open:
        note_draw(numbers, &wish, kind, cnp.PyArray_NBYTES(out))
    if size <= RELEASE_ABOVE:
        _fill(&numbers.state, &numbers.lock, &wish, kind)
    else:
        with nogil:
            _fill(&numbers.state, &numbers.lock, &wish, kind)
    return True


# How `twister_fill_as` names a type to which it converts integers, or -1.
cdef int _kind_of(int typenum) noexcept:
    if typenum == cnp.NPY_FLOAT:
        return AS_FLOATS
    if typenum == cnp.NPY_DOUBLE:
        return AS_DOUBLES
    if typenum == cnp.NPY_INT32:
        return AS_INT32
    return AS_UINT8 if typenum == cnp.NPY_UINT8 else -1


# The same for numbers that are made in one type only, and converted to that of the array.
cdef bint _drew_converted(Twister numbers, cnp.ndarray out, int what, object a, object b) except -1:
    cdef int made = cnp.NPY_FLOAT if what == COINS else cnp.NPY_INT64
    refuse_always(_UNNOTED)
    if not _makes(what, _type_of(made)) or cnp.PyArray_TYPE(out) > cnp.NPY_DOUBLE:
        return False
    cdef cnp.ndarray drawn = empty(cnp.PyArray_NDIM(out), cnp.PyArray_DIMS(out), made)
    drew(numbers, drawn, what, a, b)
    cnp.PyArray_CopyInto(out, drawn)
    return True


cdef void _fill(twister* state, cygrad_lock* lock, const twister_wish* wish, int kind) noexcept nogil:
    cygrad_acquire(lock)
    if kind < 0:
        twister_fill(state, wish)
    else:
        twister_fill_as(state, wish, kind)
    cygrad_release_lock(lock)


# -- for the tape (Note [The tape] in tape.pyx)

_UNNOTED = "draws random numbers of a type or layout that is converted"
cdef list _streams = []             # those that were drawn from while the tape was open


cdef int note_stream(object numbers) except -1:
    cdef Tape tape = current_tape()
    if tape is not None and tape.depth:     # the state of its stream could not be restored
        refuse_always("draws random numbers within a kernel that is noted as a call")
    if numbers not in _streams:
        _streams.append(numbers)
    return 0


def take_streams():
    """Return the streams that noted loops draw from, which must live as long as these, and forget them."""
    global _streams
    found = _streams
    _streams = []
    return found


cdef struct DrawCall:
    twister* state
    cygrad_lock* lock
    twister_wish wish
    int kind


cdef void _replay_draw(void* context) noexcept nogil:
    cdef DrawCall* call = <DrawCall*>context
    _fill(call.state, call.lock, &call.wish, call.kind)


cdef int note_draw(Twister numbers, const twister_wish* wish, int kind, Py_ssize_t nbytes) except -1:
    cdef DrawCall call
    cdef Word w
    memset(&call, 0, sizeof(call))
    call.state, call.lock, call.kind = &numbers.state, &numbers.lock, kind
    call.wish.what, call.wish.type, call.wish.out, call.wish.size = wish.what, wish.type, wish.out, wish.size
    if wish.type == OF_WHOLES:
        call.wish.low, call.wish.span = wish.low, wish.span
    else:
        call.wish.a, call.wish.b = wish.a, wish.b
    w = word(&call, &call.wish.out, WRITES, 0, nbytes)
    note_stream(numbers)
    note(_replay_draw, "draw", &call, sizeof(call), &w, 1)
    return 0


def draw_alike(Twister numbers not None, cnp.ndarray out not None, int what, double a, double b):
    """Fill a dense array of floats or doubles by the formula of `what` for tensors of any layout and size."""
    cdef twister_wish wish
    wish.type, wish.what, wish.size, wish.out = (
        _type_of(cnp.PyArray_TYPE(out)), what, cnp.PyArray_SIZE(out), cnp.PyArray_DATA(out))
    wish.a, wish.b = a, b
    if not is_plain(out) or not cnp.PyArray_IS_C_CONTIGUOUS(out) or not _makes(what, wish.type):
        raise TypeError("expected a dense array of a type that the generator makes")
    if tape_open:
        note_draw(numbers, &wish, -1, cnp.PyArray_NBYTES(out))
    with nogil:
        _fill(&numbers.state, &numbers.lock, &wish, -1)
    return out


def lie_between(cnp.ndarray array not None, double low, double high):
    """Whether all elements of a dense array of floats or doubles are in [low, high]; NaN is not. None for other arrays."""
    cdef int type = _type_of(cnp.PyArray_TYPE(array))
    if not is_plain(array) or not cnp.PyArray_IS_C_CONTIGUOUS(array) or type not in (OF_FLOATS, OF_DOUBLES):
        return None
    cdef Py_ssize_t size = cnp.PyArray_SIZE(array)
    cdef bint is_between
    with nogil:
        if type == OF_FLOATS:
            is_between = floats_lie_between(<float*>cnp.PyArray_DATA(array), size, low, high)
        else:
            is_between = doubles_lie_between(<double*>cnp.PyArray_DATA(array), size, low, high)
    return is_between


def draw_each(Twister numbers not None, int what, cnp.ndarray first not None, cnp.ndarray second=None):
    """Return a number for each parameter in `first` (and `second`): dense arrays of floats or of doubles, of one shape.

    `what` is one of the kinds of parameters in `KINDS`; for chances the result is an array of bool.
    """
    cdef int typenum = cnp.PyArray_TYPE(first)
    cdef bint is_float = typenum == cnp.NPY_FLOAT
    cdef Py_ssize_t size = cnp.PyArray_SIZE(first)
    for array in (first, second):
        if array is not None and (
                not is_plain(array) or not cnp.PyArray_IS_C_CONTIGUOUS(array) or cnp.PyArray_SIZE(array) != size
                or cnp.PyArray_TYPE(array) != typenum or _type_of(typenum) not in (OF_FLOATS, OF_DOUBLES)):
            raise TypeError("expected dense arrays of floats or of doubles, of the same size")
    if (second is None) == (what == BY_TRIALS):
        raise TypeError("only numbers of trials take two parameters")
    cdef cnp.ndarray out = empty(cnp.PyArray_NDIM(first), cnp.PyArray_DIMS(first),
                                 cnp.NPY_BOOL if what == BY_CHANCE else typenum)
    cdef Samples samples
    memset(&samples, 0, sizeof(samples))
    samples.state, samples.lock, samples.what, samples.is_float = &numbers.state, &numbers.lock, what, is_float
    samples.first, samples.out, samples.size = cnp.PyArray_DATA(first), cnp.PyArray_DATA(out), size
    samples.second = NULL if second is None else cnp.PyArray_DATA(second)
    if tape_open:
        _note_samples(numbers, &samples, cnp.PyArray_NBYTES(first), cnp.PyArray_NBYTES(out))
    with nogil:
        _sample(&samples)
    return out


cdef struct Samples:                # numbers with parameters of their own, or indices drawn by weights
    twister* state
    cygrad_lock* lock
    int what
    bint is_float
    const void* first
    const void* second
    void* out
    Py_ssize_t size


cdef void _sample(void* context) noexcept nogil:
    cdef Samples* s = <Samples*>context
    cygrad_acquire(s.lock)
    sample_each(s.state, s.what, s.is_float, s.first, s.second, s.out, s.size)
    cygrad_release_lock(s.lock)


cdef int _note_samples(Twister numbers, Samples* samples, Py_ssize_t given, Py_ssize_t drawn) except -1:
    cdef Word[3] words
    words[0] = word(samples, &samples.first, READS, 0, given)
    words[1] = word(samples, &samples.second, READS, 0, given)
    words[2] = word(samples, &samples.out, WRITES, 0, drawn)
    note_stream(numbers)
    note(_sample, "draw", samples, sizeof(Samples), words, 3)
    return 0


cdef bint _is_matrix(cnp.ndarray weights) noexcept:
    return (is_plain(weights) and cnp.PyArray_NDIM(weights) == 2 and cnp.PyArray_IS_C_CONTIGUOUS(weights)
            and (cnp.PyArray_TYPE(weights) == cnp.NPY_FLOAT or cnp.PyArray_TYPE(weights) == cnp.NPY_DOUBLE))


def are_weights(cnp.ndarray weights not None):
    """Whether no weight in a matrix is negative and each row has a finite sum above 0.

    None if it is not a dense matrix of floats or doubles.
    """
    if not _is_matrix(weights):
        return None
    cdef Py_ssize_t size = cnp.PyArray_SIZE(weights)
    if size <= RELEASE_ABOVE:
        return _are_weights(weights)
    with nogil:
        are = _are_weights(weights)
    return are


cdef bint _are_weights(cnp.ndarray weights) noexcept nogil:
    cdef Py_ssize_t rows = cnp.PyArray_DIM(weights, 0), length = cnp.PyArray_DIM(weights, 1)
    if cnp.PyArray_TYPE(weights) == cnp.NPY_FLOAT:
        return floats_are_weights(<float*>cnp.PyArray_DATA(weights), rows, length)
    return doubles_are_weights(<double*>cnp.PyArray_DATA(weights), rows, length)


def draw_picks(Twister numbers not None, cnp.ndarray weights not None, Py_ssize_t count):
    """Return `count` indices for each row of weights, with probabilities proportional to them: int64.

    The weights have been checked by the caller. None, and nothing is drawn, if they are not a dense matrix of floats or
    doubles with at least one column.
    """
    if not _is_matrix(weights) or cnp.PyArray_DIM(weights, 1) < 1 or count < 0:
        return None
    cdef cnp.npy_intp[2] shape
    shape[0], shape[1] = cnp.PyArray_DIM(weights, 0), count
    cdef cnp.npy_intp length = cnp.PyArray_DIM(weights, 1)
    cdef cnp.ndarray out = empty(2, shape, cnp.NPY_INT64), sums = empty(1, &length, cnp.PyArray_TYPE(weights))
    cdef Picks picks
    memset(&picks, 0, sizeof(picks))
    picks.state, picks.lock, picks.is_float = &numbers.state, &numbers.lock, cnp.PyArray_TYPE(weights) == cnp.NPY_FLOAT
    picks.weights, picks.sums, picks.out = cnp.PyArray_DATA(weights), cnp.PyArray_DATA(sums), cnp.PyArray_DATA(out)
    picks.rows, picks.length, picks.count = shape[0], length, count
    if tape_open:
        _note_picks(numbers, &picks, cnp.PyArray_NBYTES(weights), cnp.PyArray_NBYTES(sums), cnp.PyArray_NBYTES(out))
    if cnp.PyArray_SIZE(weights) <= RELEASE_ABOVE and cnp.PyArray_SIZE(out) <= RELEASE_ABOVE:
        _pick(&picks)
    else:
        with nogil:
            _pick(&picks)
    return out


cdef struct Picks:
    twister* state
    cygrad_lock* lock
    bint is_float
    const void* weights
    void* sums
    void* out
    Py_ssize_t rows
    Py_ssize_t length
    Py_ssize_t count


cdef void _pick(void* context) noexcept nogil:
    cdef Picks* p = <Picks*>context
    cygrad_acquire(p.lock)
    if p.is_float:
        pick_by_floats(p.state, <const float*>p.weights, <float*>p.sums, <int64_t*>p.out, p.rows, p.length, p.count)
    else:
        pick_by_doubles(p.state, <const double*>p.weights, <double*>p.sums, <int64_t*>p.out, p.rows, p.length, p.count)
    cygrad_release_lock(p.lock)


cdef int _note_picks(Twister numbers, Picks* picks, Py_ssize_t given, Py_ssize_t room, Py_ssize_t drawn) except -1:
    cdef Word[3] words
    words[0] = word(picks, &picks.weights, READS, 0, given)
    words[1] = word(picks, &picks.sums, WRITES, 0, room)
    words[2] = word(picks, &picks.out, WRITES, 0, drawn)
    note_stream(numbers)
    note(_pick, "draw", picks, sizeof(Picks), words, 3)
    return 0
