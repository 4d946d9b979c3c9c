"""Forms of the kernels in `cpu/indexing`: selecting, writing and adding by index, scans, positions."""

import numpy as np

from cygrad._kernels.meta.array import ndarray
from cygrad._kernels.meta.errors import no_shape
from cygrad._kernels.meta.forms.describing import changed, changes_first, like_first, refused
from cygrad._kernels.meta.indexing import shape_of

cumsum = cumprod = like_first
cumsum_within = cumprod_within = changed
nonzero = refused("nonzero")
masked_select = refused("masked_select")
add_rows = scatter = index_copy = fill_where = changed
add_at = changes_first
index_add = scatter_add = scatter_reduce = index_reduce = put = like_first


def index(kernel, array, indices):
    if any(each is not None and each.dtype.kind == "b" and not isinstance(each, np.ndarray) for each in indices):
        raise no_shape("nonzero")
    parts: list = []
    for each in indices:
        parts += [slice(None)] if each is None else each.nonzero() if each.dtype.kind == "b" else [each]
    return ndarray(shape_of(array.shape, tuple(parts)), array.dtype)


def masked_scatter(kernel, array, mask, source):
    return ndarray(np.broadcast_shapes(array.shape, mask.shape), array.dtype)


def index_put(kernel, array, indices, values, accumulate=False):
    return array


def index_sum(kernel, values, shape, indices):
    return ndarray(shape, values.dtype)


def index_select(kernel, array, axis, index):
    if not array.ndim:
        return ndarray((), array.dtype)
    return ndarray((*array.shape[:axis], *index.shape, *array.shape[axis + 1 :]), array.dtype)


def gather(kernel, array, axis, index):
    return ndarray(index.shape, array.dtype)


def scattered(kernel, shape, axis, index, source):
    return ndarray(shape, source.dtype)


def place_along(kernel, values, index, shape, axis, keepdim):
    return ndarray(shape, values.dtype)


def masked_fill(kernel, array, value, mask):
    return ndarray(np.broadcast_shapes(array.shape, mask.shape), array.dtype)


def take(kernel, array, numbers):
    return ndarray(numbers.shape, array.dtype)


def masked_first(kernel, array, mask, size):
    return ndarray((size,), array.dtype)


def shift(kernel, a, axis, steps, fill):
    return ndarray(a.shape, a.dtype)
