"""What a captured step reads anew in each run: random numbers, and the numbers that optimizers keep in dictionaries.

While a step is being noted, `numbers_of` gives the kernel that runs next an array of the numbers that it returns. The
loops that this kernel notes point to the array, and each run begins with filling it again. So a schedule may change a
rate between calls. A number that decides what an optimizer does must stay zero, positive or negative as it was.
"""

cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport Tensor
from cygrad._kernels.cpu.optim.rows cimport announce
from cygrad._kernels.tape.tape cimport tape_open
from cygrad._kernels.tape.tape import is_open

import numpy as np

from cygrad._library import later

host_numbers = later("cygrad._kernels.gpu.optim.host_numbers")     # needed only while a step is captured on a GPU

cnp.import_array()

cdef bint _on_gpu = False       # whether a step is captured on a GPU, in any thread
cdef list _found = None         # of the step that is being noted


cdef class Live:
    """Something outside of a captured step that each run reads anew, and may change."""

    cdef bint refresh(self) noexcept:
        """Read it again, before a run; return False if the step would not be the same with it."""
        return True

    cdef int done(self) except -1:
        """Change it as the step does, after a run."""
        return 0

    cdef object saved(self):
        """Return what a run will change, for `restore`."""
        return None

    cdef int restore(self, object state) except -1:
        """Undo what runs have changed since `saved`, without `done`."""
        return 0


cdef list followed():
    return _found if tape_open and is_open() else None


cdef class Numbers(Live):
    """The numbers under some names in a dictionary; see the head of this file."""

    def __init__(self, dict owner not None, tuple names not None, list values not None):
        self.owner, self.names, self.tensors = owner, names, []
        self.memory = np.array(values, np.float64)
        self.keys = tuple([name for name in names if is_followed(owner[name])])
        self.counts = tuple([len(owner[name]) if isinstance(owner[name], (tuple, list)) else 0 for name in names])
        for name in self.keys:
            for value in owner[name] if isinstance(owner[name], tuple) else (owner[name],):
                if isinstance(value, Tensor):
                    self.tensors.append(value)

    def __str__(self):
        return ", ".join(self.keys)

    cdef bint refresh(self) noexcept:
        cdef double* to = <double*>cnp.PyArray_DATA(<cnp.ndarray>self.memory)
        cdef Py_ssize_t i, k, count
        cdef PyObject* found
        for i in range(len(self.names)):
            name, count = self.names[i], self.counts[i]
            if name in self.keys:
                found = PyDict_GetItem(self.owner, name)
                if found == NULL:
                    return False
                if count == 0:
                    if not _replace(<object>found, to, name != "lr"):
                        return False
                elif type(<object>found) is not tuple or len(<tuple>found) != count:
                    return False
                for k in range(count):
                    if not _replace((<tuple>found)[k], to + k, True):
                        return False
            to += max(count, 1)
        return True


cdef bint _replace(value, double* number, bint decides) noexcept:
    """Replace a number by a value, if that is one; it must keep its sign if it decides what is done."""
    cdef double found = 0
    if not _read(value, &found) or decides and _sign(found) != _sign(number[0]):
        return False
    number[0] = found
    return True


cdef bint is_followed(value) except -1:
    """Whether a value may be another one in the next call."""
    cdef double number
    if type(value) is tuple:
        return all([type(item) is not tuple and is_followed(item) for item in value])
    return _read(value, &number)


cdef bint _read(value, double* number) noexcept:
    """Read a number, or the element of a tensor; return False for what is neither."""
    cdef cnp.ndarray array
    try:
        if isinstance(value, float) or type(value) is int:
            number[0] = value
            return True
        if type(value) is not Tensor or type((<Tensor>value).array) is not cnp.ndarray:
            return False
        array = (<Tensor>value).array
        if cnp.PyArray_SIZE(array) != 1 or not (<object>array).flags.aligned:
            return False
        if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
            number[0] = (<float*>cnp.PyArray_DATA(array))[0]
            return True
        if cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE:
            number[0] = (<double*>cnp.PyArray_DATA(array))[0]
            return True
    except Exception:           # an int that is too large
        pass
    return False


cdef inline int _sign(double value) noexcept:
    return 2 if value != value else (value > 0) - (value < 0)


def numbers_of(dict owner not None, *names):
    """Return the numbers under these names as floats, those in tuples one by one.

    While a step is being noted, the kernel that runs next gets them as numbers that may change between calls.
    """
    cdef list values = []
    cdef double number = 0
    cdef list lives = followed()
    cdef bint is_noted = lives is not None
    if _on_gpu:
        work = host_numbers.following()
        if work is not None:
            return numbers_on_gpu(work, owner, names)
    for name in names:
        value = owner[name]
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if is_noted and _read(item, &number):       # `float` of a tensor would end the capture
                values.append(number)
            else:
                values.append(float(item))
    if is_noted:
        announce(_memory_of(lives, owner, names, values))
    return values


def follow_on_gpu(work):
    """Have `work`, or nothing any more, follow the numbers of this thread's optimizers; return what did before."""
    global _on_gpu
    _on_gpu = work is not None
    return host_numbers.follow(work)


cdef list numbers_on_gpu(work, dict owner, tuple names):
    """The numbers under these names, as those that `work` follows."""
    cdef list values = []
    for name in names:
        value = owner[name]
        is_tuple = type(value) is tuple
        if type(value) is list or not is_followed(held(value)):
            values.extend([float(item) for item in (value if isinstance(value, (tuple, list)) else (value,))])
            continue
        for i in range(len(value) if is_tuple else 1):
            read = reader(owner, name, i if is_tuple else -1, len(value) if is_tuple else 0)
            values.append(work.number(read(), (owner, name), read))
    return values


def reader(dict owner, name, Py_ssize_t i, Py_ssize_t count):
    """A function that reads a number as it is now: the item `i` of the tuple under a name, or, for -1, what is there
    itself. It must keep its sign if it decides what is done."""
    first = None

    def read():
        nonlocal first
        cdef double number = 0
        value = owner.get(name)
        if i >= 0:
            if type(value) is not tuple or len(value) != count:
                raise host_numbers.Changed(f"{name} is of another kind")
            value = value[i]
        if not _read(held(value), &number) or first is not None and name != "lr" and _sign(number) != _sign(first):
            raise host_numbers.Changed(f"{name} is of another kind or sign")
        if first is None:
            first = number
        return number

    return read


cdef object held(value):
    """A value, or the number in a tensor whose array is away while the step is captured."""
    if type(value) is tuple:
        return tuple([held(item) for item in value])
    if type(value) is Tensor and type((<Tensor>value).array) is host_numbers.Absent:
        return float((<Tensor>value).array.held.item())
    return value


cdef object _memory_of(list lives, dict owner, tuple names, list values):
    """The array of these numbers, which all parameters of a group share."""
    cdef Numbers made
    for each in lives:
        if type(each) is Numbers:
            made = each
            if made.owner is owner and made.names == names and made.memory.tolist() == values:
                return made.memory
    made = Numbers(owner, names, values)
    lives.append(made)
    return made.memory


def begin():
    """A step begins to be noted: collect what it reads anew."""
    global _found
    _found = []


def end():
    """Return what the step that was noted reads anew, a list of `Live`."""
    global _found
    found = _found
    _found = None
    return found
