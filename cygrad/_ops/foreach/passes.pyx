"""Functions of lists of tensors in one compiled pass, for calls in which nothing can go wrong half way.

`functions.py` tries these first. Each looks at all tensors, and returns None if the plain path is to take the call: for
numbers of other kinds, mixed dtypes, shapes that broadcast, tensors elsewhere than in memory, and modes. Otherwise it
calls the op for one tensor after the other, without Python between them; so gradients and versions are those of the op.
"""

from numpy cimport ndarray, PyArray_CHKFLAGS, PyArray_DATA, PyArray_NBYTES, PyArray_SAMESHAPE, PyArray_TYPE
from numpy cimport NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, NPY_FLOAT16

from cygrad._core.types.dtypes cimport FLOATING, category_of_num
from cygrad._core.graph.inplace import check_changes
from cygrad._core.graph.opdef cimport OpDef
from cygrad._core.graph.record cimport apply1, apply2, apply_n
from cygrad._core.graph.tensor cimport DISPATCHES, IS_INFERENCE, IS_VOLATILE, Tensor, bump, requires_grad
from cygrad._core.runtime.thread_state cimport NO_GRAD, ThreadState, is_recording, thread_state
from cygrad._kernels.cpu.base.arrays cimport is_on_cpu
from cygrad._ops.base.arithmetic cimport add, div, mul, sub


cdef bint is_plain(object value) noexcept:
    """Whether this is a tensor in memory, of floating-point numbers, whose class has no say."""
    if not isinstance(value, Tensor) or (<Tensor>value).flags & (DISPATCHES | IS_VOLATILE):
        return False
    array = (<Tensor>value).array
    return is_on_cpu(array) and category_of_num(PyArray_TYPE(<ndarray>array)) == FLOATING and (
        PyArray_TYPE(<ndarray>array) < 256)


cdef bint is_alike(Tensor a, object other) noexcept:
    """Whether this is a plain tensor of the same shape and dtype."""
    if not is_plain(other):
        return False
    cdef ndarray xa = <ndarray>a.array, xb = <ndarray>(<Tensor>other).array
    return PyArray_TYPE(xa) == PyArray_TYPE(xb) and PyArray_SAMESHAPE(xa, xb)


cdef bint are_plain(object tensors) noexcept:
    if type(tensors) is not list and type(tensors) is not tuple or not len(tensors):
        return False
    for value in tensors:
        if not is_plain(value):
            return False
    return True


cdef bint are_alike(object tensors, object others) noexcept:
    cdef Py_ssize_t i
    if type(others) is not list and type(others) is not tuple or len(others) != len(tensors):
        return False
    for i in range(len(tensors)):
        if not is_alike(<Tensor>tensors[i], others[i]):
            return False
    return True


cdef inline bint is_number(object value) noexcept:
    return type(value) is float or type(value) is int


def unary(OpDef row not None, tensors, bint in_place):
    """Return the results of an op with one operand; `row` is that of an op whose entry point only calls it."""
    cdef list found = []
    if not are_plain(tensors):
        return None
    if in_place:
        check_changes(tensors, row.in_place)
    for t in tensors:
        found.append(apply1(row, t, t if in_place else None))
    return found


def binary(OpDef row not None, tensors, other, alpha, bint in_place):
    """Return the results of `add`, `sub`, `mul` or `div` with a number, a list of numbers or one of tensors."""
    cdef list found = []
    cdef Py_ssize_t i
    cdef bint one = is_number(other), by_number = one
    cdef Tensor t, out
    if not are_plain(tensors):
        return None
    if not one:
        by_number = (type(other) is list or type(other) is tuple) and len(other) == len(tensors) and is_number(other[0])
        if by_number:
            for value in other:
                if not is_number(value):
                    return None
        elif not are_alike(tensors, other):
            return None
    if not is_number(alpha) or by_number and alpha != 1:
        return None
    if in_place:
        check_changes(tensors, row.in_place)
    kind = row.name
    for i in range(len(tensors)):
        t = tensors[i]
        value = other if one else other[i]
        out = t if in_place else None
        if kind == "add":
            found.append(add(t, value, alpha, out))
        elif kind == "sub":
            found.append(sub(t, value, alpha, out))
        elif kind == "mul":
            found.append(mul(t, value, out))
        else:
            found.append(div(t, value, out))
    return found


def limit(OpDef row not None, tensors, other, bint in_place):
    """Return the results of an op of two tensors that only calls its ufunc, such as `maximum`."""
    cdef list found = []
    cdef Py_ssize_t i
    if row.ufunc is None or not are_plain(tensors) or not are_alike(tensors, other):
        return None
    if in_place:
        check_changes(tensors, row.in_place)
    for i in range(len(tensors)):
        found.append(apply2(row, tensors[i], other[i], tensors[i] if in_place else None))
    return found


cdef bint is_apart(ndarray a, ndarray b) noexcept:
    """Whether two arrays without gaps share no memory, or all of it."""
    cdef char* start = <char*>PyArray_DATA(a)
    cdef char* other = <char*>PyArray_DATA(b)
    return start == other or start + PyArray_NBYTES(a) <= other or other + PyArray_NBYTES(b) <= start


cdef bint may_write(Tensor t, tuple operands) noexcept:
    """Whether a kernel may write into the memory of `t` while it reads these operands."""
    cdef ndarray a = <ndarray>t.array, b
    if t.flags & IS_INFERENCE or not PyArray_CHKFLAGS(a, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_WRITEABLE):
        return False
    for value in operands:
        b = <ndarray>(<Tensor>value).array
        if not PyArray_CHKFLAGS(b, NPY_ARRAY_C_CONTIGUOUS) or not is_apart(a, b):
            return False
    return True


def weighted(OpDef row not None, tensors, tuple others, number, bint in_place):
    """Return the results of an op of several tensors and a number, such as `addcmul`; its kernel takes `out`."""
    cdef list found = []
    cdef Py_ssize_t i
    cdef Tensor t
    cdef tuple rest
    cdef ThreadState* state = thread_state()
    if not is_number(number) or not are_plain(tensors):
        return None
    for other in others:
        if not are_alike(tensors, other):
            return None
    if not in_place:
        for i in range(len(tensors)):
            found.append(apply_n(row, (tensors[i], *[other[i] for other in others]), (number,), None))
        return found
    if state.modes & ~NO_GRAD or state.observers != NULL or state.watch or state.on_write != NULL:
        return None
    for i in range(len(tensors)):
        t = tensors[i]
        rest = tuple([other[i] for other in others])
        if PyArray_TYPE(<ndarray>t.array) == NPY_FLOAT16 or not may_write(t, rest):     # kernels compute in float32
            return None
        if is_recording():
            for value in (t, *rest):
                if requires_grad(<Tensor>value):
                    return None
    check_changes(tensors, row.in_place)
    kernel = row.kernel
    for i in range(len(tensors)):
        t = tensors[i]
        kernel(t.array, *[(<Tensor>other[i]).array for other in others], number, out=t.array)
        bump(t, row.in_place)
    return tensors


def alike(tensors, others):
    """Whether each tensor of a list is plain, and of the shape and dtype of that in the other list."""
    return are_plain(tensors) and are_alike(tensors, others)
