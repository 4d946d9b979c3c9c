"""Creation of tensors from a size or from data, and the parts shared by all functions that create tensors.

None of these functions is recorded: they create leaves. They share these keywords:
    dtype          type of the elements
    device         where to allocate the tensor: 'cpu'
    requires_grad  whether the new tensor accumulates a gradient
    out            a tensor to write into; it keeps its dtype and is resized to the result
    layout, pin_memory     accepted for compatibility with PyTorch: strided, False

Ranges and grids are in ranges.py, random numbers in random.py, and tensors that share memory with arrays in from_data.py.
"""

from numpy cimport (
    NPY_DOUBLE, NPY_FLOAT, PyArray_DATA, PyArray_DIMS, PyArray_IS_C_CONTIGUOUS, PyArray_NBYTES, PyArray_NDIM, PyArray_ZEROS,
    import_array, ndarray, npy_intp)

from numpy import iinfo

from cygrad._core.tensor.from_python cimport canonical, checked_lengths, data_array
from cygrad._core.types.dtypes cimport (
    FLOATING, as_dtype, default_dtype, dtype, dtype_of_num, dtype_of_scalar, is_float_num)
from cygrad._core.graph.dual cimport is_forward, spread
from cygrad._core.graph.observers cimport OP, WITH_OUT, Recorded, after, described, dispatched, mark_start
from cygrad._core.graph.inplace cimport check_memory, take_shape
from cygrad._core.runtime import filling
from cygrad._core.runtime.thread_state cimport INFERENCE, NO_GRAD, ThreadState, thread_state
from cygrad._core.graph.tensor cimport (
    CUT_DETACH, DISPATCHES, IS_INFERENCE, REQUIRES_GRAD, WAS_WRAPPED, Tensor, bump, cut, dtype_of, held_array,
    requires_grad as needs_grad, wrap, wrap_like)
from cygrad._core.tensor import predicates
from cygrad._core.types import memory_format as formats
from cygrad._core.types.device import check_device, default_device, defaults, place_of_device
from cygrad._kernels.cpu.base import copying
from cygrad._kernels.array_ops cimport typenum_of
from cygrad._kernels.cpu.base.arrays cimport MAXDIMS, empty as empty_array, fill, is_on_cpu
from cygrad._kernels.device.unresolved cimport behind
from cygrad._kernels.cpu.random.draw import draw
from cygrad._kernels.tape.tape cimport note_constant, noted_data, tape_open
from cygrad._kernels.device import cupy_library as gpu_library
from cygrad._library import later
from cygrad._ops.base.arguments cimport integers, require, shape_to_c, variadic

arrays = later("cygrad._kernels.gpu.base.arrays")      # needed only for GPU arrays
sparse = later("cygrad._ops.sparse.creation")           # needed only for sparse layouts
errors = later("cygrad._kernels.sparse.errors")         # likewise

import_array()


cdef object checks():
    """Return the module that parses unusual arguments and constructs error messages, importing it on first use."""
    from cygrad._ops.base.checks import creation as creation_checks  # which imports this module
    return creation_checks


# -- arguments ---------------------------------------------------------------------------------------------

cpdef tuple size_of(tuple given, dict named, str function):
    if named and (len(named) > 1 or "size" not in named):
        raise checks().unknown_keyword(function, named)
    return check_size(variadic(given, named, function, "size"), function)


cpdef tuple check_size(tuple size, str function=""):
    if size and function == "zeros" and min(size) < 0:
        raise checks().negative_length()
    return checked_lengths(size)


cpdef object number(object value, str function, str name, int position):
    if isinstance(value, (int, float, complex)):
        return value
    return checks().number(value, function, name, position)


cpdef dtype type_of_new(object wanted, object out, dtype default, str function):
    """Return the dtype of the new tensor: that of `out` if given, else the requested one, else the default."""
    cdef dtype named = None
    if wanted is not None:
        named = wanted if type(wanted) is dtype else type_named(wanted, function)
    if out is not None:
        return checks().type_of_out(out, named)
    return default if named is None else named


cdef dtype type_named(object wanted, str function):
    try:
        return as_dtype(wanted)
    except TypeError:
        raise checks().wrong_dtype(wanted, function) from None


cpdef object check_place(object device, object pin_memory, bint can_pin=False):
    cdef object index = None
    mark_start()
    if device is not None:
        index = index_of(device) if type(device) is not str or device != "cpu" else None
    elif defaults.in_use:
        index = index_of(default_device())
    if pin_memory:
        return checks().pinned_place(index, can_pin)
    return index


cdef object index_of(object device):
    return place_of_device(check_device(device))


cpdef object place_beside(Tensor t, object device, object pin_memory, bint can_pin=False):
    mark_start()
    return place_of(t) if device is None and not pin_memory else check_place(device or t.device, pin_memory, can_pin)


cpdef object place_of(Tensor t):
    if t is None:
        raise TypeError("expected a tensor, not None")
    array = behind(t.array)
    return None if is_on_cpu(array) else array.device.id


# -- memory ------------------------------------------------------------------------------------------------

cdef ndarray blank(tuple size, dtype wanted):
    cdef npy_intp[MAXDIMS] dims
    cdef int ndim = shape_to_c(size, dims)
    return empty_array(ndim, dims, wanted.num)


cpdef object blank_like(Tensor t, dtype wanted, object memory_format):
    """Allocate memory for a tensor with the shape of `t`, in the memory order of `t` unless another one is given."""
    if memory_format is not None and memory_format is not formats.preserve_format:
        memory_format.check(t.array.ndim)
        return copying.empty_in_order(t.array, memory_format.order, wanted.numpy)
    if is_on_cpu(t.array) and PyArray_IS_C_CONTIGUOUS(<ndarray>t.array):
        return empty_array(PyArray_NDIM(<ndarray>t.array), PyArray_DIMS(<ndarray>t.array), wanted.num)
    return copying.empty_like(t.array, wanted.numpy)


cdef object fitting(object value, dtype wanted):
    """Convert a number to a form that the dtype can hold. Raises RuntimeError if it cannot."""
    if (type(value) is int and 0 <= value < 128
            or type(value) is float and wanted.category == FLOATING and -6e4 < value < 6e4):
        return value
    found = copying.element(value, wanted.numpy)       # checks the range, which takes longer than all the rest
    return found.item() if tape_open and found.dtype.kind in "biufc" else found      # of the same bits, and a number


cdef bint fills = False        # whether a program asks for deterministic algorithms


def set_filling(bint on):
    """Set whether `uninitialized` fills memory."""
    global fills
    fills = on


filling.followers.append(set_filling)


cpdef object uninitialized(object array):
    """Return an array whose elements are not set; filled with NaN, True or the largest integer if `fills`."""
    cdef dtype kind
    if fills and array.size:
        kind = dtype_of_num(typenum_of(array))
        array.fill(float("nan") if kind.category >= FLOATING else kind.numpy.kind == "b" or iinfo(kind.numpy).max)
    return array


cpdef object filled(tuple size, object value, dtype wanted, object place=None):
    cdef ndarray array
    if value is not None:
        value = fitting(value, wanted)
    if place is not None:
        return arrays.filled(place, size, value, wanted.numpy)
    array = blank(size, wanted)
    if value is not None:
        fill(array, value)
    return array


# -- the new tensor ----------------------------------------------------------------------------------------

cpdef Tensor fresh(
        object array, object requires_grad, str function, Tensor model=None, object place=None, tuple given=None):
    cdef ThreadState* state = thread_state()
    cdef Recorded done
    cdef Tensor t
    if place is not None:
        array = arrays.moved(array, place)
    if function and (state.dispatching or model is not None and model.flags & DISPATCHES):
        done = described(function, OP, () if model is None else (model,), None, None)
        done.hint = given
        t = <Tensor?>dispatched(done, (wrap(array),))[0]
    else:
        t = wrap(array) if model is None else wrap_like(model, array)
    if state.modes & INFERENCE:
        t.flags |= IS_INFERENCE
    if requires_grad is not False and requires_grad is not None:
        check_grad(requires_grad, t, function)
        t.flags |= REQUIRES_GRAD
    if state.observers != NULL and function:
        after(described(function, OP, (), None, (t,)), None, state)
    return t


cpdef Tensor delivered(
        object array, object out, object requires_grad, str function, object place=None, tuple given=None):
    cdef Tensor target
    if out is None:
        return fresh(array, requires_grad, function, None, place, given)
    target = out
    if needs_grad(target) and not thread_state().modes & NO_GRAD:
        raise checks().out_requires_grad(function)
    check_memory(target)
    if requires_grad:
        check_grad(requires_grad, target, function)
    if array.shape != target.array.shape:
        take_shape(target, array, False)
    copying.copy_into(target.array, array)
    bump(target, f"{function}(out=)")
    if thread_state().observers != NULL:
        after(described(function, WITH_OUT, (), None, (target,)), None, thread_state())
    if requires_grad:
        target.flags |= REQUIRES_GRAD
    return target


cdef int check_grad(object requires_grad, Tensor t, str function) except -1:
    if type(requires_grad) is not bool or not is_float_num(typenum_of(t.array)):
        raise checks().cannot_require_grad(requires_grad, t, function)
    return 0


cpdef Tensor from_values(object data, dtype wanted, object requires_grad, str function, object place=None):
    cdef object array = held_array(<Tensor>data) if isinstance(data, Tensor) else data
    if is_forward():
        found = checks().of_samples(data, wanted, requires_grad)
        if found is not None:
            return found
    if not isinstance(array, ndarray) and gpu_library.is_array(array):
        array = arrays.move(array, place)                              # a copy, on the GPU or in main memory
        if wanted is not None:
            array = array.astype(wanted.numpy, copy=False)
        return fresh(array, requires_grad, function)
    array = data_array(data, wanted)
    if tape_open and holds_numbers(data):
        noted_data(array)
    return fresh(array, requires_grad, function, None, place)


cdef bint holds_numbers(object data) except -1:
    """Whether data consist of Python's numbers, in nested lists and tuples, and so come from what guards compare."""
    if isinstance(data, (list, tuple)):
        for each in data:
            if not holds_numbers(each):
                return False
        return True
    return isinstance(data, (int, float, complex))


cpdef Tensor sharing(ndarray array):
    cdef Tensor t = fresh(canonical(array).view(), False, "")       # a view: its owner may change the shape of `array`
    t.flags |= WAS_WRAPPED
    return t


# -- from data ---------------------------------------------------------------------------------------------

def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """Create a leaf tensor with a copy of `data`: a number, nested sequences, an array or a tensor.

    Without `dtype`, Python floats get the default float dtype, ints int64, and bools bool; arrays keep their dtype.

    Raises ValueError for ragged sequences, TypeError or RuntimeError for non-numbers and for numbers that the dtype cannot
    hold, and RuntimeError for requires_grad with a dtype that has no gradients.

    >>> import cygrad
    >>> cygrad.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> cygrad.tensor(0.5, dtype=cygrad.float64, requires_grad=True)
    tensor(0.5000, dtype=torch.float64, requires_grad=True)
    """
    place = check_place(device, pin_memory, True)
    if not isinstance(data, Tensor):
        data = gpu_library.taken(data)
    if isinstance(data, Tensor):
        checks().warn_copy("torch.tensor(sourceTensor)")
        if place is None and device is None:
            place = place_of(<Tensor>data)
    elif device is None and place is None and gpu_library.is_array(data):
        place = data.device.id
    found = from_values(data, type_of_new(dtype, None, None, "tensor"), requires_grad, "tensor", place)
    if type(data) is list and data:
        data = data[0]
    if isinstance(data, Tensor):
        cut(found, data, CUT_DETACH, "torch.tensor")
    return found


# -- filled ------------------------------------------------------------------------------------------------

cpdef bint is_sparse_layout(object layout, str function) except -1:
    """Whether a layout is not `strided`; raises TypeError for anything else than a layout."""
    if type(layout) is not predicates.layout:
        raise TypeError(f"{function}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    return layout is not predicates.strided


cpdef bint only_strided(object layout, str function, object out=None, object device=None) except -1:
    """Raise an error if a function that makes dense tensors alone is asked for another layout, or for what `out` is not."""
    if out is not None:
        checks().check_out(out, layout, device, function)
    if layout is not None and is_sparse_layout(layout, function):
        raise errors.not_made(function, layout._name)
    return False


def zeros(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **named):
    """Return a tensor of zeros. `size` is given as ints or as one sequence.

    >>> import cygrad
    >>> cygrad.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    cdef npy_intp[MAXDIMS] dims
    cdef int ndim
    if out is not None:
        checks().check_out(out, layout, device, "zeros")
    if layout is not None and is_sparse_layout(layout, "zeros"):
        return sparse.new_zeros_in(layout, size_of(size, named, "zeros"), dtype, device, requires_grad)
    place = check_place(device, pin_memory, True)
    wanted = type_of_new(dtype, out, default_dtype(), "zeros")
    if place is not None:
        return delivered(filled(size_of(size, named, "zeros"), 0, wanted, place), out, requires_grad, "zeros")
    ndim = shape_to_c(size_of(size, named, "zeros"), dims)
    array = PyArray_ZEROS(ndim, dims, wanted.num, 0)
    if tape_open:
        note_constant(PyArray_DATA(<ndarray>array), b"\0", 1, PyArray_NBYTES(<ndarray>array))
    return delivered(array, out, requires_grad, "zeros")


def ones(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **named):
    """Return a tensor of ones. `size` is given as ints or as one sequence.

    >>> import cygrad
    >>> cygrad.ones(2, dtype=cygrad.int64)
    tensor([1, 1])
    """
    if out is not None:
        checks().check_out(out, layout, device, "ones")
    if layout is not None and is_sparse_layout(layout, "ones"):
        raise RuntimeError("full(...) is not implemented for sparse layout")
    place = check_place(device, pin_memory, True)
    wanted = type_of_new(dtype, out, default_dtype(), "ones")
    return delivered(filled(size_of(size, named, "ones"), 1, wanted, place), out, requires_grad, "ones")


def empty(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
          memory_format=None, **named):
    """Return an uninitialized tensor. `size` is given as ints or as one sequence.

    >>> import cygrad
    >>> cygrad.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if out is not None:
        checks().check_out(out, layout, device, "empty")
    if layout is not None and is_sparse_layout(layout, "empty"):
        return sparse.new_zeros_in(layout, size_of(size, named, "empty"), dtype, device, requires_grad)
    place = check_place(device, pin_memory, True)
    wanted = type_of_new(dtype, out, default_dtype(), "empty")
    shape = size_of(size, named, "empty")
    if out is not None and out.shape == shape:
        return delivered((<Tensor>out).array, out, requires_grad, "empty")      # which keeps its elements
    array = filled(shape, None, wanted, place)
    if memory_format is not None:
        array = blank_like(wrap(array), wanted, memory_format)
    return delivered(uninitialized(array), out, requires_grad, "empty")


def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Return a tensor filled with `fill_value`, of the type of the value unless `dtype` is given.

    Raises RuntimeError if the dtype cannot hold the value.

    >>> import cygrad
    >>> cygrad.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if out is not None:
        checks().check_out(out, layout, device, "full")
    if layout is not None and is_sparse_layout(layout, "full"):
        raise RuntimeError("full(...) is not implemented for sparse layout")
    place = check_place(device, pin_memory, True)
    value = number(fill_value, "full", "fill_value", 2)
    wanted = type_of_new(dtype, out, dtype_of_scalar(value), "full")
    array = filled(check_size(integers(size, "full", "size", 1)), value, wanted, place)
    return delivered(array, out, requires_grad, "full")


# -- like another ------------------------------------------------------------------------------------------

def zeros_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
               memory_format=None):
    """Return zeros with the shape, dtype and memory order of `input`, unless keywords override these.

    >>> import cygrad
    >>> cygrad.zeros_like(cygrad.tensor([1, 2]))
    tensor([0, 0])
    """
    if layout is not None and is_sparse_layout(layout, "zeros_like"):
        return sparse_like(input, dtype, layout, device, requires_grad, "zeros_like")
    return like(input, 0, dtype, device, pin_memory, requires_grad, memory_format, "zeros_like")


def ones_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
              memory_format=None):
    """Return ones with the shape, dtype and memory order of `input`, unless keywords override these.

    >>> import cygrad
    >>> cygrad.ones_like(cygrad.tensor([5.0, 6.0]))
    tensor([1., 1.])
    """
    only_strided(layout, "ones_like")
    return like(input, 1, dtype, device, pin_memory, requires_grad, memory_format, "ones_like")


def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
              memory_format=None):
    """Return a tensor filled with `fill_value`, with the shape, dtype and memory order of `input` unless overridden.

    Raises RuntimeError if the dtype cannot hold the value.

    >>> import cygrad
    >>> cygrad.full_like(cygrad.tensor([1.0, 2.0]), 7)
    tensor([7., 7.])
    """
    only_strided(layout, "full_like")
    return like(input, number(fill_value, "full_like", "fill_value", 2), dtype, device, pin_memory, requires_grad,
                memory_format, "full_like")


def empty_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
               memory_format=None):
    """Return an uninitialized tensor with the shape, dtype and memory order of `input`, unless keywords override these.

    >>> import cygrad
    >>> cygrad.empty_like(cygrad.tensor([1, 2])).dtype
    torch.int64
    """
    only_strided(layout, "empty_like")
    return like(input, None, dtype, device, pin_memory, requires_grad, memory_format, "empty_like")


cdef Tensor sparse_like(object input, object dtype_given, object layout, object device, object requires_grad, str function):
    cdef Tensor t = require(input, function)
    wanted = dtype_of(t) if dtype_given is None else dtype_given
    return sparse.new_zeros_in(layout, t.shape, wanted, device or t.device, requires_grad)


cdef Tensor like(object input, object value, object dtype_given, object device, object pin_memory,
                 object requires_grad, object memory_format, str function):
    cdef Tensor t = require(input, function)
    place = place_beside(t, device, pin_memory, True)
    wanted = type_of_new(dtype_given, None, dtype_of(t), function)
    if place == gpu_library.META and is_on_cpu(t.array):
        array = blank_like(wrap(arrays.moved(t.array, place)), wanted, memory_format)
        return fresh(array, requires_grad, function, t)
    if place != place_of(t):
        return fresh(filled(t.array.shape, value, wanted, place), requires_grad, function, t)
    array = blank_like(t, wanted, memory_format)
    if value is not None:
        value = fitting(value, wanted)
        if is_on_cpu(array):
            fill(<ndarray>array, value)
        else:
            array.fill(value)
    else:
        array = uninitialized(array)
    out = fresh(array, requires_grad, function, t)
    spread(t, out)
    return out


# -- random numbers ----------------------------------------------------------------------------------------

cpdef Tensor drawn_in_memory(str function, tuple source, int what, tuple size, dict named, object dtype_given,
                             object requires_grad):
    """Draw a float32 or float64 tensor; `source` is (kernels, numbers). Returns None for other dtypes."""
    cdef dtype wanted = type_of_new(dtype_given, None, default_dtype(), function)
    if wanted.num != NPY_FLOAT and wanted.num != NPY_DOUBLE:
        return None
    array = blank(size_of(size, named, function), wanted)
    return fresh(draw(source[1], array, what), requires_grad, function)


functions = {name: globals()[name] for name in
             "tensor zeros ones empty full zeros_like ones_like full_like empty_like".split()}
