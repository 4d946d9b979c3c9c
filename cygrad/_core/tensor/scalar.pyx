"""Converts one-element tensors to Python numbers: `item()`, `float(t)`, `if t`, `range(t)`."""

from cpython.object cimport PyObject
from numpy cimport PyArray_SIZE, ndarray

from cygrad._core.graph.dual cimport check_read, is_forward
from cygrad._core.types.dtypes cimport INTEGRAL, category_of_num
from cygrad._core.runtime.thread_state cimport current_site, thread_state
from cygrad._core.graph.tensor cimport DISPATCHES, Tensor, dispatched_call, requires_grad
from cygrad._kernels.cpu.base.arrays cimport value_of
from cygrad._kernels.tape.tape cimport tape_open


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef extern from "frames.h":
    ctypedef struct cygrad_frame
    cygrad_frame* cygrad_current_frame() noexcept
    PyObject* cygrad_frame_code(cygrad_frame*) noexcept


cdef inline Py_ssize_t size_of(Tensor t, bint in_condition=False) except -1:
    if is_forward():
        check_read(t, in_condition)
    if type(t.array) is ndarray:
        return PyArray_SIZE(<ndarray>t.array)
    return t.array.size


cdef str shape_hint(Tensor t):
    return (f"\n  this one has shape {tuple(t.array.shape)}: reduce it first, as in t.sum() or t.mean(), pick an "
            "element, as in t[0], or get them all with t.tolist()")


_last_item = [None]         # (value, code, offset); a list, since replacing its item is atomic


cdef object _collector = None      # see `collect_by`
cdef unsigned long _collecting = 0  # the thread whose numbers are collected


def collect_by(function):
    """Have `function(tensor, reader)` called before a number is read in this thread, by `item`, `float`, `int` or `tolist`.
    It may return the number in a tuple; else None. Return the function that was called before."""
    global _collector, _collecting
    former = _collector
    _collector, _collecting = function, PyThread_get_thread_ident()
    return former


cdef inline bint is_collected() noexcept:
    return _collector is not None and _collecting == PyThread_get_thread_ident()


def collected(t, reader):
    """Return what the collector of this thread has returned, or None."""
    return _collector(t, reader) if is_collected() else None


cdef object value_in(Tensor t, str reader=None):
    """Return the only element, as modes and classes of `__torch_dispatch__` have it."""
    if t.flags & DISPATCHES or thread_state().dispatching:
        return dispatched_call("item", t, None)
    if reader is not None and is_collected() and type(t.array) is ndarray:
        found = _collector(t, reader)
        if found is not None:
            return found[0]
    if tape_open and type(t.array) is ndarray and category_of_num(t.array.dtype.num) <= INTEGRAL:
        return decisions().whole_number(t.array)
    return value_of(t.array)


cdef object decisions():
    """Return the module that has a captured step test its conditions again."""
    from cygrad._kernels.tape import conditions     # needed only to compile

    return conditions


cdef object noted(Tensor t, str reader):
    """Return the only element. If that ends a gradient, remember the site for `cuts.why_no_grad`."""
    cdef int lasti
    value = value_in(t, reader)
    if requires_grad(t):
        code = current_site(&lasti)
        _last_item[0] = (value, code, lasti)
        if code is not None and cygrad_frame_code(cygrad_current_frame()) != <PyObject*>code:
            _check_reader(t)
    return value


cdef int _check_reader(Tensor t) except -1:
    """Raise if a function of ours reads the value of its argument, which ends the gradient silently."""
    from cygrad._core.diagnostics.constant_arguments import check_not_argument  # which few programs need

    check_not_argument(t)
    return 0


cdef object item(Tensor t):
    if size_of(t) != 1:
        raise RuntimeError(f"a Tensor with {t.array.size} elements cannot be converted to Scalar{shape_hint(t)}")
    return noted(t, "item")


def last_item():
    """Return (value, code, offset) of the last read by `item()` or `float()` of a tensor that requires grad, or None."""
    return _last_item[0]


cdef object only_value(Tensor t, str reader=None):
    if size_of(t) != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars{shape_hint(t)}")
    return noted(t, reader)


cdef bint truth(Tensor t) except -1:
    cdef Py_ssize_t size = size_of(t, True)
    if size == 1:
        if tape_open and type(t.array) is ndarray and not t.flags & DISPATCHES and not thread_state().dispatching:
            return decisions().is_true(t.array)
        return bool(value_in(t))
    if size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError(
        "Boolean value of Tensor with more than one value is ambiguous\n"
        f"  this one has shape {tuple(t.array.shape)}: write t.any() or t.all(); to combine conditions elementwise, "
        "& and | instead of `and` and `or`")


cdef object real_value(Tensor t, str c_type, str reader=None):
    value = only_value(t, reader)
    if type(value) is complex:
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to type {c_type} without overflow\n"
                               f"  {value} has an imaginary part: take t.real, t.imag or t.abs() first")
        return value.real
    return value


cdef object as_float(Tensor t):
    return float(real_value(t, "double", None if requires_grad(t) else "float"))    # else eager steps warn


cdef object as_int(Tensor t):
    return int(real_value(t, "int64_t", "int"))


cdef object as_complex(Tensor t):
    return complex(only_value(t))


cdef object as_index(Tensor t):
    if size_of(t) != 1 or category_of_num(t.array.dtype.num) > INTEGRAL:
        raise TypeError(
            "only integer tensors of a single element can be converted to an index\n"
            f"  this one has shape {tuple(t.array.shape)} and elements of {t.array.dtype}")
    return int(value_in(t))
