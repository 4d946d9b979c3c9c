"""Fractional max pooling: windows at random positions, which can shrink images by non-integer factors.

Follows Graham, "Fractional max-pooling" (2014), with the pseudorandom sequences of overlapping windows described there.
"""

from typing import Any

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.kernel_call import as_float32
from cygrad._core.graph.opdef import facts, publish
from cygrad._kernels.cpu.base import chunks
from cygrad._kernels.cpu.image import max_pooling as kernels
from cygrad._ops.base.arguments import is_integer, require
from cygrad._ops.image.max_pooling import choosing, recorded
from cygrad._ops.image.pooling_common import numbers
from cygrad._ops.random.random import rand

FRACTIONAL = {
    dims: choosing(
        f"fractional_max_pool{dims}d_with_indices",
        f"FractionalMaxPool{dims}DBackward0",
        batching=None,
        float8="check_uniform_bounds",
        vmap_name=f"fractional_max_pool{dims}d",
    )
    for dims in (2, 3)
}
WORDS = ("time", "height", "width")


def starts(samples, image, size, kernel):
    """Return the start indices of the windows along one dimension (planes, size); `samples` are random in [0, 1)."""
    if size == 1:
        return np.zeros((len(samples), 1), np.int64, like=samples) + (image - kernel)
    kind = samples.dtype.type
    alpha = kind(image - kernel) / kind(size - 1)
    with np.errstate(all="ignore"):
        found = ((np.arange(size, like=samples).astype(kind) + samples[:, None]) * alpha).astype(np.int64)
        found -= (samples * alpha).astype(np.int64)[:, None]
    found[:, -1] = image - kernel
    return found


def pool(dims, input, kernel_size, output_size, output_ratio, samples):
    function = f"fractional_max_pool{dims}d"
    t = require(input, function)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(output_ratio) != dims:
            raise ValueError(f"{function} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(n * ratio) for n, ratio in zip(t.shape[t.dim() - dims :], output_ratio)]
    kernel = _lengths(kernel_size, function, "kernel_size", 2, dims)
    size = _lengths(output_size, function, "output_size", 3, dims)
    if t.dim() not in (dims + 1, dims + 2):
        if t.dim() < dims + 1:
            limit = max(t.dim(), 1)
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{limit}, {limit - 1}], but got {-dims - 1})"
            )
        raise RuntimeError(f"{function}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(t.shape)}")
    if not t.is_floating_point():
        raise messages.not_implemented_for("check_uniform_bounds", t.dtype)
    for d in range(t.dim() - dims - 1, t.dim()):
        if t.shape[d] == 0:
            raise RuntimeError(
                f"{function}(): Expected input to have non-zero size for non-batch dimensions, but got"
                f"{list(t.shape)} with dimension {d} being empty."
            )
    batch, channels = (1 if t.dim() == dims + 1 else t.shape[0]), t.shape[t.dim() - dims - 1]
    if samples is None:
        samples = rand(batch, channels, dims, dtype=t.dtype, device=t.device)
    check_samples(t, samples, batch, channels, dims)
    image = tuple(t.shape[t.dim() - dims :])
    for word, n, k, m in zip(WORDS[-dims:], image, kernel, size):
        if k < 1 or m < 0:
            raise RuntimeError(
                f"{function}(): kernel_size must be positive and output_size not negative, but got {k} and {m}"
            )
        if m + k - 1 > n - (dims == 3):
            raise RuntimeError(f"{function}(): pool {word} {k} too large relative to input {word} {n}")
    drawn = as_float32(array_of(samples))[:batch].reshape(-1, dims)  # there may be more than images
    if t.numel() and min(size):
        values, places = maxima(as_float32(array_of(t)), dims, lambda part: windows(drawn[part], image, size, kernel))
    else:
        shape, like = (*t.shape[: t.dim() - dims], *size), array_of(t)
        values, places = np.empty(shape, like.dtype, like=like), np.empty(shape, np.int64, like=like)
    return recorded(FRACTIONAL[dims], t, values, places, dims, hint=(kernel, size, samples))


def _lengths(value, function, name, position, dims):
    """Expand an int to `dims` of them; a sequence must have as many."""
    if isinstance(value, (tuple, list)) and len(value) != dims and all(map(is_integer, value)):
        many = "three Ints" if dims == 3 else "Ints"
        raise RuntimeError(f"{function}: {name} must either be a single Int or tuple of {many}")
    return numbers(value, function, name, position, dims)


def maxima(array, dims, tables_of):
    """Return maxima and their indices, for windows that differ between planes; large images are processed in chunks."""
    if array.size <= chunks.SIZE or not isinstance(array, np.ndarray):
        return kernels.of_places(array, dims, tables_of(slice(None)))
    outer, image = array.shape[: array.ndim - dims], array.shape[array.ndim - dims :]
    planes = array.reshape(-1, *image)
    step = max(1, len(planes) * chunks.SIZE // array.size)
    values: Any = None
    for start in range(0, len(planes), step):
        part = slice(start, start + step)
        found = kernels.of_places(planes[part], dims, tables_of(part))
        if values is None:
            values, places = (np.empty((len(planes), *one.shape[1:]), one.dtype) for one in found)
        values[part], places[part] = found
        del found  # before the next chunk is computed
    return tuple(one.reshape(*outer, *one.shape[1:]) for one in (values, places))


def check_samples(t, samples, batch, channels, dims):
    if samples.dtype is not t.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions got {samples.dim()}")
    for d, wanted in enumerate((batch, channels, dims)):
        if samples.shape[d] < wanted if d == 0 else samples.shape[d] != wanted:
            sign = (
                "no less then batch size"
                if d == 0
                else "equals to input channel size"
                if d == 1
                else f"equals to {dims}"
            )
            raise RuntimeError(f"Expect _random_samples.size({d}) {sign}; got {samples.shape[d]}.")


def windows(samples, image, size, kernel):
    """Return the indices (planes, windows, taps) of each plane's windows, dimension by dimension."""
    order = range(3) if len(image) == 3 else (1, 0)  # of two numbers, the first is for the width
    return [
        starts(samples[:, i], *of_dim)[..., None] + np.arange(of_dim[-1], like=samples)
        for i, of_dim in zip(order, zip(image, size, kernel))
    ]


@facts(autocast="float32")
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return (values, indices) of `fractional_max_pool2d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool2d_with_indices(cygrad.tensor([[[1.0, 3.0]]]), (1, 2), (1, 1))
    (tensor([[[3.]]]), tensor([[[1]]]))
    """
    return pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@facts(autocast="float32")
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Return (values, indices) of `fractional_max_pool3d`.

    Saves the indices.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool3d_with_indices(cygrad.ones(1, 2, 2, 3), (1, 1, 2), 1)
    (tensor([[[[1.]]]]), tensor([[[[10]]]]))
    """
    return pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@facts(autocast="float32")
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Max pooling over windows at random positions of images ([n,] channels, height, width).

    Of m windows of length k along n elements, window i begins at int((i + u) a) - int(u a), where a = (n - k) / (m - 1)
    and u is uniform in [0, 1); the last one begins at n - k.

    The result has `output_size`, or the size of the image times `output_ratio`. Window positions differ between
    channels; they come from random numbers of the default generator, or from `_random_samples` (n, channels, 2). Saved
    values and gradient are as in `max_pool2d`. Raises RuntimeError for windows that do not fit, ValueError if no size
    is given.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool2d(cygrad.ones(1, 5, 5), 2, output_ratio=(0.6, 0.6)).shape
    torch.Size([1, 3, 3])
    """
    found = pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@facts(autocast="float32")
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Max pooling over windows at random positions of volumes; see `fractional_max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool3d(cygrad.ones(1, 5, 5, 5), 2, output_size=3).shape
    torch.Size([1, 3, 3, 3])
    """
    found = pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


functions = publish(globals())
