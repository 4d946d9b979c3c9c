"""Notes whole calls of kernels whose loops the tape cannot see: those in Python, and those that go on in NumPy.

Note [Noted calls]
------------------
A kernel is a function of arrays, numbers and the like: called again with arrays of the same shapes, it does the same. So
where its loops are not noted, the call itself becomes an entry of the tape: the function, its arguments, and what it
returned. The arrays among the arguments are replaced by others, which a replay points to the memory of its run.

    reads       all of each argument
    writes      arguments whose bytes the call has changed, and the memory that it has given to its results
    results     must have the same shapes, dtypes and strides in each run, and lie in an argument's memory where they did so
                in the first; other values that a function returns, such as whether all indices are within bounds, must be
                equal. Otherwise, or if it raises an error, the run stops, and what it has changed is restored: the layer
                above does the step as it is written. Where values tell how many elements there are, the call is repeated
                even if nobody reads these: Python may have counted them
    constants   arrays that are no tensors' and existed before, such as tables of places, are given as they are
    refused     kernels that draw random numbers, or take objects that may hold arrays out of sight

Functions in the layer above that look at values, to choose or to raise an error, are noted in this way if they are `noted`.
Kernels of the compiled modules in vetted.py note their loops, which costs less. Where they go on in NumPy after all, or hand
back what no noted loop has computed, the call is noted instead.
"""

import functools
import types

cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from cygrad._kernels.platform.memory_pool cimport call_kernel, connect_tape
from cygrad._kernels.tape.programs cimport Launches
from cygrad._kernels.tape.tape cimport (
    INNER_BLOCK, READS, SCATTERS, WRITES, Block, Tape, Word, current_tape, noted_data, tape_open)

from cygrad._library import later

vetted = later("cygrad._kernels.tape.vetted")      # needed only to compile

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Four numbers that tell whether bytes have changed. A change within one word always changes them, any other one all but
       certainly. Copies of the bytes would take several times as long, most of it for fresh memory. */
    static void digest_bytes(const char *bytes, Py_ssize_t n, uint64_t *lanes)
    {
        const uint64_t odd = 0x9E3779B97F4A7C15u;
        uint64_t words[4] = {0, 0, 0, 0};
        Py_ssize_t at = 0;
        int k;
        for (k = 0; k < 4; k++) lanes[k] = (uint64_t)k + 1;
        for (; at + 32 <= n; at += 32) {
            memcpy(words, bytes + at, 32);
            for (k = 0; k < 4; k++) {
                lanes[k] = (lanes[k] ^ words[k]) * odd;
                lanes[k] ^= lanes[k] >> 32;
            }
        }
        memset(words, 0, 32);
        memcpy(words, bytes + at, (size_t)(n - at));
        for (k = 0; k < 4; k++) lanes[k] = (lanes[k] ^ words[k]) * odd;
    }
    """
    void digest_bytes(const char*, Py_ssize_t, uint64_t*) noexcept nogil

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArrayObject_fields:
        char* data
    object PyArray_NewFromDescr(
        PyTypeObject*, cnp.PyArray_Descr*, int, cnp.npy_intp*, cnp.npy_intp*, void*, int, PyObject*)
    PyTypeObject PyArray_Type


# Values of these types hold no arrays.
cdef tuple PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type, type(Ellipsis), range, np.generic, np.dtype, np.ufunc,
    types.BuiltinFunctionType, types.ModuleType)


# Results of these types tell how a step goes on: a replay must find the same ones.
cdef tuple CONDITIONS = (bool, int, str)


class Hidden(Exception):
    """An argument that may hold arrays out of sight."""


# ------------------------------------------------------------------------------------------------- arrays


cdef void span(cnp.ndarray a, Py_ssize_t* low, Py_ssize_t* high) noexcept:
    """The bytes that an array reaches, relative to its address."""
    cdef int i
    low[0] = high[0] = 0
    if cnp.PyArray_SIZE(a) == 0:
        return
    for i in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_STRIDES(a)[i] < 0:
            low[0] += (cnp.PyArray_DIMS(a)[i] - 1) * cnp.PyArray_STRIDES(a)[i]
        else:
            high[0] += (cnp.PyArray_DIMS(a)[i] - 1) * cnp.PyArray_STRIDES(a)[i]
    high[0] += cnp.PyArray_ITEMSIZE(a)


cdef cnp.ndarray double_of(cnp.ndarray a):
    """An array like another one, whose address can be changed."""
    cdef object descr = (<object>a).dtype
    cdef int flags = cnp.PyArray_FLAGS(a) & (cnp.NPY_ARRAY_WRITEABLE | cnp.NPY_ARRAY_ALIGNED)
    Py_INCREF(descr)                    # PyArray_NewFromDescr steals a reference
    return PyArray_NewFromDescr(&PyArray_Type, <cnp.PyArray_Descr*>descr, cnp.PyArray_NDIM(a), cnp.PyArray_DIMS(a),
                                cnp.PyArray_STRIDES(a), cnp.PyArray_DATA(a), flags, NULL)


@cython.final
cdef class Made:

    def __init__(self, cnp.ndarray a not None):
        cdef int i
        self.descr, self.ndim = (<object>a).dtype, cnp.PyArray_NDIM(a)
        for i in range(self.ndim):
            self.dims[i], self.steps[i] = cnp.PyArray_DIMS(a)[i], cnp.PyArray_STRIDES(a)[i]
        self.size = cnp.PyArray_NBYTES(a)
        span(a, &self.low, &self.high)
        self.word = -1

    cdef bint is_like(self, int typenum, int ndim, cnp.npy_intp* dims, cnp.npy_intp* steps) noexcept:
        """Whether arrays have this type, this shape and these strides."""
        cdef int i
        if (<cnp.dtype>self.descr).type_num != typenum or self.ndim != ndim:
            return False
        for i in range(ndim):
            if self.dims[i] != dims[i] or self.steps[i] != steps[i]:
                return False
        return True

    cdef bint fits(self, cnp.ndarray a) noexcept:
        cdef int i
        if (<object>a).dtype is not self.descr and (<object>a).dtype != self.descr or cnp.PyArray_NDIM(a) != self.ndim:
            return False
        for i in range(self.ndim):
            if cnp.PyArray_DIMS(a)[i] != self.dims[i]:
                return False
            if cnp.PyArray_STRIDES(a)[i] != self.steps[i] and self.dims[i] > 1 and self.size:
                return False
        return True


# -------------------------------------------------------------------------------------------------- calls


@cython.final
cdef class Call:
    """A call of a kernel, with arrays of its own in the place of those that it was given."""

    @property
    def has_constants(self):
        """Whether it is given arrays whose memory the tape does not know."""
        return bool(self.constants)

    cdef str run(self, object launches, char** addresses, list held):
        """Repeat the call; return why it did something else than before, or None. `held` keeps its results, by slot."""
        cdef Py_ssize_t i, k, n = len(self.inputs)
        cdef cnp.ndarray array
        cdef Made made
        cdef char* base
        cdef int slot
        cdef list found = []
        for i in range(n):
            (<PyArrayObject_fields*>self.inputs[i]).data = addresses[i]
        try:
            enter_leaves(call_kernel(self.function, with_own_lists(self.args) if self.has_lists else self.args, ()), found)
        except Exception as error:
            return f"`{self.name}` raised {type(error).__name__}: {error}"
        if len(found) != len(self.results):
            return f"`{self.name}` returned another number of arrays"
        for i in range(len(found)):
            if type(self.results[i]) is not Made:
                if type(found[i]) is not type(self.results[i]) or found[i] != self.results[i]:
                    return f"`{self.name}` found other values"
                continue
            made = <Made>self.results[i]
            if type(found[i]) is not cnp.ndarray or not made.fits(<cnp.ndarray>found[i]):
                return f"`{self.name}` returned an array of another shape"
            if made.size == 0:
                continue
            array = <cnp.ndarray>found[i]
            base = cnp.PyArray_BYTES(array) - made.offset
            k = made.word - n
            slot = -1 if k < 0 else <int>self.fresh[k]
            if slot >= 0 and held[slot] is None:
                (<Launches>launches).set_base(slot, base)
                held[slot] = array
            elif slot >= 0:
                if (<Launches>launches).bases[slot] != base:
                    return f"`{self.name}` returned arrays in other memory"
            elif k >= 0:
                memcpy(addresses[made.word] + made.offset + made.low, cnp.PyArray_BYTES(array) + made.low,
                       made.high - made.low)
            elif addresses[made.word] != base:
                return f"`{self.name}` returned an array in other memory"
        return None

    def numbers(self):
        """What the call is given besides arrays."""
        return [repr(value) for value in self.args if isinstance(value, (*CONDITIONS, float, complex, tuple))
                and not any_arrays(value)]


cdef bint any_arrays(object value) except -1:
    return type(value) is cnp.ndarray or type(value) is tuple and any([any_arrays(each) for each in value])


cdef object with_own_lists(object value):
    """The same value with new lists and dictionaries, which a kernel may change."""
    if type(value) is tuple:
        return tuple([with_own_lists(each) for each in value])
    if type(value) is list:
        return [with_own_lists(each) for each in value]
    if type(value) is dict:
        return {key: with_own_lists(each) for key, each in value.items()}
    return value


cdef int enter_leaves(object value, list found) except -1:
    """Add the arrays of a kernel's result to a list; other values stand for themselves."""
    if type(value) is tuple or type(value) is list:
        for each in value:
            enter_leaves(each, found)
    elif isinstance(value, np.generic):
        found.append(np.asarray(value))
    elif value is not None:
        found.append(value)
    return 0


# ---------------------------------------------------------------------------------------- noting a call


@cython.final
cdef class Arguments:
    """The arguments of a call, with the arrays among them."""
    cdef dict doubles                   # {id of an array: its double}
    cdef list arrays
    cdef list inputs                    # their doubles
    cdef bint has_lists

    def __init__(self):
        self.doubles, self.arrays, self.inputs = {}, [], []

    cdef object double(self, object value):
        """The same value, with doubles in the place of its arrays; raises Hidden."""
        kind = type(value)
        if kind is cnp.ndarray:
            if id(value) not in self.doubles:
                if value.dtype.hasobject:
                    raise Hidden("an array of objects")
                self.doubles[id(value)] = double_of(value)
                self.arrays.append(value)
                self.inputs.append(self.doubles[id(value)])
            return self.doubles[id(value)]
        if isinstance(value, PLAIN):
            return value
        if kind is tuple:
            return tuple([self.double(each) for each in value])
        if kind is list or kind is dict:
            self.has_lists = True
        if kind is list:
            return [self.double(each) for each in value]
        if kind is dict:
            return {key: self.double(each) for key, each in value.items()}
        if kind is slice:
            return slice(self.double(value.start), self.double(value.stop), self.double(value.step))
        if kind is functools.partial:
            return functools.partial(self.double(value.func), *[self.double(each) for each in value.args],
                                     **{key: self.double(each) for key, each in value.keywords.items()})
        if kind is types.FunctionType:
            for cell in value.__closure__ or ():
                self.must_be_plain(cell.cell_contents)
            for each in value.__defaults__ or ():
                self.must_be_plain(each)
            return value
        if kind.__name__ in vetted.PLAIN_TYPES:
            return value
        if isinstance(value, tuple):
            if hasattr(kind, "_fields"):
                return kind(*[self.double(each) for each in value])
            self.must_be_plain(tuple(value))
            return value                            # such as a Size
        raise Hidden(f"an object of class {kind.__name__}")

    cdef int must_be_plain(self, object value) except -1:
        """Raise Hidden if a value of a function holds arrays."""
        cdef Py_ssize_t n = len(self.arrays)
        if value is not None:
            self.double(value)
        if len(self.arrays) != n:
            raise Hidden("a function that holds arrays")
        return 0


cdef object run_on_tape(object kernel, object function, tuple args, dict kwargs):
    cdef Tape tape = current_tape()
    cdef Arguments given
    cdef bint is_vetted
    cdef Py_ssize_t before, serial
    if tape is None:
        return function(*args, **kwargs)
    is_vetted = vetted.is_vetted(kernel)
    name = name_of(kernel)
    try:
        given = Arguments()
        call = given.double(functools.partial(function, **kwargs) if kwargs else function), given.double(args)
        bytes_before = [digest_of(a) for a in given.arrays]
    except Hidden as hidden:
        if not is_vetted:
            tape.refuse(f"runs a kernel that is given {hidden}", name)
        return function(*args, **kwargs)
    tape._look_at_memory()
    before, serial = len(tape.entries), tape.serial
    if not is_vetted:
        tape.depth += 1
    try:
        found = function(*args, **kwargs)
    except BaseException:
        tape.refuse("raises an error", name)
        raise
    finally:
        tape._look_at_memory()
        if not is_vetted:
            tape.depth -= 1
    if is_vetted:
        if tape.reason is None:
            if are_written(tape, found):
                return found
        elif not tape.may_be_noted_as_call:
            return found
        del tape.entries[before:]
        tape.reason = None
    note_call(tape, name, call, given, bytes_before, found, serial)
    return found


cdef bint are_written(Tape tape, object found) except -1:
    """Whether entries have written all bytes of the arrays in a result."""
    cdef list leaves = []
    cdef Py_ssize_t low, high
    cdef uintptr_t at
    cdef Block block
    enter_leaves(found, leaves)
    tape._look_at_memory()
    for array in leaves:
        if type(array) is not cnp.ndarray or cnp.PyArray_SIZE(<cnp.ndarray>array) == 0:
            continue
        span(array, &low, &high)
        at = <uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>array)
        block = tape.block_at(at + low, at + high)
        if block is None or not block.covers(at + low - block.low, at + high - block.low):
            return False
    return True


cdef str name_of(object kernel):
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    return getattr(kernel, "__name__", repr(kernel))


cdef int note_call(Tape tape, str name, tuple call, Arguments given, list before, object found, Py_ssize_t serial) except -1:
    """Note a call that has been done. `before` are digests of the inputs, `serial` counts the blocks that existed."""
    cdef Call entry = Call.__new__(Call)
    cdef Py_ssize_t i, n = len(given.arrays)
    cdef list leaves = [], fresh = []
    cdef Word* words
    cdef char** addresses
    cdef Made made
    cdef cnp.ndarray array
    cdef Block block
    cdef uintptr_t at
    enter_leaves(found, leaves)
    tape._look_at_memory()
    entry.name, entry.function, entry.args = name, call[0], call[1]
    entry.inputs, entry.constants, entry.results = given.inputs, [], []
    entry.has_lists = given.has_lists
    entry.must_run = len(leaves) == 0 or vetted.depends_on_values(name, given.arrays)
    for value in leaves:
        if type(value) in CONDITIONS:
            entry.results.append(value)
            entry.must_run = True
            continue
        if type(value) is not cnp.ndarray:
            tape.refuse("reads a value" if isinstance(value, (float, complex)) else
                        f"returns an object of class {type(value).__name__}", name)
            return 0
        array, made = value, Made(value)
        entry.results.append(made)
        if made.size == 0:
            continue
        at = <uintptr_t>cnp.PyArray_BYTES(array)
        block = tape.block_at(at + made.low, at + made.high)
        if block is None:
            tape.refuse("returns memory of unknown origin", name)
            return 0
        if block.kind == INNER_BLOCK and block.serial > serial:
            if block not in fresh:
                fresh.append(block)
            made.word, made.offset = <int>(n + fresh.index(block)), at - block.low
        else:
            for i in range(n):
                if tape.block_of(given.arrays[i]) is block:
                    made.word, made.offset = <int>i, at - <uintptr_t>cnp.PyArray_BYTES(<cnp.ndarray>given.arrays[i])
                    break
            else:
                tape.refuse("returns memory that it was not given", name)
                return 0
    entry.n_words, entry.fresh, entry.slots = n + len(fresh), [-1] * len(fresh), [-1] * len(fresh)
    words = <Word*>malloc((entry.n_words + 1) * sizeof(Word))
    addresses = <char**>malloc((entry.n_words + 1) * sizeof(char*))
    if words == NULL or addresses == NULL:
        free(words)
        free(addresses)
        raise MemoryError
    for i in range(entry.n_words):
        words[i].at = i * sizeof(char*)
        if i < n:
            array = given.arrays[i]
            addresses[i] = cnp.PyArray_BYTES(array)
            span(array, &words[i].low, &words[i].high)
            words[i].mode = mode_of(tape, array, before[i], words[i].low, words[i].high)
            if words[i].mode == READS and is_foreign(tape, addresses[i], words[i].low, words[i].high):
                entry.constants.append(array)
                words[i].high = words[i].low            # none of its bytes belong to the step
        else:
            block = fresh[i - n]
            addresses[i] = <char*>block.low
            words[i].low, words[i].high, words[i].mode = 0, block.high - block.low, WRITES
    try:
        tape.enter(NULL, name, addresses, entry.n_words * sizeof(char*), words, <int>entry.n_words, NULL, 0, entry)
    finally:
        free(words)
        free(addresses)
    return 0


cdef bint is_foreign(Tape tape, char* address, Py_ssize_t low, Py_ssize_t high) except -1:
    """Whether memory is no tensor's, and was there before the step."""
    cdef uintptr_t at = <uintptr_t>address
    return low < high and tape.block_at(at + low, at + low + 1) is None and tape.block_at(at + high - 1, at + high) is None


cdef bytes digest_of(cnp.ndarray array):
    """What changes if a byte of an array does."""
    cdef uint64_t lanes[4]
    cdef cnp.ndarray dense = array if cnp.PyArray_IS_C_CONTIGUOUS(array) else np.array(array, order="C")
    digest_bytes(cnp.PyArray_BYTES(dense), cnp.PyArray_NBYTES(dense), lanes)
    return PyBytes_FromStringAndSize(<const char*>lanes, sizeof(lanes))


cdef int mode_of(Tape tape, cnp.ndarray array, object before, Py_ssize_t low, Py_ssize_t high) except -1:
    """What a call does with an argument: it reads it, and may change it, or writes it for the first time."""
    cdef uintptr_t at = <uintptr_t>cnp.PyArray_BYTES(array)
    cdef Block block = tape.block_of(array)
    cdef bint is_changed = at in tape.changing or digest_of(array) != before
    if is_changed and block is not None and not block.covers(at + low - block.low, at + high - block.low):
        return WRITES
    return READS | SCATTERS if is_changed else READS


connect_tape(run_on_tape)


def called(kernel, *args):
    """Call a kernel from Python as its row would: its loops are noted, or the call is."""
    return run_on_tape(kernel, kernel, args, {}) if tape_open else kernel(*args)


def made_of_numbers(function, *args):
    """Call a function that makes an array of numbers alone; a replay copies what it has returned."""
    cdef Tape tape = current_tape() if tape_open else None
    if tape is None:
        return function(*args)
    tape.depth += 1
    try:
        found = function(*args)
    finally:
        tape.depth -= 1
    return noted_data(found)


@cython.final
cdef class Noted:
    """A function that looks at the values of arrays; see `noted`."""
    cdef object function
    cdef readonly str module

    def __init__(self, function):
        self.function, self.module = function, function.__module__

    @property
    def __wrapped__(self):
        return self.function

    @property
    def __name__(self):
        return self.function.__name__

    @property
    def __doc__(self):
        return self.function.__doc__

    def __call__(self, *args, **kwargs):
        if tape_open:
            return run_on_tape(self, self.function, args, kwargs)
        return self.function(*args, **kwargs)


def noted(function):
    """Let a function that looks at the values of arrays run again in each replay, which must find the same.

    It takes arrays, shapes and numbers, and returns None, or a bool, an int or a text; or raises an error.
    """
    return Noted(function)
