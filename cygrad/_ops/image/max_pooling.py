"""Max pooling of images: with windows of fixed size, and adaptive, with a given number of windows.

Each op saves the indices of its results' elements; the gradient of a result goes to that element.
"""

import math
from functools import lru_cache

import numpy as np

from cygrad._core.graph.dual import is_recorded, keep
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    IMAGE,
    IMAGE_GRADIENT,
    IN1,
    METHOD_ONLY,
    declare,
    facts,
    publish,
    registry,
    shown,
)
from cygrad._core.graph.record import record_outputs
from cygrad._core.registry.dispatch import is_asked
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.image import max_pooling as kernels
from cygrad._kernels.cpu.image.window_geometry import Geometry, geometry
from cygrad._kernels.device.cupy_library import gpu_class, on_device
from cygrad._library import later
from cygrad._ops.base.arguments import require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.creation import zeros
from cygrad._ops.base.views import flatten, reshape, squeeze, unsqueeze
from cygrad._ops.image.pooling_common import adaptive_spans, check_elements, numbers, output_size, places, windows
from cygrad._ops.indexing.gathering import put_back

on_gpus = later("cygrad._kernels.gpu.image.max_pooling")  # needed only for GPU arrays

ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY  # found in nn.functional
IMAGES = ELSEWHERE | IMAGE | IMAGE_GRADIENT  # PyTorch's results of other poolings are contiguous


def maxima_rule(n, g):
    shape, dims = n.args[:2]
    start = len(shape) - dims
    if 0 in shape:
        return zeros(shape, dtype=g.dtype, device=g.device)
    flat = *shape[:start], math.prod(shape[start:])
    g, index = flatten(g, start), flatten(n.saved(1), start)
    return reshape(put_back(g, start, index, flat, _added(array_of(g), array_of(index), n.args[2], flat)), shape)


def _added(g, index, how, shape):
    """Return the gradient by a kernel that knows the windows, or None where there is none."""
    where = how and how[-1]
    if not isinstance(where, Geometry) or type(g) is not gpu_class() or not on_gpus.has_gradient(g, where):
        return None
    with on_device(g.device.id):
        return on_gpus.to_maxima(g, index, where, shape)


def choosing(name, node, flags=ELSEWHERE, **row):
    return declare(name, maxima_rule, saves=(0, IN1), flags=flags, node=node, inputs="self result1", **row)


WINDOWS = {"kernel_size": (2, 0), "padding": (2, 2), "dilation": (2, 3), "ceil_mode": (2, 4)}
MAX_POOL = {
    2: choosing(
        "max_pool2d_with_indices", "MaxPool2DWithIndicesBackward0", IMAGES, derived=WINDOWS, float8="max_pool2d"
    ),
    3: choosing(
        "max_pool3d_with_indices", "MaxPool3DWithIndicesBackward0", IMAGES, derived=WINDOWS, float8="max_pool3d"
    ),
}
ADAPTIVE = {
    2: choosing("adaptive_max_pool2d_with_indices", "AdaptiveMaxPool2DBackward0", IMAGES, float8="adaptive_max_pool2d"),
    3: choosing("adaptive_max_pool3d_with_indices", "AdaptiveMaxPool3DBackward0", float8="adaptive_max_pool3d_cpu"),
}


def recorded(row, t, values, places, dims, how=None, hint=None):
    """Return (values, indices) as tensors; `places` may be None if nothing is recorded. `how`: the call's arguments.

    `hint`: those for modes and classes of `__torch_dispatch__`, if they differ.
    """
    array = array_of(t)
    if values.dtype is not array.dtype:
        values = in_dtype(values, array.dtype)
    if places is None:
        return record_outputs(row, (values,), (t,), None, 1, hint or (how,))[0], None
    value, index = record_outputs(row, (values, places), (t,), (array.shape, dims, how), 1, hint or (how,))
    keep(value, 1, index)
    return value, index


# -- windows of fixed size --


def pool(function, dims, input, kernel_size, stride, padding, dilation, ceil_mode, with_places):
    t = require(input, function)
    where = windows(t, function, kernel_size, stride, padding, dilation, ceil_mode, dims)
    check_elements(t, function)
    with_places = with_places or is_recorded(t) or is_asked((t,), {})
    values, places = kernels.of_windows(as_float32(array_of(t)), where, with_places)
    how = *where.given, ceil_mode
    return recorded(MAX_POOL[dims], t, values, places, dims, (*how, where), (how,))


def pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, with_places):
    """Run 2-d `pool` on images of one row."""
    t = require(input, "max_pool1d")
    where = windows(t, "max_pool1d", kernel_size, stride, padding, dilation, ceil_mode, 1, results1d)
    check_elements(t, "max_pool1d_impl", with_places)
    if not (is_recorded(t) or is_asked((t,), {})):  # without a graph, the squeeze and unsqueeze nodes are not needed
        values, places = kernels.of_windows(as_float32(array_of(t)), where, with_places)
        return recorded(MAX_POOL[2], t, values, places, 1)
    kernel, stride, padding, dilation = where.given
    given = ((1, *kernel), (1, *stride), (0, *padding), (1, *dilation), ceil_mode, with_places)
    values, places = pool("max_pool2d", 2, unsqueeze(t, -2), *given)
    return squeeze(values, -2), None if places is None else squeeze(places, -2)


def results1d(shape, kernel, stride, padding, dilation, ceil_mode, dims):
    """Check the arguments and return the number of windows along a sequence."""
    (kernel,), (stride,), (padding,), (dilation,) = kernel, stride, padding, dilation
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(shape)}"
        )
    for name, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    reach = shape[-1] + 2 * padding - dilation * (kernel - 1) - 1
    if reach < 0 and not (ceil_mode and -(-reach // stride) + 1 > 0):
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {reach // stride + 1}")
    return (places(shape[-1], kernel, stride, padding, dilation, ceil_mode),)


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Return (values, indices) of `max_pool1d`.

    >>> import cygrad
    >>> cygrad.max_pool1d_with_indices(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Return (values, indices) of `max_pool2d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool2d_with_indices(cygrad.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Return (values, indices) of `max_pool3d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool3d_with_indices(cygrad.tensor([[[[1.0, 3.0], [2.0, 0.0]]]]), (1, 2, 2))
    (tensor([[[[3.]]]]), tensor([[[[1]]]]))
    """
    return pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the maximum of each window of a sequence ([n,] channels, length); see `max_pool2d`.

    >>> import cygrad
    >>> cygrad.max_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    found = pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return found if return_indices else found[0]


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the maximum of each window of images ([n,] channels, height, width).

    out[i, j] = max of input[i * stride - padding + dilation * k, j * stride - padding + dilation * l] over
    k, l < kernel_size. The result has floor((height + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1) rows;
    the number of columns follows in the same way.

    `kernel_size` is the window size, `stride` the distance between windows (by default `kernel_size`), `padding` how
    far windows extend beyond the image, at most half of the window size, and `dilation` the distance between elements
    of a window; each is an int, or one for each dimension. With `ceil_mode`, windows at the end may extend further.
    With `return_indices`, returns a tuple (values, indices into each flattened image).

    Saves the indices if a gradient is needed. Gradient: g at the position of the maximum, the first one if there are
    several. NaN counts as largest. Raises RuntimeError for windows that do not fit, NotImplementedError for complex
    numbers.

    >>> import cygrad
    >>> cygrad.max_pool2d(cygrad.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    found = pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return found if return_indices else found[0]


@facts(autocast="float32")
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Return the maximum of each window of volumes ([n,] channels, depth, height, width); see `max_pool2d`.

    >>> import cygrad
    >>> cygrad.max_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    found = pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return found if return_indices else found[0]


# -- a given number of windows --


@lru_cache(256)
def adaptive_places(image, size):
    """Return the indices (windows, taps) that windows cover along a dimension; shorter windows repeat their last."""
    first, last = adaptive_spans(image, size)
    return np.minimum(first[:, None] + np.arange((last - first).max(initial=0)), last[:, None] - 1)


def adaptive(dims, input, size):
    function = f"adaptive_max_pool{dims}d"
    t = require(input, function)
    if isinstance(size, (tuple, list)) and t.dim() <= len(size):
        raise ValueError(f"Input dimension should be at least {len(size) + 1}\n  but its shape is {list(t.shape)}")
    size = output_size(size, t, function, dims)
    if len(size) != dims:
        raise RuntimeError(f"{function}(): internal error: output_size.size() must be {dims}")
    if t.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"{function}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(t.shape)}")
    shape = array_of(t).shape
    for d in range(max(len(shape) - dims - 1, 1), len(shape)):
        if shape[d] == 0:
            raise RuntimeError(
                f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )
    if min(size) < 0:
        raise RuntimeError(f"{function}(): elements of output_size must not be negative, but got {list(size)}")
    check_elements(t, function, integers=False)
    checked_lengths((*shape[: len(shape) - dims], *size))
    image = shape[len(shape) - dims :]
    if all(m and n % m == 0 for n, m in zip(image, size)):
        kernel = tuple([n // m for n, m in zip(image, size)])
        where = geometry(image, kernel, size, kernel, (1,) * dims, (0,) * dims)
        values, places = kernels.of_windows(as_float32(array_of(t)), where, True)
    else:
        tables = tuple(map(adaptive_places, image, size))
        values, places = kernels.of_places(as_float32(array_of(t)), dims, tables)
    return recorded(ADAPTIVE[dims], t, values, places, dims, (size,))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """Return (values, indices) of `adaptive_max_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool1d_with_indices(cygrad.tensor([[1.0, 3.0, 2.0]]), 1)
    (tensor([[3.]]), tensor([[1]]))
    """
    t = require(input, "adaptive_max_pool1d")
    if t.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {t.dim()}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for adaptive_max_pool1d)"
        )
    (size,) = numbers(output_size, "adaptive_max_pool1d", "output_size", 2, 1)
    values, places = adaptive(2, unsqueeze(t, -2), (1, size))
    return squeeze(values, -2), squeeze(places, -2)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """Return (values, indices) of `adaptive_max_pool2d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool2d_with_indices(cygrad.tensor([[[1.0, 3.0, 2.0]]]), 1)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return adaptive(2, input, output_size)


@facts(autocast="float32")
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """Return (values, indices) of `adaptive_max_pool3d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool3d_with_indices(cygrad.tensor([[[[1.0, 3.0, 2.0]]]]), 1)
    (tensor([[[[3.]]]]), tensor([[[[1]]]]))
    """
    return adaptive(3, input, output_size)


@rule(
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices"
)
def _max_pool(call):
    _, dims, how = call.needed_args()
    images = call.samples(call.inputs[0])
    found = registry[call.key].entry(images.flatten(0, -dims - 2), *how)
    return [call.shaped(part, out.shape) for part, out in zip(found, call.outs, strict=False)]


@shown
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Return the maxima of `output_size` windows that cover a sequence; see `adaptive_max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool1d(cygrad.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[3., 3.]])
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


@facts(in_python=True)
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Return the maxima of a given number of windows that cover images ([n,] channels, height, width).

    `output_size` is (rows, columns) of the result, or an int for both; None keeps the size of the input. Windows are as
    in `adaptive_avg_pool2d`; saved values and gradient as in `max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool2d(cygrad.arange(9.0).reshape(1, 3, 3), 2)
    tensor([[[4., 5.],
             [7., 8.]]])
    """
    found = adaptive(2, input, output_size)
    return found if return_indices else found[0]


@facts(autocast="float32", in_python=True)
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Return the maxima of a given number of windows that cover volumes; see `adaptive_max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool3d(cygrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    found = adaptive(3, input, output_size)
    return found if return_indices else found[0]


composite = {
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices"), FUNCTION_ONLY),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d_with_indices"), ELSEWHERE),
}
functions = publish(globals())
functions["adaptive_max_pool1d"] = adaptive_max_pool1d_with_indices  # in cygrad itself, this name returns both
