"""Builds arrays from user input: numbers, nested sequences, arrays, tensors.

Nested sequences are traversed three times, in C: for the shape (along the first elements, as in PyTorch), for the dtype
(over all elements), and to store the values. Values are stored as int64, uint64, bool, float, double or complex double, and
are narrowed at the end.
"""

cimport numpy as cnp
from cpython.complex cimport PyComplex_AsCComplex, Py_complex
from cpython.float cimport PyFloat_AsDouble
from cpython.long cimport PyLong_AsLongLong
from cpython.sequence cimport PySequence_Check
from numpy cimport (
    NPY_BOOL, NPY_CDOUBLE, NPY_DOUBLE, NPY_FLOAT, NPY_INT64, NPY_UINT64, PyArray_DATA, PyArray_SIZE,
    PyArray_TYPE, ndarray, npy_intp)

import math
import operator

import numpy as np

from cygrad._core.types.dtypes cimport (
    BOOLEAN, COMPLEX, INTEGRAL, default_dtype, dtype, dtype_of_num, dtype_of_scalar, promote_types)
from cygrad._core.graph.dual cimport check_read, is_forward
from cygrad._core.graph.tensor cimport Tensor, dtype_of, held_array
from cygrad._kernels.cpu.base.arrays cimport MAXDIMS, cast, empty
from cygrad._kernels.cpu.base.arrays cimport array_of_number, value_of

from cygrad._core.types.device import device as as_device
from cygrad._core.types.size import Size

cnp.import_array()

SUPPORTED = ("float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
             "uint8, and bool")
cdef tuple PLAIN = (bool, int, float, complex)
cdef object GENERIC = np.generic


# -- NumPy's arrays ----------------------------------------------------------------------------------------

cdef ndarray canonical(ndarray array):
    """Return `array` as a plain ndarray in native byte order, with the type number that we use for its element type.

    NumPy has several integer types of the same size (long and long long); we use the one that the sized name refers to.
    """
    cdef object descr = array.dtype
    if type(array) is not ndarray:
        array = np.asarray(array)
    if not descr.isnative:
        array = np.asarray(array, descr.newbyteorder("="))
    try:
        dtype_of_num(PyArray_TYPE(array))
    except TypeError:
        if descr.kind in "iu":
            return array.view(f"{descr.kind}{descr.itemsize}")
        raise TypeError(f"can't convert np.ndarray of type {descr.type.__module__}.{descr.type.__name__}. "
                        f"The only supported types are: {SUPPORTED}.") from None
    return array


cdef ndarray copied(object data, dtype wanted):
    """Copy an array in the memory order of the original, converting its dtype if necessary."""
    cdef ndarray array = canonical(np.asarray(data)), out
    if wanted is not None and PyArray_TYPE(array) != wanted.num:
        out = cast(array, wanted.num)
        if out is not array:
            return out
    order = "K" if all((<object>array).strides) else "C"        # elements that share memory are separated
    return np.array(array, order=order)


# -- sequences ---------------------------------------------------------------------------------------------

cdef inline bint is_sequence(object data) except -1:
    """Whether to descend into `data`."""
    if type(data) is list or type(data) is tuple:
        return True
    if type(data) is float or type(data) is int:
        return False
    if isinstance(data, (Tensor, str, bytes, dict, GENERIC)):
        return False
    if isinstance(data, ndarray):
        return data.ndim > 0
    return PySequence_Check(data)


cdef int shape_of(object data, npy_intp* dims) except -1:
    """Return the number of dimensions, and store their sizes in `dims`."""
    cdef int ndim = 0
    while is_sequence(data):
        if ndim == MAXDIMS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        dims[ndim] = len(data)
        ndim += 1
        if dims[ndim - 1] == 0:
            return ndim
        try:
            data = data[0]
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    if ndim and isinstance(data, (str, bytes)):
        raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return ndim


cdef dtype inferred(object data, int depth):
    """Return the dtype that holds all values: Python floats count as the default dtype, ints as int64.

    Return None for a sequence deeper than `depth`, which makes `fill` raise.
    """
    cdef dtype found = None, other
    cdef object last = None
    if type(data) in PLAIN:
        return dtype_of_scalar(data)
    if isinstance(data, Tensor):
        return dtype_of(<Tensor>data)
    if isinstance(data, (GENERIC, ndarray)):
        return dtype_of_num(PyArray_TYPE(canonical(np.asarray(data))))
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, (int, float, complex)):
        return dtype_of_scalar(data)
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if depth == 0:
        return None
    for value in data:
        if type(value) is last:             # most sequences hold values of one type
            continue
        if value is data:
            raise TypeError("new(): self-referential lists are incompatible")
        other = inferred(value, depth - 1)
        if other is not None:
            found = other if found is None else promote_types(found, other)
        last = type(value) if type(value) in PLAIN else None
    return default_dtype() if found is None else found


# -- storing -----------------------------------------------------------------------------------------------

cdef struct Target:
    int ndim
    npy_intp* dims
    int num                     # type number of the array that the values are stored in
    char* next                  # address of the next value


cdef int store(Target* target, object value, dtype wanted) except -1:
    """Store one value."""
    cdef Py_complex pair
    if isinstance(value, Tensor):
        if (<Tensor>value).array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars\n"
                             "  to join tensors of several elements, use torch.stack or torch.cat")
        if is_forward():
            check_read(<Tensor>value, False)
        value = value_of((<Tensor>value).array)
    if target.num == NPY_FLOAT:
        (<float*>target.next)[0] = <float>PyFloat_AsDouble(value)
        target.next += sizeof(float)
    elif target.num == NPY_DOUBLE:
        (<double*>target.next)[0] = PyFloat_AsDouble(value)
        target.next += sizeof(double)
    elif target.num == NPY_INT64:
        (<cnp.npy_int64*>target.next)[0] = whole(value, wanted)
        target.next += sizeof(cnp.npy_int64)
    elif target.num == NPY_UINT64:
        (<cnp.npy_uint64*>target.next)[0] = natural(value)
        target.next += sizeof(cnp.npy_uint64)
    elif target.num == NPY_BOOL:
        target.next[0] = truth(value)
        target.next += 1
    else:
        pair = PyComplex_AsCComplex(value)
        (<double*>target.next)[0] = pair.real
        (<double*>target.next)[1] = pair.imag
        target.next += 2 * sizeof(double)
    return 0


cdef long long whole(object value, dtype wanted) except? -1:
    cdef double number
    if isinstance(value, float):
        number = value
        if not -9.223372036854775e18 < number < 9.223372036854775e18:
            raise overflow(wanted)
        return <long long>number
    try:
        return PyLong_AsLongLong(operator.index(value))
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


cdef unsigned long long natural(object value) except? 0:
    number = int(value) if isinstance(value, float) else operator.index(value)
    if not -2 ** 64 < number < 2 ** 64:
        raise ValueError("Overflow when unpacking long long")
    return number % 2 ** 64


cdef char truth(object value) except -1:
    if isinstance(value, (int, float, complex, np.bool_, np.number)):
        return 1 if value else 0
    raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")


cdef object overflow(dtype wanted):
    return RuntimeError(f"value cannot be converted to type {wanted.name} without overflow")


cdef int fill(Target* target, object data, int dim, dtype wanted) except -1:
    """Store all values below `data`, which is nested `dim` levels deep."""
    cdef npy_intp count = 0
    if dim == target.ndim:
        return store(target, data, wanted)
    if not is_sequence(data):
        raise TypeError("not a sequence\n"
                        f"  at depth {dim} there is a {type(data).__name__} where other elements are sequences")
    if len(data) != target.dims[dim]:
        raise length_error(target, dim, len(data))
    for value in data:
        if count == target.dims[dim]:       # it grew during iteration
            raise length_error(target, dim, count + 1)
        fill(target, value, dim + 1, wanted)
        count += 1
    if count != target.dims[dim]:
        raise length_error(target, dim, count)
    return 0


cdef object length_error(Target* target, int dim, Py_ssize_t found):
    return ValueError(f"expected sequence of length {target.dims[dim]} at dim {dim} (got {found})\n"
                      "  nn.utils.rnn.pad_sequence makes one tensor of tensors that differ in length")


cdef int storage_num(dtype wanted) noexcept:
    if wanted.category == BOOLEAN:
        return NPY_BOOL
    if wanted.category == INTEGRAL:
        return NPY_UINT64 if wanted.num == NPY_UINT64 else NPY_INT64
    if wanted.category == COMPLEX:
        return NPY_CDOUBLE
    return NPY_FLOAT if wanted.num == NPY_FLOAT else NPY_DOUBLE


cdef ndarray narrowed(ndarray array, dtype wanted):
    """Cast the stored values to the requested dtype."""
    if PyArray_TYPE(array) == wanted.num:
        return array
    if wanted.category == INTEGRAL and PyArray_SIZE(array):
        limits = np.iinfo(wanted.numpy)
        # negative numbers wrap around in unsigned types
        if array.max() > limits.max or array.min() < (limits.min if wanted.is_signed else -limits.max):
            raise overflow(wanted)
    return cast(array, wanted.num)


# -- storages ----------------------------------------------------------------------------------------------

cdef ndarray stored(object storage, dtype wanted):
    """Return the elements of a storage without copying them; bytes are taken as elements of the dtype, or of int64."""
    cdef object kind = getattr(storage, "dtype", None)
    if kind is not None and wanted is not None and kind is not wanted:
        raise RuntimeError(f"Expected a Storage of type {wanted.type_name} or an UntypedStorage, but got "
                           f"{kind.type_name}")
    array = held_array(storage._flat.cpu())
    if kind is None:
        wanted = wanted or dtype_of_scalar(0)
        array = array[: array.size - array.size % wanted.itemsize].view(wanted.numpy)
    return array


# -- putting it together -----------------------------------------------------------------------------------

cdef ndarray data_array(object data, dtype wanted):
    cdef npy_intp[MAXDIMS] dims
    cdef Target target
    cdef ndarray array
    if wanted is None and (type(data) is float or type(data) is bool):
        return array_of_number(data, NPY_BOOL if type(data) is bool else default_dtype().num)
    if isinstance(data, Tensor):
        return copied((<Tensor>data).array, wanted)
    if isinstance(data, (ndarray, GENERIC)):
        return copied(data, wanted)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, (list, tuple, int, float, complex)):
        if hasattr(data, "__array__"):
            return copied(data, wanted)
        if getattr(data, "_is_storage", False):
            return stored(data, wanted)
    if type(data) not in PLAIN and hasattr(data, "__dlpack__"):
        return copied(np.from_dlpack(data), wanted)
    target.ndim = shape_of(data, dims)
    target.dims = dims
    if wanted is None:
        wanted = inferred(data, target.ndim)
    target.num = storage_num(wanted)
    array = empty(target.ndim, dims, target.num)
    target.next = <char*>PyArray_DATA(array)
    if PyArray_SIZE(array) == 0:
        return narrowed(array, wanted)
    fill(&target, data, 0, wanted)
    return narrowed(array, wanted)


def legacy_array(tuple args, dict named, dtype wanted, str kind="cpu"):
    """Return the array of `Tensor(...)` and `t.new(...)`: sizes allocate uninitialized memory; sequences are copied.

    Raises RuntimeError for a `device` of another type than `kind`.
    """
    if named.get("device") is not None and as_device(named["device"]).type != kind:
        raise RuntimeError(f"legacy constructor expects device type: {kind} but device type: "
                           f"{as_device(named['device']).type} was passed")
    if "data" in named:
        args = (named["data"],)
    elif "size" in named:
        args = (Size(named["size"]),)
    for name in named:
        if name not in ("data", "size", "device"):
            raise TypeError(f"new() got an unexpected keyword argument '{name}'\n"
                            "  cygrad.tensor(data, dtype=..., requires_grad=...) takes it")
    if not args:
        return np.empty(0, wanted.numpy)
    data = args[0]
    if len(args) == 1:
        if isinstance(data, Tensor):
            if named.get("device") is not None:
                raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
                                   "supported.  Use torch.tensor(...) or torch.as_tensor(...) instead.")
            return held_array(<Tensor>data)
        if isinstance(data, Size):
            return sized(tuple(data), wanted)
        if is_sequence(data) or isinstance(data, (ndarray, str, bytes)):
            return data_array(data, wanted)
    if isinstance(data, bool) or not hasattr(data, "__index__"):
        if len(args) > 1:
            raise TypeError("new() received an invalid combination of arguments\n"
                            "  expected sizes, as in Tensor(2, 3), or one sequence, as in Tensor([2, 3])")
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return sized(tuple([length(value, i) for i, value in enumerate(args)]), wanted)


cdef object length(object value, Py_ssize_t position):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error "
                        f"\"type must be tuple of ints,but got {type(value).__name__}\"") from None


cdef object sized(tuple shape, dtype wanted):
    return np.empty(checked_lengths(shape), wanted.numpy)


cpdef tuple checked_lengths(tuple shape):
    """Return `shape`, or raise if its size overflows 64 bits, which NumPy refuses but CuPy silently truncates."""
    cdef double bytes_needed = 16           # for the widest dtype
    for length in shape:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {list(shape)}")
        bytes_needed *= max(<double>length, 1)
    if bytes_needed >= 2.0 ** 63:
        if 0 in shape and math.prod(shape[:shape.index(0)]) < 2 ** 59:      # it needs no bytes, but has strides
            raise RuntimeError(f"Stride calculation overflowed with sizes={list(shape)}")
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return shape
