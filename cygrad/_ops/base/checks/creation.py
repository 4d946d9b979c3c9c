"""Error messages and parsing of unusual arguments for functions that create tensors."""

from functools import cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.errors.spelling import suggestion
from cygrad._core.graph.tensor import Tensor
from cygrad._core.transforms.forward_mode import has_samples
from cygrad._core.types.device import check_device
from cygrad._kernels.device import cupy_library
from cygrad._ops.base.arguments import integer, integers

# Of functions that create tensors of a size
KEYWORDS = ("device", "dtype", "generator", "layout", "names", "out", "pin_memory", "requires_grad", "size")


def check_strides(array):
    """Raise ValueError if the array has negative strides, or strides that are not a multiple of the element size."""
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
    """Return the error of `zeros` for a negative length, which has its own wording."""
    return RuntimeError("zeros: Dimension size must be non-negative.")


def number(value, function, name, position):
    """Convert a NumPy number or 0-dim tensor to a Python number. Raises TypeError for other values."""
    is_tensor = isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad
    if is_tensor or isinstance(value, np.generic) and value.dtype.kind in "biufc":
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
    """Return the error for random numbers without a size."""
    return messages.no_such_call(function, (), {}, (_SIZED,))


def no_normal_of(*given):
    """Return the error for `normal` of two numbers without a size, or of a size together with non-scalar tensors."""
    return messages.no_such_call("normal", given, {}, _NORMAL)


def randint_arguments(args, low, high, size):
    """Parse the arguments of `randint` into (low, high, size)."""
    given = len(args)
    if given > 1 and low is high is size is None and isinstance(args[-1], (list, tuple)):
        if given == 2:
            high, size = args
            return 0, integer(high, "randint", "high", 1), integers(size, "randint", "size", 2)
        if given == 3:
            low, high, size = args
            if not type(low) is type(high) is int:
                low, high = integer(low, "randint", "low", 1), integer(high, "randint", "high", 2)
            return low, high, integers(size, "randint", "size", 3)
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


# -- dtypes --


def wrong_dtype(wanted, function):
    """Return the error for a `dtype` argument that is not a dtype."""
    return messages.wrong_keyword(function, "dtype", "torch.dtype", wanted)


def check_out(out, layout, device, function):
    """Raise TypeError for an `out` that is no tensor, RuntimeError if its layout or device is not the one asked for."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {messages.type_name(out)}")
    if isinstance(layout, type(out.layout)) and layout is not out.layout:
        asked, given = (_LAYOUTS.get(str(each), str(each)) for each in (layout, out.layout))
        raise RuntimeError(f"layout {asked} does not match layout of out parameter ({given})")
    kind = out.device.type if device is None else check_device(device).type
    if kind != out.device.type:
        raise RuntimeError(f"device type {kind} does not match device type of out parameter ({out.device.type})")


_LAYOUTS = {
    "torch.strided": "Strided",
    "torch.sparse_coo": "Sparse",
    "torch.sparse_csr": "SparseCsr",
    "torch.sparse_csc": "SparseCsc",
    "torch.sparse_bsr": "SparseBsr",
    "torch.sparse_bsc": "SparseBsc",
}


def type_of_out(out, named):
    """Return the dtype of `out`. Raises RuntimeError if another dtype was requested."""
    if named is not None and named is not out.dtype:
        raise RuntimeError(f"dtype {named.type_name} does not match dtype of out parameter ({out.dtype.type_name})")
    return out.dtype


def check_bounds(low, high, dtype):
    """Raise RuntimeError unless low < high and the dtype can hold all integers from low to high - 1."""
    if 0 <= low < high <= 128 and dtype.numpy.kind in "iuf":  # which all of these dtypes can hold
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
    """Return the bits of precision of a floating-point dtype: it holds all integers up to 2 to this power."""
    return {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[dtype.name]


@cache
def limits(dtype):
    """Return the range of integers drawn for a dtype: all that it can hold; for floating point, those of int64."""
    if dtype.numpy.kind == "b":
        return 0, 1
    info = np.iinfo(dtype.numpy if dtype.numpy.kind in "iu" else np.int64)
    return info.min, info.max


# -- gradients and device --


def cannot_require_grad(requires_grad, tensor, function):
    """Return the error for a non-bool `requires_grad`, or for a dtype that has no gradients."""
    if type(requires_grad) is not bool:
        return TypeError(
            f"{function}(): argument 'requires_grad' must be bool, not {messages.type_name(requires_grad)}"
        )
    return RuntimeError(
        "Only Tensors of floating point and complex dtype can require gradients\n"
        f"  this one would be {tensor.dtype}: pass floating-point data, as in [1.0, 2.0], or dtype=torch.float32"
    )


def out_requires_grad(function):
    """Return the error for an `out` that requires grad."""
    return RuntimeError(
        f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


def pinned_place(index, can_pin):
    """Return the place of a tensor requested with `pin_memory=True` on the GPU `index`, or on the CPU for None."""
    if not cupy_library.is_available():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    if index is not None:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if not can_pin:
        raise RuntimeError("pin_memory=True is not available for this function: call .pin_memory() on its result")
    return cupy_library.PINNED


def warn_copy(call):
    """Warn about a tensor passed as data."""
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {call}."
    )


def of_samples(data, wanted, requires_grad):
    """Copy a tensor that differs between the samples of `vmap`; return None for other data."""
    if not isinstance(data, Tensor) or not has_samples(data):
        return None
    copy = data.detach().clone()
    return (copy if wanted is None else copy.to(wanted)).requires_grad_(bool(requires_grad))


def unknown_keyword(function, named):
    """Return the error for a keyword that functions of a size do not have."""
    unknown = next(name for name in named if name != "size")
    return TypeError(f"{function}() got an unexpected keyword argument '{unknown}'{suggestion(unknown, KEYWORDS)}")
