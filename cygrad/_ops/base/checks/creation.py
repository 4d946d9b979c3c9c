"""What functions that make tensors say of arguments that do not fit, and how they read unusual ones."""

from functools import cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import has_samples
from cygrad._kernels.device import cupy_library
from cygrad._ops.base.arguments import integer, integers


def check_strides(array):
    """Raise ValueError unless strides in elements express the array."""
    for stride in array.strides:
        if stride % array.itemsize:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                "reallocate the memory."
            )
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                "currently supported. (You can probably work around this by making a copy of your array  with "
                "array.copy().) "
            )


# -- sizes and numbers --


def negative_length():
    """A negative length, which `zeros` words in its own way."""
    return RuntimeError("zeros: Dimension size must be non-negative.")


def number(value, function, name, position):
    """The Python number that a NumPy number or 0-dim tensor holds. Raises TypeError for what is none."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufc" or (isinstance(value, Tensor) and value.ndim == 0):
        return value.item()
    raise messages.wrong_type(function, name, position, "Number", value)


_SIZED = (
    "tuple of ints size, *, torch.Generator generator, Tensor out = None, torch.dtype dtype = None, torch.layout "
    "layout = None, torch.device device = None, bool pin_memory = False, bool requires_grad = False"
)
_RANDINT = "int high, " + _SIZED, "int low, int high, " + _SIZED
_NORMAL = (
    "Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    "Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None",
    "float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
    "float mean, float std, " + _SIZED,
)


def no_size(function):
    """Random numbers of no size."""
    return messages.no_such_call(function, (), {}, (_SIZED,))


def no_normal_of(*given):
    """`normal` with two numbers and no size, or with a size beside tensors of several numbers."""
    return messages.no_such_call("normal", given, {}, _NORMAL)


def randint_arguments(args, low, high, size):
    """(low, high, size) from what `randint` was given."""
    given = len(args)
    bounds = list(args)
    if size is None and given:
        if isinstance(bounds[-1], (list, tuple)):
            size = bounds.pop()
        elif given > 2:
            raise messages.no_such_call("randint", args, {}, _RANDINT)
        elif given > 1:
            raise messages.wrong_type("randint", "size", given, "tuple of ints", bounds[-1])
    if high is None and bounds:
        high = bounds.pop()
    if low is None and bounds:
        low = bounds.pop()
    if bounds or high is None or size is None:
        raise messages.no_such_call("randint", args, {}, _RANDINT)
    first = 0 if low is None else integer(low, "randint", "low", 1)
    last = integer(high, "randint", "high", 1 if low is None else 2)
    return first, last, integers(size, "randint", "size", 2 if low is None else 3)


# -- types --


def wrong_dtype(wanted, function):
    """A `dtype` that is none."""
    return TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {messages.type_name(wanted)}")


def type_of_out(out, named, function):
    """The type of `out`. Raises TypeError for no tensor, RuntimeError if another type was named."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {messages.type_name(out)}")
    if named is not None and named is not out.dtype:
        raise RuntimeError(f"dtype {named.type_name} does not match dtype of out parameter ({out.dtype.type_name})")
    return out.dtype


def check_bounds(low, high, dtype):
    """Raise RuntimeError unless there are integers low, ..., high - 1, all of which the type can hold."""
    if 0 <= low < high <= 128 and dtype.numpy.kind in "iuf":  # what all of these can hold
        return
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    first, last = limits(dtype)
    for value, name in ((low, "from"), (high - 1, "to - 1")):
        if not first <= value <= last:
            raise RuntimeError(f"{name} is out of bounds for {messages.c_name(dtype)}")
        if dtype.is_floating_point and abs(value) > 2 ** precision(dtype):
            bits = precision(dtype)
            warn(
                f"{name} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations "
                f"{messages.c_name(dtype)} can support discrete uniform distribution only within this range. This "
                "warning will become an error in version 1.7 release, please fix the code in advance"
            )


@cache
def precision(dtype):
    """The bits of precision of a floating-point type: up to this power of 2 it has all integers."""
    return {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[dtype.name]


@cache
def limits(dtype):
    """The integers that are drawn for a type: all that it can hold, for floating point those of int64."""
    if dtype.numpy.kind == "b":
        return 0, 1
    info = np.iinfo(dtype.numpy if dtype.numpy.kind in "iu" else np.int64)
    return info.min, info.max


# -- gradients and place --


def cannot_require_grad(requires_grad, tensor, function):
    """A `requires_grad` that is no bool, or a type that has no gradients."""
    if type(requires_grad) is not bool:
        return TypeError(
            f"{function}(): argument 'requires_grad' must be bool, not {messages.type_name(requires_grad)}"
        )
    return RuntimeError(
        "Only Tensors of floating point and complex dtype can require gradients\n"
        f"  this one would be {tensor.dtype}: give floating-point data, as in [1.0, 2.0], or dtype=torch.float32"
    )


def out_requires_grad(function):
    """An `out` that collects a gradient."""
    return RuntimeError(
        f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


def pinned_place(index, can_pin):
    """Where `pin_memory=True` puts a tensor that is asked to be on the GPU `index`, or on the CPU for None."""
    if not cupy_library.is_available():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    if index is not None:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if not can_pin:
        raise RuntimeError("pin_memory=True is not there for this function: call .pin_memory() on what it gives")
    return cupy_library.PINNED


def warn_copy(call):
    """A tensor where data was expected."""
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {call}."
    )


def of_samples(data, wanted, requires_grad):
    """A copy of a tensor that is another one for each sample of `vmap`; None for other data."""
    if not isinstance(data, Tensor) or not has_samples(data):
        return None
    copy = data.detach().clone()
    return (copy if wanted is None else copy.to(wanted)).requires_grad_(bool(requires_grad))
