"""Convolution: three bilinear forms of images (n, channels, positions), filters and results.

`correlate` computes results from images and filters, `spread` images from results and filters, and `filter_gradient`
filters from images and results; each is the transpose of the others. In all of them, result position `o` reads image
position `o * stride + k * dilation - low` through filter tap `k`; positions outside the image are zero.

The work is done by matrix products over patches, arrays of shape (channels * taps, result positions). Patches are built
for a few images or a few rows of one image at a time, in scratch memory that stays in the cache.
"""

import math
from functools import lru_cache

import numpy as np

import cygrad._kernels.cpu.image.patches as images
from cygrad._kernels.cpu.base import chosen_algorithm
from cygrad._kernels.cpu.base import chunks as parts
from cygrad._kernels.cpu.base.arrays import new_array, zeros
from cygrad._kernels.cpu.base.matmul import matmul, matmul_into
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.image import (
    depthwise_convolution,
    patch_convolution,
    winograd_convolution,
)
from cygrad._kernels.device.dispatch import dispatching

LARGE_FILTERS = 8  # chunks' worth of elements; filter gradients above this are computed by some filters at a time


def patches(x, where, blocks):
    """Yield each block with its patches (channels * taps, images * positions), which the next block overwrites."""
    channels, taps = x.shape[1], math.prod(where.kernel)
    width = math.prod(where.size[1:])
    memory = done = None
    compiled = are_compiled(x, where)
    for block in blocks:
        n0, n1, first, last = block
        shape = (channels, taps, n1 - n0, last - first, *where.size[1:])
        length = math.prod(shape)
        if memory is None:
            memory = new_array((length,), x.dtype.num)
        if compiled:
            images.copy_patches(as_images(x[n0:n1]), memory[:length], geometry_of(where, block))
            yield block, memory[:length].reshape(channels * taps, -1)
            continue
        columns = memory[:length].reshape(shape)
        if (shape, first if shape[3] != where.size[0] else 0) != done:
            done = shape, first if shape[3] != where.size[0] else 0
            joins = joins_of(where, first, last)
            if any(where.low) or len(joins) < taps or reaches_beyond(where):
                columns[...] = 0
        planes = x[n0:n1].swapaxes(0, 1)
        for tap, there, here in joins:
            columns[(slice(None), tap, slice(None), *there)] = planes[(slice(None), slice(None), *here)]
        yield block, columns.reshape(channels * taps, (n1 - n0) * (last - first) * width)


@lru_cache(64)
def joins_of(where, first, last):
    """`Geometry.taps` as a list."""
    return list(where.taps(first, last))


def are_compiled(x, where):
    """Whether compiled loops build and add the patches: for one or two dimensions."""
    return len(where.size) <= 2 and images.has_loops(x)


def as_images(x):
    """The images as dense arrays with two spatial dimensions."""
    x = np.ascontiguousarray(x)
    return x if x.ndim == 4 else x[:, :, None]


def geometry_of(where, block):
    """The geometry of the rows of a block, as the compiled loops expect it."""
    return where.flat(*block[2:])


def reaches_beyond(where):
    """Whether a window extends beyond the end of the image."""
    return any(
        (size - 1) * stride + (kernel - 1) * dilation - low >= image
        for image, kernel, size, stride, dilation, low in zip(
            where.image, where.kernel, where.size, where.stride, where.dilation, where.low
        )
    )


def places(a, block):
    """The part of results (n, channels, positions) that a block covers, as (channels, images * positions).

    A view for a single image.
    """
    n0, n1, first, last = block
    if n1 - n0 == 1:
        flat = a[n0].reshape(a.shape[1], -1)
        row = flat.shape[1] // a.shape[2]
        return flat[:, first * row : last * row]
    return a[n0:n1].swapaxes(0, 1).reshape(a.shape[1], -1)


def grouped(a, groups):
    """Split the rows of a matrix into groups: (groups, rows per group, columns)."""
    return a.reshape(groups, a.shape[0] // groups, a.shape[1])


def algorithm_for(a, filters, where, groups, is_spread=False):
    """Return the name of the algorithm for a convolution: "winograd", "patchwise", or one of `direct_algorithm_for`.

    `a` is the images, or for `spread` the results; `filters` is the shape of the filters. The caller falls back to a
    direct algorithm if the chosen one returns None, as Winograd's does for results that are not finite.
    """
    if winograd_convolution.suits(a, filters[1 if is_spread else 0], where.backwards if is_spread else where, groups):
        return "winograd"
    if patch_convolution.suits(a, filters, where, groups):
        return "patchwise"
    return direct_algorithm_for(filters, where, groups)


def is_depthwise(filters, groups):
    """Whether each channel has one filter of its own; `filters` is the shape of the filters."""
    return filters[0] == groups and filters[1] == 1 and groups > 1


def direct_algorithm_for(filters, where, groups):
    """Return "depthwise", "product" (one matrix product for all positions) or "patches" (products over patches)."""
    if is_depthwise(filters, groups):
        return "depthwise"
    return "product" if where.is_plain else "patches"


@silent
def correlate(x, w, b, where, groups):
    """Results (n, filters, *size) from images, filters (filters, channels / groups, *kernel) and a bias or None."""
    out = None
    algorithm = algorithm_for(x, w.shape, where, groups)
    if algorithm == "winograd":
        out = winograd_convolution.correlate(x, w, b, where)
    elif algorithm == "patchwise":
        out = patch_convolution.correlate(x, w, b, where, groups)
    if out is None:
        algorithm = direct_algorithm_for(w.shape, where, groups)
        out = plus(correlate_directly(x, w, where, groups), b)
    chosen_algorithm.note(algorithm)
    return out


def plus(out, b):
    """Add a bias, one number per filter, to results in place."""
    if b is not None:
        out += b.reshape((-1,) + (1,) * (out.ndim - 2))
    return out


def correlate_directly(x, w, where, groups):
    n, filters = len(x), len(w)
    algorithm = direct_algorithm_for(w.shape, where, groups)
    if algorithm == "depthwise":
        return depthwise_convolution.correlate(x, w, where)
    out = new_array((n, filters, *where.size), x.dtype.num)
    if not out.size:
        return out
    matrix = np.ascontiguousarray(w).reshape(groups, filters // groups, -1)
    if not matrix.size:
        out[...] = 0
        return out
    if algorithm == "product":
        x = np.ascontiguousarray(x)
        matmul_into(matrix, x.reshape(n, groups, w.shape[1], -1), out.reshape(n, groups, filters // groups, -1))
        return out
    for block, columns in patches(x, where, where.blocks(n, x.shape[1], x.itemsize, filters)):
        n0, n1 = block[:2]
        if n1 - n0 == 1:
            matmul_into(matrix, grouped(columns, groups), split_rows(places(out, block), groups))
        else:
            results = matmul(matrix, grouped(columns, groups)).reshape(filters, n1 - n0, *where.size)
            out[n0:n1] = results.swapaxes(0, 1)
    return out


def split_rows(a, groups):
    """`grouped` for a matrix, guaranteed to be a view."""
    return np.lib.stride_tricks.as_strided(
        a, (groups, a.shape[0] // groups, a.shape[1]), (a.strides[0] * (a.shape[0] // groups), *a.strides)
    )


def backwards(w, groups):
    """The filters for going back from results to images with stride 1."""
    filters, channels = w.shape[:2]
    w = w.reshape(groups, filters // groups, channels, *w.shape[2:]).swapaxes(1, 2)
    w = np.flip(w, tuple(range(3, w.ndim)))
    return w.reshape(groups * channels, filters // groups, *w.shape[3:])


@silent
def spread(g, w, b, where, groups):
    """Images (n, channels, *image) from results, filters and a bias or None.

    Except for the bias, the transpose of `correlate` with respect to its images.
    """
    out = None
    algorithm = algorithm_for(g, w.shape, where, groups, is_spread=True)
    if algorithm == "winograd":
        out = winograd_convolution.correlate(g, w, b, where.backwards, True)
        if out is not None:
            chosen_algorithm.note(algorithm)
            return out
    if algorithm == "patchwise" or algorithm == "winograd" and patch_convolution.suits(g, w.shape, where, groups):
        algorithm = "patchwise"
        out = patch_convolution.spread(g, w, where, groups)
    if out is None:
        algorithm = direct_algorithm_for(w.shape, where, groups)
        out = spread_directly(g, w, where, groups)
    chosen_algorithm.note(algorithm)
    return plus(out, b)


def spread_directly(g, w, where, groups):
    n, filters, channels = len(g), len(w), w.shape[1] * groups
    algorithm = direct_algorithm_for(w.shape, where, groups)
    if algorithm == "depthwise":
        return depthwise_convolution.spread(g, w, where)
    if algorithm == "product" and g.size and w.size:
        out = new_array((n, channels, *where.image), g.dtype.num)
        matrix = w.reshape(groups, filters // groups, w.shape[1]).swapaxes(1, 2)
        g = np.ascontiguousarray(g).reshape(n, groups, filters // groups, -1)
        matmul_into(matrix, g, out.reshape(n, groups, w.shape[1], -1))
        return out
    if set(where.stride) <= {1} and filters <= channels:  # copying patches is cheaper than adding them
        return correlate_directly(g, backwards(w, groups), where.backwards, groups)
    out = zeros((n, channels, *where.image), g.dtype.num)
    if not out.size or not g.size or not w.size:
        return out
    g = np.ascontiguousarray(g)
    matrix = np.ascontiguousarray(w).reshape(groups, filters // groups, -1).swapaxes(1, 2)
    joins: list = []
    rows = memory = None
    compiled = are_compiled(out, where)
    for block in where.blocks(n, channels, g.itemsize, filters):
        n0, n1, first, last = block
        if rows != (first, last):
            rows, joins = (first, last), list(where.taps(first, last))
        part = grouped(places(g, block), groups)
        shape = (groups, matrix.shape[1], part.shape[2])
        if memory is None:
            memory = new_array((math.prod(shape),), g.dtype.num)
        columns = matmul_into(matrix, part, memory[: math.prod(shape)].reshape(shape))
        if compiled:
            images.add_patches(as_images(out[n0:n1]), columns.reshape(-1), geometry_of(where, block))
            continue
        columns = columns.reshape(channels, -1, n1 - n0, last - first, *where.size[1:])
        planes = out[n0:n1].swapaxes(0, 1)
        for tap, there, here in joins:
            planes[(slice(None), slice(None), *here)] += columns[(slice(None), tap, slice(None), *there)]
    return out


@silent
def filter_gradient(x, g, where, groups):
    """Filters (filters, channels / groups, *kernel) from images and results: the transpose of `correlate` in them."""
    out = None
    algorithm = algorithm_for(x, (g.shape[1], x.shape[1] // groups, *where.kernel), where, groups)
    if algorithm == "winograd":
        out = winograd_convolution.filter_gradient(x, g, where)
    elif algorithm == "patchwise":
        out = patch_convolution.filter_gradient(x, g, where, groups)
    if out is None:
        algorithm = direct_algorithm_for((g.shape[1], x.shape[1] // groups, *where.kernel), where, groups)
        out = filter_gradient_directly(x, g, where, groups)
    chosen_algorithm.note(algorithm)
    return out


def filter_gradient_directly(x, g, where, groups):
    n, channels, filters = len(x), x.shape[1] // groups, g.shape[1]
    shape = (filters, channels, *where.kernel)
    algorithm = direct_algorithm_for(shape, where, groups)
    if algorithm == "depthwise":
        return depthwise_convolution.filter_gradient(x, g, where)
    out = zeros((groups, filters // groups, channels * math.prod(where.kernel)), x.dtype.num)
    if not out.size or not x.size or not g.size:
        return out.reshape(shape)
    g = np.ascontiguousarray(g)
    if algorithm == "product":
        x = np.ascontiguousarray(x).reshape(n, groups, channels, -1)
        g = g.reshape(n, groups, filters // groups, -1)
        for i in range(n):
            out += matmul(g[i], x[i].swapaxes(1, 2))
        return out.reshape(shape)
    # Transposed, because BLAS takes 50% longer for a product of few rows with transposed columns.
    is_large = out.size > LARGE_FILTERS * parts.SIZE
    turned = out.swapaxes(1, 2) if is_large else zeros((groups, out.shape[2], out.shape[1]), x.dtype.num)
    step = max(1, out.shape[1] * parts.SIZE // out.size) if is_large else out.shape[1]
    for block, columns in patches(x, where, where.blocks(n, x.shape[1], x.itemsize, filters)):
        columns, results = grouped(columns, groups), grouped(places(g, block), groups).swapaxes(1, 2)
        for start in range(0, out.shape[1], step):
            some = (..., slice(start, start + step))
            total = turned[some]
            total += matmul(columns, results[some])
    return (out if is_large else np.ascontiguousarray(turned.swapaxes(1, 2))).reshape(shape)


dispatching(globals(), "correlate spread filter_gradient")
