"""Argument parsing for `to` and related conversions, and error messages for copies and fills."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.device import check_device, device
from cygrad._core.types.dtypes import as_dtype, by_name, dtype_named, get_default_dtype
from cygrad._ops.base.arguments import broadcast_shape, require

# Conversion methods by name.
CONVERSIONS = {
    name: by_name()[name] for name in ("float", "double", "half", "int", "long", "short", "bool", "cfloat", "cdouble")
}
CONVERSIONS |= {"byte": by_name()["uint8"], "char": by_name()["int8"]}

_TO = (
    "torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None",
    "torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None",
    "Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None",
)


def read_to(args, wanted, place, other, non_blocking, copy):
    """Parse the arguments of `to`, positional before keyword, into (dtype or None, device or None, non_blocking, copy).

    Raises TypeError for arguments that match no signature, RuntimeError for an unavailable device.
    """
    named = {"device": place, "dtype": wanted, "other": other, "non_blocking": non_blocking, "copy": copy}
    rest, is_twice = list(args), False
    if rest and isinstance(rest[0], Tensor):
        is_twice = any(value is not None for value in (place, wanted, other))
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (str, int, device))):
        is_twice = place is not None or other is not None
        place, *rest = rest
    elif rest:  # a dtype is the only argument besides flags
        is_twice = place is not None or other is not None
    if rest and other is None:
        is_twice = is_twice or wanted is not None
        wanted = rest.pop(0)
    flags = [*rest, *(non_blocking, copy)[len(rest) :]]
    try:
        if is_twice or len(flags) > 2 or isinstance(place, bool):
            raise TypeError
        if not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
            raise TypeError
        if other is not None:
            wanted, place = require(other, "to", "other").dtype, other.device
        elif wanted is not None:
            wanted = as_dtype(wanted)
    except (TypeError, ValueError):
        named = {name: value for name, value in named.items() if value is not None and value is not False}
        raise messages.no_such_call("to", args, named, _TO) from None
    return wanted, None if place is None else check_device(place, moving=True), *flags


def gpu_wanted(place):
    """Return the GPU that `cuda` was given as a number or a device; the current one for None."""
    if place is None:
        return check_device("cuda")
    wanted = device("cuda", place) if isinstance(place, int) else device(place)
    if wanted.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return check_device(wanted)


def type_wanted(name):
    """Return the dtype that `type` was given as a dtype or a tensor type name such as 'torch.FloatTensor'.

    Raises ValueError for an unknown name.
    """
    if type(name).__name__.endswith("tensortype"):  # such as torch.FloatTensor, see legacy_types.py
        return name.dtype
    if isinstance(name, str):
        if name.startswith("torch.cuda."):
            check_device("cuda")
        if name == "torch.BFloat16Tensor":
            return as_dtype(dtype_named("bfloat16"))
        name = {f"torch.{d.type_name}Tensor": d for d in by_name().values()}.get(name, name)
    if name is Tensor:
        return get_default_dtype()
    if isinstance(name, str) or name in (int, float, bool, complex):
        raise ValueError(f"invalid type: '{name if isinstance(name, str) else name.__name__}'")
    try:
        return as_dtype(name)
    except TypeError:
        raise TypeError("dtype must be a type, str, or dtype object") from None


def does_not_fit(target, source):
    """Return the error for a source whose shape does not broadcast to the target's."""
    shape = list(broadcast_shape(target, source))
    return RuntimeError(f"output with shape {list(target)} doesn't match the broadcast shape {shape}")


def fill_of_dims(value):
    """Return the error for a fill value that has dimensions."""
    return RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")


def fill_of_no_number(value, function):
    """Return the error for a fill value that is neither a number nor a tensor."""
    return messages.no_such_call(function, (value,), {}, ("Tensor value", "Number value"))
