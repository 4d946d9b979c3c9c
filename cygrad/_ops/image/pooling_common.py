"""Argument checks of pooling functions, with PyTorch's errors, and the windows of adaptive pooling."""

from functools import lru_cache

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._kernels.cpu.image.window_geometry import geometry
from cygrad._ops.base.arguments import integer, integers, is_integer

NUMBERS = {1: "one", 2: "two", 3: "three"}


def numbers(value, function, name, position, dims, empty=None):
    """Expand an int, or a list of one or `dims` ints, to `dims` ints; `empty` replaces None and the empty list."""
    if value is None and empty is not None:
        return empty
    if type(value) is int and 0 <= value < 1 << 31:
        return (value,) * dims
    if is_integer(value):
        return (integer(value, function, name, position),) * dims
    given = integers(value, function, name, position)
    if not given and empty is not None:
        return empty
    if len(given) == 1:
        return given * dims
    if len(given) != dims == 1 and name == "output_size":
        raise RuntimeError(f"{function}() argument 'output_size' should contain one int (got {len(given)})")
    if len(given) != dims:
        text = "be omitted, a single int" if name == "stride" else "be a single int"
        many = "tuple of one int" if dims == 1 else f"tuple of {NUMBERS[dims]} ints"
        raise RuntimeError(f"{function}: {name} must either {text}, or a {many}")
    return given


def results(shape, kernel, stride, padding, dilation, ceil_mode, dims):
    """Check the arguments and return the number of windows along each dimension."""
    _check_dimensions(shape, dims)
    _check_numbers(kernel, stride, padding, dilation)
    check_images(shape, dims)
    image = shape[len(shape) - dims :]
    if any(p > k // 2 for k, p in zip(kernel, padding)):
        if dims == 2:
            text = f"padW = {padding[1]}, padH = {padding[0]}, kW = {kernel[1]}, kH = {kernel[0]}"
        else:
            sizes = (("k", kernel), ("pad", padding))
            text = " ".join(f"{name}T: {n[0]} {name}W: {n[2]} {name}H: {n[1]}" for name, n in sizes)
        raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {text}")
    given = zip(image, kernel, stride, padding, dilation)
    size = tuple([places(n, k, s, p, d, ceil_mode) for n, k, s, p, d in given])
    if min(size) < 1:
        channels = shape[len(shape) - dims - 1]
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, (channels, *image)))}). Calculated output size: "
            f"({'x'.join(map(str, (channels, *size)))}). Output size is too small"
        )
    return size


def _check_numbers(kernel, stride, padding, dilation):
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {words('k', kernel)}")
    if min(stride) < 0:
        raise RuntimeError(f"stride should be greater than zero, but got {words('d', stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {words('dilation', dilation)}")
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )


def windows(t, function, kernel_size, stride, padding, dilation, ceil_mode, dims, results=results):
    """Return the geometry of the windows on a tensor's images. `results` checks the arguments and counts windows."""
    given = kernel_size, stride, padding, dilation
    if type(ceil_mode) is not bool:
        messages.check_flag(function, "ceil_mode", 6, ceil_mode)
    if not (type(kernel_size) is type(padding) is type(dilation) is int and (stride is None or type(stride) is int)):
        given = _each(function, dims, *given)  # check types before the cache, for which 1.0 and True equal 1
    return _windows(array_of(t).shape, function, dims, results, not ceil_mode, *given)


def _each(function, dims, kernel_size, stride, padding, dilation):
    kernel = numbers(kernel_size, function, "kernel_size", 2, dims)
    stride = numbers(stride, function, "stride", 3, dims, kernel)
    padding = numbers(padding, function, "padding", 4, dims)
    return kernel, stride, padding, numbers(dilation, function, "dilation", 5, dims)


@lru_cache(256)
def _windows(shape, function, dims, results, rounds_down, *given):
    kernel, stride, padding, dilation = _each(function, dims, *given)
    size = results(shape, kernel, stride, padding, dilation, not rounds_down, dims)
    return geometry(shape[len(shape) - dims :], kernel, size, stride, dilation, padding)


def words(name, values):
    letters = "THW"[-len(values) :]
    return " ".join(f"{name}{letter}: {value}" for letter, value in zip(letters, values))


def places(n, k, s, p, d, ceil_mode):
    """Return the number of windows; with `ceil_mode` the last may end beyond the image, but not start there."""
    reach = n + 2 * p - d * (k - 1) - 1
    if not ceil_mode:
        return reach // s + 1
    count = -(-reach // s) + 1
    return count - 1 if (count - 1) * s >= n + p else count


def _check_dimensions(shape, dims):
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")


def check_images(shape, dims):
    """Require `dims` spatial dimensions, channels and an optional batch; only the batch may be empty."""
    _check_dimensions(shape, dims)
    if 0 in shape[len(shape) - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )


def check_elements(t, kernel, integers=True):
    """Require floating-point elements, or with `integers` also integers, but not booleans."""
    dtype = t.dtype
    if dtype.is_floating_point or (integers and not dtype.is_complex and dtype.type_name != "Bool"):
        return
    raise messages.not_implemented_for(kernel, dtype)


def output_size(given, t, function, dims):
    """Return the output sizes of an adaptive pooling: given an int, or a list of ints and None, which keeps a size."""
    if is_integer(given):
        return (integer(given, function, "output_size", 2),) * dims
    if not isinstance(given, (list, tuple)):
        raise messages.wrong_type(function, "output_size", 2, "tuple of ints", given)
    if t.dim() <= len(given):
        raise ValueError(
            f"Input dimension should be at least {len(given) + 1}\n  the input has shape {tuple(t.shape)}: "
            f"{function} pools images with {dims} dimensions, behind those of the batch and the channels"
        )
    kept = t.shape[t.dim() - len(given) :]
    return integers([n if size is None else size for size, n in zip(given, kept)], function, "output_size", 2)


def adaptive_spans(image, size):
    """Return (start indices, end indices) of `size` windows that cover a dimension of length `image`."""
    numbers = np.arange(size)
    return numbers * image // max(size, 1), -(-(numbers + 1) * image // max(size, 1))
