"""Argument checks for op families written in Python; errors use PyTorch's wording."""

from functools import wraps

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.record import result_type, tensor_argument
from cygrad._core.graph.tensor import Tensor
from cygrad._core.runtime.thread_state import NO_GRAD, get_modes
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.tape.calls import noted
from cygrad._ops.base.arguments import broadcast_shape, is_integer


def number_of(value):
    """Convert a NumPy scalar to a Python number; return anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def require_factor(op, name, value):
    """Raise TypeError unless a keyword argument such as `alpha` is a number.

    The call is then repeated with numbers for 0-dim tensors that need no gradient (`refused_calls.py`).
    """
    if not isinstance(value, NUMBERS):
        raise messages.wrong_keyword(op.name, name, "Number", value)


def require_tensors(op, *values, names=("input", "other"), first=1):
    """Raise unless each value is a tensor; `op` is the row, `first` the position of the first value."""
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            tensor_argument(op, value, names[i], first + i)  # raises


def explanation(error, check, *operands):
    """Return the error that a check raises for operands that a kernel refused, or else the kernel's own error."""
    try:
        check(*operands)
    except Exception as better:
        return better
    return error


def kind_of(dtype):
    """Return 'b' for boolean, 'i' for integer, 'f' for floating-point, and 'c' for complex dtypes."""
    if dtype.is_floating_point or dtype.is_complex:
        return "c" if dtype.is_complex else "f"
    return "b" if dtype.name == "bool" else "i"


def require_kind(kinds, kernel, *values):
    """Raise, with the name of PyTorch's kernel, unless the common dtype of the operands is of one of these kinds."""
    dtype = values[0].dtype if len(values) == 1 else result_type(values)
    if kind_of(dtype) not in kinds:
        raise messages.not_implemented_for(kernel, dtype)


def require_real(op, *values, kernel=None, integers=True):
    """Raise if the common dtype of tensors and numbers is complex or, without `integers`, integral or boolean."""
    require_kind("bif" if integers else "f", kernel or f"{op.name}_cpu", *values)


def write_converted(target, result):
    """Copy `result` to `target`, an in-place operand that had to be converted to the dtype of `result`."""
    messages.check_result_type(array_of(result).dtype.num, array_of(target).dtype.num)
    messages.check_inplace_shape(tuple(result.shape), tuple(target.shape))
    return target.copy_(result)


def require_broadcast(*tensors):
    """Return the shape to which all tensors broadcast; raises RuntimeError."""
    shape = array_of(tensors[0]).shape
    for tensor in tensors[1:]:
        other = array_of(tensor).shape
        if other != shape:
            shape = broadcast_shape(shape, other)
    return shape


NUMBERS = (bool, int, float, complex)


def require_operands(function, a, b):
    """Raise unless the operands are two tensors, or a tensor and a number."""
    if not all(isinstance(v, (Tensor, *NUMBERS)) for v in (a, b)) or not any(isinstance(v, Tensor) for v in (a, b)):
        raise messages.fits_none(function)


_UNSIGNED = {"l": np.uint64, "q": np.uint64, "i": np.uint32}


@noted
def are_within(index, low, high):
    """Whether low <= element < high for all integers of an array.

    For low = 0, one pass suffices: as unsigned integers, negative ones are large.
    """
    if not index.size:
        return True
    unsigned = _UNSIGNED.get(index.dtype.char) if low == 0 else None
    if unsigned is not None and index.flags.c_contiguous:
        return bool(np.maximum.reduce(index.view(unsigned), None) < high)
    return bool(index.min() >= low and index.max() < high)


@noted
def first_outside(index, low, high):
    """Return the first element outside [low, high), or None; arrays on a GPU are not checked."""
    if is_array(index) or are_within(index, low, high):
        return None
    return index[(index < low) | (index >= high)].flat[0]


def typed(**kinds):
    """Decorator that requires exact argument types (bool, int, float or str), as PyTorch does.

    Integers and 0-dim tensors are accepted as floats; True is not accepted as an int.
    """

    def decorate(function):
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        places = [(place, kinds[name]) for place, name in enumerate(names) if name in kinds]

        @wraps(function)
        def checked(*args, **kwargs):
            for place, kind in places:
                if place >= len(args):
                    break
                if type(args[place]) is not kind and not _is_of(kind, args[place]):
                    raise messages.wrong_type(checked.__name__, names[place], place + 1, kind.__name__, args[place])
            for name, value in kwargs.items():
                if name in kinds and not _is_of(kinds[name], value):
                    raise messages.wrong_keyword(checked.__name__, name, kinds[name].__name__, value)
            return function(*args, **kwargs)

        return checked

    return decorate


def _is_of(kind, value):
    if kind is int:
        return is_integer(value) and not isinstance(value, bool)
    if kind is float:
        return _is_number(value)
    return isinstance(value, kind)


def _is_number(value):
    """Whether a value passes as a number; a tensor that requires grad does not, since its gradient would be lost."""
    if isinstance(value, Tensor):
        return not value.ndim and not value.requires_grad
    return isinstance(value, (int, float, np.number))


def number_argument(value, function, name, position, kind="Number"):
    """Convert a user-supplied number, possibly a 0-dim tensor, to a float."""
    if _is_number(value):
        return float(value)
    raise messages.wrong_type(function, name, position, kind, value)


def check_unbatched(name, *tensors):
    """Raise NoBatchingRule inside `vmap` where the values of a batched tensor would be read without being recorded."""
    if is_forward():
        from cygrad._core.transforms.forward_mode import refuse_samples  # not needed before there is a level

        refuse_samples(name, [t for t in tensors if isinstance(t, Tensor)])


def check_gradient_of_part(t, part):
    """Raise if writing `part` into a copy of `t` would have to be differentiated although `t` holds integers."""
    if part.requires_grad and not get_modes() & NO_GRAD and not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"Autograd not support dtype: {t.dtype.type_name}")


def check_constant(weight, function, name):
    """Raise RuntimeError if a weight requires grad."""
    if weight.requires_grad:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot "
            "have requires_grad True.\n  to use only its values, detach it"
        )
