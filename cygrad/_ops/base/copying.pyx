"""Copies, conversions, and in-place writes."""

from libc.string cimport memset
from numpy cimport PyArray_DATA, PyArray_ISONESEGMENT, PyArray_ISWRITEABLE, PyArray_NBYTES, ndarray

import numpy as np

from cygrad._core.types.dtypes cimport COMPLEX, FLOATING, INTEGRAL, as_dtype, dtype, is_float_num
from cygrad._core.graph.opdef cimport FUNCTION_ONLY, LINEAR, MAY_OVERLAP, METHOD_ONLY, PRIVATE, OpDef, OpNode, op, variant
from cygrad._core.graph.opdef import publish
from cygrad._core.graph.record cimport begin_write, end_write, record1, record2
from cygrad._core.graph.tensor cimport Tensor, dtype_of, held_array, wrap
from cygrad._core.types import memory_format as formats
from cygrad._core.errors import messages
from cygrad._core.types.device import cpu_device, device as device_class, place_of_device
from cygrad._core.types.dtypes import dtype as dtype_class, dtype_named
from cygrad._kernels.tape.tape cimport note_constant, tape_open
from cygrad._kernels.cpu.base import copying as kernels
from cygrad._kernels.array_ops cimport cast, is_contiguous, may_overlap, typenum_of, zeros_beside
from cygrad._kernels.cpu.base.arrays cimport dense_copy, is_on_cpu
from cygrad._kernels.device.unresolved cimport behind, is_unresolved, resolved
from cygrad._kernels.device.waiting cimport settle
from cygrad._kernels.cpu.base.view_geometry cimport overlaps_itself
from cygrad._ops.base.arguments cimport broadcast_shape, require
from cygrad._ops.base.checks import copying as checks
from cygrad._library import later

gpu_arrays = later("cygrad._kernels.gpu.base.arrays")              # both are needed only for GPU arrays
pinned_memory = later("cygrad._kernels.gpu.runtime.pinned_memory")


# -- clone, contiguous -------------------------------------------------------------------------------------

cdef object same_rule(OpNode n, object g):
    return g

cdef OpDef CLONE = op("clone", same_rule).row(flags=LINEAR, kernel=kernels.copy)

cpdef Tensor clone(object input, object memory_format=None):
    """Return a copy, with the same memory order unless `memory_format` is given. Saves nothing. Gradient: g.

    >>> import cygrad
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> y = x.clone()
    >>> y[0] = 5
    >>> x
    tensor([1., 2.])
    """
    cdef Tensor t = require(input, "clone")
    if memory_format is None:
        memory_format = formats.preserve_format
    return record1(CLONE, copied(t, memory_format), t, None)


cdef object copied(Tensor t, object memory_format):
    if memory_format is formats.preserve_format:
        found = dense_copy(t.array)
        return kernels.copy(t.array) if found is None else found
    return kernels.copy_in_order(t.array, formats.order_of(memory_format, t.array.ndim, "clone"))


cpdef Tensor contiguous(object input, object memory_format=None):
    """Return the tensor itself if it is contiguous in row-major order, else a contiguous copy.

    `memory_format` selects another memory order. Gradient: g.

    >>> import cygrad
    >>> x = cygrad.ones(2, 3).t()
    >>> x.stride(), x.contiguous().stride()
    ((1, 3), (2, 1))
    """
    cdef Tensor t = require(input, "contiguous")
    if memory_format is None or memory_format is formats.contiguous_format:
        if is_contiguous(t.array):
            return t
        return record1(CLONE, kernels.contiguous(t.array), t, None)
    order = formats.order_of(memory_format, t.array.ndim, "contiguous")
    if memory_format is formats.preserve_format or kernels.is_in_order(t.array, order):
        return t
    return record1(CLONE, kernels.copy_in_order(t.array, order), t, None)


# -- to ----------------------------------------------------------------------------------------------------

cdef object to_rule(OpNode n, object g):
    return g if n.arguments is None else moved(g, n.arguments[0], None, None)

cdef OpDef TO = op("to", to_rule).row(flags=LINEAR | METHOD_ONLY, node="ToCopyBackward0",
    advice="convert only to floating-point types; integers are for indices")
cdef OpDef TO_INTEGER = variant(TO)


def to(self, *args, dtype=None, device=None, other=None, non_blocking=False, copy=False, memory_format=None):
    """Convert this tensor to another dtype or device, or to those of `other`; returns itself if nothing changes.

    Signatures: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`. `copy=True` always copies. Saves nothing.
    Gradient: g, converted back; none from a floating-point to an integer dtype. With `non_blocking=True`, the CPU does not
    wait for transfers from pinned memory, nor for transfers to the CPU, whose result is valid only after a `synchronize`.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).to(cygrad.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    cdef Tensor t = require(self, "to")
    cdef object one = args[0] if len(args) == 1 and device is None else device if not args else None
    if (other is None and dtype is None and device is None and type(one) is dtype_class
            and type(non_blocking) is bool and type(copy) is bool):
        dtype = one
    elif other is not None or dtype is not None or type(copy) is not bool or not is_where(t, one):
        dtype, device, non_blocking, copy = checks.read_to(args, dtype, device, other, non_blocking, copy)
        if device is not None and device != t.device:
            return moved(t, device, dtype, memory_format, non_blocking)
    return converted_or_copied(t, dtype_of(t) if dtype is None else dtype, copy, memory_format)


cdef bint is_where(Tensor t, object device):
    """Whether a tensor is in main memory and `device` is the CPU, the most common case."""
    return is_on_cpu(t.array) and (device is cpu_device or type(device) is str and device == "cpu" or (
        type(device) is device_class and device.type == "cpu" and device.index is None))


cdef Tensor moved(Tensor t, object device, object wanted, object memory_format, object non_blocking=False):
    """Copy to another device, and to another dtype if one is given. Gradient: g, moved back."""
    array = gpu_arrays.move(resolved(t.array), place_of_device(device), non_blocking)
    result = record1(TO if is_float_num(typenum_of(array)) else TO_INTEGER, array, t, (t.device,))
    return converted_or_copied(result, dtype_of(t) if wanted is None else wanted, False, memory_format)


cdef Tensor converted_or_copied(Tensor t, dtype wanted, bint copy, object memory_format):
    cdef Tensor result
    if memory_format is not None and memory_format is not formats.preserve_format:
        return ordered(t, wanted, copy, memory_format)
    if wanted is not dtype_of(t):
        result = converted(t, wanted)
    elif copy:
        result = record1(TO, kernels.copy(t.array), t, None)
    else:
        result = t
    return result


cdef Tensor ordered(Tensor t, dtype wanted, bint copy, object memory_format):
    """Convert to a dtype and a memory format; as PyTorch does, keep a tensor whose steps already suggest the format."""
    order = formats.order_of(memory_format, t.array.ndim, "to")
    if wanted is dtype_of(t) and not copy and formats.suggested(t.array) is memory_format:
        return t
    cdef Tensor result = converted(t, wanted)
    array = kernels.copy_in_order(result.array, order)
    return record1(TO if wanted.category >= FLOATING else TO_INTEGER, array, result, None)


cdef int warn_of_lost_part(Tensor source, dtype target) except -1:
    """Warn if complex numbers lose their imaginary part by conversion to a real dtype other than bool."""
    if dtype_of(source).category == COMPLEX and target.category in (INTEGRAL, FLOATING):
        messages.warn_imaginary_lost()
    return 0


cdef Tensor converted(Tensor t, dtype wanted):
    if t.array.dtype.num == wanted.num:
        return t
    warn_of_lost_part(t, wanted)
    settle()
    array = cast(t.array.copy("C") if overlaps_itself(t.array) else held_array(t), wanted.num)
    return record1(TO if wanted.category >= FLOATING else TO_INTEGER, array, t, None)


def type_as(self, other):
    """Convert this tensor to the dtype and device of `other`; return it itself if it has both. Gradient: g, converted back.

    >>> import cygrad
    >>> cygrad.ones(2).type_as(cygrad.tensor([1]))
    tensor([1, 1])
    """
    return to(require(self, "type_as"), require(other, "type_as", "other"))


def type_(self, dtype=None, non_blocking=False):
    """Return the legacy type name of this tensor, such as 'torch.FloatTensor'; with `dtype`, convert this tensor to it.

    `dtype` may be such a name. Raises ValueError for an unknown name.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> x.type(), x.type('torch.IntTensor').dtype
    ('torch.FloatTensor', torch.int32)
    """
    cdef Tensor t = require(self, "type")
    if dtype is None:
        return messages.type_word(t.array)
    return converted(t, checks.type_wanted(dtype))


def cpu(self, memory_format=None):
    """Return this tensor on the CPU, itself if it is already there. Gradient: g, moved back.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> x.cpu() is x
    True
    """
    if memory_format is None and isinstance(self, Tensor) and is_on_cpu(behind((<Tensor>self).array)):
        return self
    return to(require(self, "cpu"), cpu_device, memory_format=memory_format)


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Return this tensor on a GPU (by default the current one), itself if it is already there. Gradient: g, moved back.

    Raises RuntimeError if there is no such GPU.

    >>> import cygrad
    >>> if cygrad.cuda.is_available():
    ...     assert cygrad.ones(2).cuda().is_cuda
    """
    return to(require(self, "cuda"), checks.gpu_wanted(device), non_blocking=non_blocking, memory_format=memory_format)


DOC_CONVERSION = """This tensor converted to {wanted!r}, or itself if it has that dtype; see `to`.

    >>> import cygrad
    >>> cygrad.tensor([0, 1]).{name}().dtype
    {wanted!r}
    """


def conversion(str name, dtype wanted):
    """Return the method `name`, which converts to a dtype."""
    def method(self, memory_format=None):
        return converted_or_copied(require(self, name), wanted, False, memory_format)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = DOC_CONVERSION.format(name=name, wanted=wanted)
    return method


def bfloat16(self, memory_format=None):
    """Convert this tensor to bfloat16; itself if it already is. See `to`. Raises ImportError without ml_dtypes.

    >>> import cygrad
    >>> cygrad.ones(2).bfloat16().dtype
    torch.bfloat16
    """
    return converted_or_copied(require(self, "bfloat16"), as_dtype(dtype_named("bfloat16")), False, memory_format)


def chalf(self, memory_format=None):
    """Convert this tensor to complex32. Raises NotImplementedError: NumPy lacks that dtype, which is only a name here.

    >>> import cygrad
    >>> cygrad.ones(2).chalf()
    Traceback (most recent call last):
        ...
    NotImplementedError: not implemented for 'ComplexHalf'...
    """
    return converted_or_copied(require(self, "chalf"), as_dtype(dtype_named("complex32")), False, memory_format)


# -- writing into a tensor ---------------------------------------------------------------------------------

cpdef Tensor zeros_of(Tensor t):
    return wrap(zeros_beside(t.array, t.array.shape, typenum_of(t.array)))


cdef object copy_rule(OpNode n, object g):
    return zeros_of(g) if n.needs(0) else None, g if n.needs(1) else None

cdef OpDef COPY = op("copy", copy_rule).row(
    flags=LINEAR | PRIVATE, node="torch::autograd::CopyBackwards", inputs="self src",
    vmap_write="inplace arithmetic")
cdef OpDef COPY_INTEGERS = variant(COPY)


cpdef Tensor copy(object input, object src):
    """Return the elements of `src` in the shape, dtype and memory order of `input`."""
    cdef Tensor t = require(input, "copy")
    cdef Tensor source = require(src, "copy", "src", 2)
    check_fits(t.array.shape, source.array.shape)
    array = np.empty_like(behind(t.array))
    kernels.copy_into(array, source.array)
    return record2(COPY if is_float_num(t.array.dtype.num) else COPY_INTEGERS, array, t, source, None)


def copy_(self, src, non_blocking=False):
    """Copy the elements of `src`, broadcast and converted, into this tensor, and return it.

    Gradient: g for `src`, zeros for the previous value. Raises RuntimeError for shapes that do not broadcast.

    >>> import cygrad
    >>> cygrad.zeros(2, 2).copy_(cygrad.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    cdef Tensor t = require(self, "copy_", "self")
    if isinstance(src, (int, float, complex)):
        src = wrap(kernels.number(src))     # out-of-range values wrap around; `fill_` would raise
    return copy_into(t, require(src, "copy_", "other"), None, non_blocking)


cdef Tensor copy_into(Tensor out, Tensor source, str label, object non_blocking=False):
    cdef unsigned int mask = 0
    cdef tuple inputs = (out, source)
    row = COPY if is_float_num(out.array.dtype.num) else COPY_INTEGERS
    check_fits(out.array.shape, source.array.shape)
    node = begin_write(row, out, inputs, None, &mask, label)
    warn_of_lost_part(source, dtype_of(out))
    if not (non_blocking and is_on_cpu(out.array) != is_on_cpu(source.array)
            and not is_unresolved(out.array) and not is_unresolved(source.array)
            and pinned_memory.copy_into(out.array, source.array)):
        kernels.copy_into(out.array, source.array)
    return end_write(row, out, inputs, node, mask, label)


cdef int check_fits(tuple target, tuple source) except -1:
    """Raise unless a tensor of shape `source` broadcasts to `target`."""
    if source != target and broadcast_shape(target, source) != target:
        raise checks.does_not_fit(target, source)
    return 0


cdef object fill_rule(OpNode n, object g):
    return zeros_of(g)

cdef object fill_tensor_rule(OpNode n, object g):
    return zeros_of(g) if n.needs(0) else None, g if n.needs(1) else None

cdef OpDef FILL = op("fill", fill_rule).row(
    flags=LINEAR | FUNCTION_ONLY | MAY_OVERLAP, attributes="value", overloads="", vmap_write="fill_")
cdef OpDef FILL_TENSOR = op("fill.Tensor", fill_tensor_rule).row(
    flags=LINEAR | PRIVATE, node="FillBackward1", inputs="self value")
cdef OpDef FILL_INPLACE = variant(FILL, "FillBackward2")
cdef OpDef FILL_TENSOR_INPLACE = variant(FILL_TENSOR, "FillBackward3")
cdef OpDef FILL_INTEGERS = variant(FILL)


cpdef object apart(object value, Tensor out):
    """Return the value to fill `out` with, copied if it overlaps the memory of `out`."""
    if isinstance(value, Tensor) and may_overlap((<Tensor>value).array, out.array):
        return clone(value)
    return value


cdef object fill_array(object value, object numpy_dtype, str name):
    """Return the fill value as a 0-dim array."""
    if isinstance(value, Tensor):
        if (<Tensor>value).array.ndim:
            raise checks.fill_of_dims(value)
        return held_array(<Tensor>value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float, complex)):
        raise checks.fill_of_no_number(value, name)
    return kernels.element(value, numpy_dtype)


cpdef Tensor fill(object input, object value):
    """Return a tensor like `input` with all elements set to `value`, a number or a 0-dim tensor.

    Saves nothing. Gradient: zeros for `input`, the sum of g for `value`.

    >>> import cygrad
    >>> cygrad.fill(cygrad.zeros(2), 3)
    tensor([3., 3.])
    """
    cdef Tensor t = require(input, "fill")
    filling = fill_array(value, t.array.dtype, "fill")
    array = np.empty_like(behind(t.array), order="C" if 0 in t.array.strides else "K")
    kernels.copy_into(array, filling)
    is_float = is_float_num(t.array.dtype.num)
    if isinstance(value, Tensor):
        return record2(FILL_TENSOR if is_float else FILL_INTEGERS, array, t, value, None)
    return record1(FILL if is_float else FILL_INTEGERS, array, t, (value,))


def fill_(input, value):
    """Set all elements of this tensor to `value`, a number or a 0-dim tensor, and return it.

    Raises RuntimeError for a number out of range of the dtype.

    >>> import cygrad
    >>> cygrad.fill_(cygrad.ones(2), 5)
    tensor([5., 5.])
    """
    return fill_with(require(input, "fill_"), value, None)


cdef Tensor fill_with(Tensor out, object value, str label):
    cdef unsigned int mask = 0
    cdef tuple inputs
    value = apart(value, out)
    inputs = (out, value) if isinstance(value, Tensor) else (out,)
    filling = fill_array(value, out.array.dtype, "fill_")
    if not is_float_num(out.array.dtype.num):
        row = FILL_INTEGERS
    else:
        row = FILL_TENSOR_INPLACE if isinstance(value, Tensor) else FILL_INPLACE
    node = begin_write(row, out, inputs, (value,), &mask, label)
    kernels.copy_into(out.array, filling)
    return end_write(row, out, inputs, node, mask, label)


cdef OpDef ZERO = op("zero", fill_rule).row(flags=LINEAR | PRIVATE | MAY_OVERLAP)


cpdef Tensor zero(object input):
    """Return zeros with the shape and dtype of `input`."""
    cdef Tensor t = require(input, "zero")
    return record1(ZERO, zeros_of(t).array, t, None)


def zero_(input):
    """Set all elements of this tensor to zero, and return it. Gradient: zeros.

    Raises RuntimeError for a leaf that requires grad, unless recording is off.

    >>> import cygrad
    >>> cygrad.ones(2).zero_()
    tensor([0., 0.])
    """
    cdef Tensor t = require(input, "zero_")
    cdef unsigned int mask = 0
    node = begin_write(ZERO, t, (t,), None, &mask, None)
    if is_on_cpu(t.array) and PyArray_ISONESEGMENT(<ndarray>t.array) and PyArray_ISWRITEABLE(<ndarray>t.array):
        memset(PyArray_DATA(<ndarray>t.array), 0, PyArray_NBYTES(<ndarray>t.array))     # twice as fast as NumPy
        if tape_open:
            note_constant(PyArray_DATA(<ndarray>t.array), b"\0", 1, PyArray_NBYTES(<ndarray>t.array))
    else:
        settle()
        t.array[...] = 0
    return end_write(ZERO, t, (t,), node, mask, None)


composite = dict.fromkeys(("contiguous", "type_as", "cpu"), METHOD_ONLY)
methods = {"type": type_, "bfloat16": bfloat16, "chalf": chalf, "cuda": cuda, "copy_": copy_, "fill_": fill_, "zero_": zero_}
for _method, _dtype in checks.CONVERSIONS.items():
    methods[_method] = conversion(_method, _dtype)
functions = publish(globals(), dict(fill_=fill_, zero_=zero_))
functions.update(formats.functions)
