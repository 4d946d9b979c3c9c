"""What the families written in Python ask of their arguments; errors are in PyTorch's words."""

import numpy as np

from cygrad._core import messages
from cygrad._core.record import result_type, tensor_argument
from cygrad._core.tensor import Tensor
from cygrad._ops.arguments import broadcast_shape


def require_tensors(op, *values, names=("input", "other"), first=1):
    """Each value must be a tensor; `op` is the row, `first` the position of the first value."""
    for position, (value, name) in enumerate(zip(values, names), first):
        tensor_argument(op, value, name, position)


def require_real(op, *values, kernel=None, integers=True):
    """The common type of tensors and numbers must not be complex, nor, without `integers`, integral or boolean."""
    dtype = result_type(values)
    if dtype.is_complex or not (integers or dtype.is_floating_point):
        raise messages.not_implemented_for(kernel or f"{op.name}_cpu", dtype)


def require_broadcast(*tensors):
    """The shape of all tensors together, or RuntimeError."""
    shape = ()
    for tensor in tensors:
        shape = broadcast_shape(shape, tuple(tensor.shape))
    return shape


def first_outside(index, low, high):
    """The first element of an array for which not low <= element < high, or None."""
    wrong = (index < low) | (index >= high)
    return index[wrong].flat[0] if wrong.any() else None


def number_argument(value, function, name, position):
    """A number that the user gives, also as a tensor without dimensions."""
    if isinstance(value, (int, float, np.number)) or (isinstance(value, Tensor) and not value.ndim):
        return float(value)
    raise messages.wrong_type(function, name, position, "Number", value)
