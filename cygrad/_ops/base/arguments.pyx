"""Parsing of user-supplied arguments: dimensions, sizes, lists of tensors. Errors use PyTorch's wording."""

import operator

from cpython.long cimport PyLong_AsLongLongAndOverflow

from cygrad._core.graph.observers cimport mark_start
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.errors import messages
from cygrad._kernels.cpu.base.arrays cimport MAXDIMS


cpdef Tensor require(object value, str op, str name="input", int position=1):
    mark_start()
    if not isinstance(value, Tensor):
        raise TypeError(f"{op}(): argument '{name}' (position {position}) must be Tensor, "
                        f"not {type_name(value)}")
    return <Tensor>value


cpdef str type_name(object value):
    return messages.type_name(value)


cpdef bint is_integer(object value):
    """Whether `value` is an int, a NumPy integer, or an integer tensor with one element; bools do not count."""
    if type(value) is int:
        return True
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


cdef inline bint is_too_long(object value) except -1:
    """Whether an int needs more than 64 bits."""
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow != 0


cpdef Py_ssize_t integer(object value, str op, str name, int position) except? -1:
    """Convert an argument that must be an int. NumPy integers and 0-dim integer tensors are accepted, bools are not."""
    if type(value) is int or is_integer(value):
        value = operator.index(value)
        if is_too_long(value):
            raise ValueError("Overflow when unpacking long long")
        return value
    raise TypeError(f"{op}(): argument '{name}' (position {position}) must be int, not {type_name(value)}")


cpdef int wrap_dim(Py_ssize_t dim, Py_ssize_t ndim) except -1:
    cdef Py_ssize_t limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return <int>(dim + limit if dim < 0 else dim)


cpdef int dim_argument(object dim, Py_ssize_t ndim, str op, str name, int position) except -1:
    return wrap_dim(integer(dim, op, name, position), ndim)


cpdef tuple integers(object values, str op, str name, int position):
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{op}(): argument '{name}' (position {position}) must be tuple of ints, "
                        f"not {type_name(values)}")
    return each_integer(tuple(values), op, name, position)


cpdef tuple each_integer(tuple values, str op, str name, int position):
    cdef Py_ssize_t i
    for i in range(len(values)):
        if type(values[i]) is not int:
            break
        if is_too_long(values[i]):
            raise TypeError(f"{op}(): argument '{name}' failed to unpack the object at pos {i + 1} with error "
                            '"Overflow when unpacking long long')
    else:
        return values
    plain = []
    for i in range(len(values)):
        try:
            plain.append(integer(int(values[i]) if i and type(values[i]) is bool else values[i], op, name, position))
        except TypeError:
            if i == 0:
                raise TypeError(f"{op}(): argument '{name}' (position {position}) must be tuple of ints, but found "
                                f"element of type {type_name(values[i])} at pos 0") from None
            raise TypeError(f"{op}(): argument '{name}' failed to unpack the object at pos {i + 1} with error "
                            f'"type must be tuple of ints,but got {type_name(values[i])}"') from None
    return tuple(plain)


cpdef tuple variadic(tuple given, dict named, str op, str name):
    if named:
        if given or len(named) > 1 or name not in named:
            unknown = ([key for key in named if key != name] or [name])[0]
            raise TypeError(f"{op}() got an unexpected keyword argument '{unknown}'")
        return integers(named[name], op, name, 1)
    if not given:
        raise TypeError(f'{op}() missing 1 required positional arguments: "{name}"')
    if len(given) == 1 and not is_integer(given[0]):
        return integers(given[0], op, name, 1)
    if not is_integer(given[0]):
        raise TypeError(f"{op}(): argument '{name}' (position 1) must be tuple of ints, not {type_name(given[0])}")
    return each_integer(given, op, name, 1)


cpdef tuple wrap_dims(tuple dims, Py_ssize_t ndim):
    cdef int dim
    wrapped = []
    for value in dims:
        dim = wrap_dim(value, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return tuple(wrapped)


cdef int shape_to_c(tuple shape, npy_intp* dims) except -1:
    cdef Py_ssize_t i, n = len(shape)
    if n > MAXDIMS:
        raise RuntimeError(f"tensors have at most {MAXDIMS} dimensions, this would have {n}")
    for i in range(n):
        dims[i] = shape[i]
    return <int>n


cpdef tuple broadcast_shape(tuple a, tuple b):
    cdef Py_ssize_t i, ndim
    if a == b:
        return a
    ndim = max(len(a), len(b))
    left, right = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    for i in range(ndim - 1, -1, -1):
        if left[i] != right[i] and left[i] != 1 and right[i] != 1:
            from cygrad._kernels.device.errors import broadcast_failure  # needed only for errors
            raise RuntimeError(broadcast_failure(a, b))
    return tuple([n if m == 1 else m for m, n in zip(left, right)])


cpdef tuple tensor_list(object tensors, str op):
    cdef Py_ssize_t i
    if not isinstance(tensors, (list, tuple)):
        remedy = f"\n  to fix it: put the tensors into a list, as in {op}([a, b])" if isinstance(tensors, Tensor) else ""
        raise TypeError(f"{op}(): argument 'tensors' (position 1) must be tuple of Tensors, "
                        f"not {type_name(tensors)}{remedy}")
    for i in range(len(tensors)):
        if not isinstance(tensors[i], Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type_name(tensors[i])}")
    return tuple(tensors)
