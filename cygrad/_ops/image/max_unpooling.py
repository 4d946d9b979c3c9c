"""Max unpooling: scatters elements to the positions that pooling returned, zeros elsewhere."""

import math

import numpy as np

from cygrad._core.errors.messages import not_implemented_for
from cygrad._core.graph.dual import keep
from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IMAGE, IMAGE_GRADIENT, IN1, METHOD_ONLY, declare, facts, publish
from cygrad._core.graph.record import record_n
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._kernels.cpu.image import max_pooling as kernels
from cygrad._ops.base.arguments import require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import first_outside
from cygrad._ops.base.views import flatten, reshape, squeeze, unsqueeze
from cygrad._ops.image.pooling_common import numbers
from cygrad._ops.indexing.gathering import gather

ELSEWHERE = FUNCTION_ONLY | METHOD_ONLY  # found in nn.functional


def unpool_rule(n, g):
    start = g.dim() - n.args[0]
    index = n.saved(1)
    return reshape(gather(flatten(g, start), -1, flatten(index, start)), tuple(index.shape))


def unpooling(dims):
    flags = ELSEWHERE | IMAGE_GRADIENT | (IMAGE if dims == 2 else 0)  # PyTorch's volumes are contiguous
    return declare(
        f"max_unpool{dims}d",
        unpool_rule,
        saves=(0, IN1),
        flags=flags,
        inputs="self indices",
        float8=f"max_unpool{dims}d",
    )


UNPOOL = {2: unpooling(2), 3: unpooling(3)}


def wanted_size(t, dims, kernel, stride, padding, size):
    """Return the size of the result; raises if pooling could not have reduced `size` to that of `t`."""
    image = t.shape[t.dim() - dims :]
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(image, kernel, stride, padding)]
    if size is None:
        return usual
    if len(size) == dims + 2:
        size = size[2:]
    if len(size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(size)}'"
        )
    for d, (n, s) in enumerate(zip(usual, stride)):
        if not n - s < size[d] < n + s:
            raise ValueError(f'invalid output_size "{size}" (dim {d} must be between {n - s} and {n + s})')
    return list(size)


def unpool(dims, t, indices, size, how=()):
    """Scatter the last `dims` dimensions of t into zeros of `size`; `how`: the stride and padding of volumes."""
    row, index = UNPOOL[dims], array_of(indices)
    if index.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.type_name}")
    if t.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to {row.name} should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with {t.dim()} dims"
        )
    if t.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(t.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    if not t.is_floating_point():
        raise not_implemented_for(row.name, t.dtype)
    count = math.prod(size)
    wrong = first_outside(index, 0, count)
    if wrong is not None:
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})"
        )
    others = tuple(t.shape[: t.dim() - dims])
    checked_lengths((*others, *size))
    planes = math.prod(others)
    rows = planes, math.prod(t.shape[t.dim() - dims :])
    out = kernels.unpooled(array_of(t).reshape(rows), index.reshape(rows), count)
    result = record_n(row, out.reshape(*others, *size), (t,), (dims,), (indices, *how))
    keep(result, 1, indices)
    return result


def read(function, dims, input, indices, kernel_size, stride, padding, output_size):
    """Return (input, indices, size of the result, the stride and padding), after checks."""
    t, indices = require(input, function), require(indices, function, "indices", 2)
    kernel = numbers(kernel_size, function, "kernel_size", 3, dims)
    stride = numbers(stride, function, "stride", 4, dims, kernel)
    padding = numbers(padding, function, "padding", 5, dims)
    return t, indices, wanted_size(t, dims, kernel, stride, padding, output_size), (stride, padding)


@facts(devices="together", autocast="float32", in_python=True)
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Invert `max_pool1d`, given its values and indices; see `max_unpool2d`.

    >>> import cygrad
    >>> F = cygrad.nn.functional
    >>> F.max_unpool1d(*F.max_pool1d(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True), 2)
    tensor([[0., 3., 2., 0.]])
    """
    t, indices, size, _ = read("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)
    return squeeze(unpool(2, unsqueeze(t, -1), unsqueeze(indices, -1), [*size, 1]), -1)


@facts(devices="together", autocast="float32", in_python=True)
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Invert `max_pool2d`, given its values and indices: the values at their positions, zeros elsewhere.

    `kernel_size`, `stride` and `padding` are those of the pooling; `output_size` is needed if images of several sizes
    pool to the same size. By default it has (rows - 1) stride - 2 padding + kernel_size rows. For repeated indices, the
    last value is used. Saves the indices. Gradient: g at these positions.

    Raises RuntimeError for indices that are not int64, do not have the shape of `input` or are out of bounds.

    >>> import cygrad
    >>> F = cygrad.nn.functional
    >>> F.max_unpool2d(*F.max_pool2d(cygrad.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, return_indices=True), 2)
    tensor([[[0., 3.],
             [0., 0.]]])
    """
    return unpool(2, *read("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)[:3])


@facts(devices="together", autocast="float32", in_python=True)
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Invert `max_pool3d`, given its values and indices; see `max_unpool2d`.

    Saves `indices`.

    >>> import cygrad
    >>> values, indices = cygrad.ones(1, 1, 1, 1), cygrad.tensor([[[[3]]]])
    >>> cygrad.nn.functional.max_unpool3d(values, indices, (1, 2, 2))
    tensor([[[[0., 0.],
              [0., 1.]]]])
    """
    return unpool(3, *read("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size))


@rule("max_unpool2d max_unpool3d")
def _max_unpool(call):
    t, index, (dims,) = call.inputs[0], call.kept[1], call.args
    images, places = (call.full(x).flatten(0, x.ndim - dims - 1) for x in (t, index))
    size = list(call.out.shape[t.ndim - dims :])
    return call.shaped(unpool(dims, images, places, size), call.out.shape)


composite = {"max_unpool1d": ELSEWHERE}
functions = publish(globals())
