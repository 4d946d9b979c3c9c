"""From sparse tensors to their values and back, with gradients: all other functions are made of these and of dense ops.

The gradient of a sparse tensor is the gradient of each element of the dense tensor that it stands for, so if
coordinates
occur several times, each of the values there has the gradient of their sum. It is a sparse tensor itself, with
coalesced
coordinates, or dense.
"""

import math

import numpy as np

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import unregistered
from cygrad._core.graph.record import record_n
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._ops.sparse.tensor import array, is_sparse, recorded


def entries(tensor):
    """Return the values of a sparse tensor, as a dense tensor through which gradients flow back."""
    a = array(tensor)
    return record_n(VALUES, a.values, (tensor,), (a,))


def _values_rule(n, g):
    a = n.args[0]
    if isinstance(a, Compressed):
        return compressed(a.bounds, a.plain, g, a.shape, a.layout)
    merged, groups = merged_coordinates(a)
    if groups is not None:
        g = g.index_select(0, tensor_of(kernels.first_of_each(groups, merged.shape[1])))
    return built(merged, g, a.shape, True)


VALUES = unregistered("values", _values_rule, "ValuesBackward0")


def built(indices, values, shape, is_coalesced=False):
    """Return the sparse tensor with the array `indices` and the dense tensor `values`."""
    a = Coordinates(indices, array_of(values), shape, is_coalesced)
    return recorded(BUILT, a, (values,), (indices, values.shape))


def _built_rule(n, g):
    indices, shape = n.args
    return at_coordinates(g, indices).reshape(shape)


BUILT = unregistered("sparse_coo_tensor", _built_rule, "SparseCooTensorWithDimsAndTensorsBackward0", inputs="values")


def compressed(bounds, plain, values, shape, layout):
    """Return the compressed tensor with the arrays `bounds` and `plain` and the dense tensor `values`."""
    a = Compressed(bounds, plain, array_of(values), shape, layout)
    return recorded(COMPRESSED, a, (values,), (a,))


def _compressed_rule(n, g):
    a = n.args[0]
    if is_sparse(g) and _has_pattern(array(g), a):
        return entries(g)
    return at_coordinates(g, elements_of(a)).reshape(a.values.shape)


COMPRESSED = unregistered(
    "sparse_compressed_tensor", _compressed_rule, "SparseCompressedTensorBackward0", inputs="values"
)


def _has_pattern(a, other):
    return a is other or (
        isinstance(a, Compressed)
        and a.layout == other.layout
        and a.bounds is other.bounds
        and a.plain is other.plain
        and a.values.shape == other.values.shape
    )


def elements_of(a):
    """Return the coordinates of all elements of a `Compressed`, in the order in which `one_by_one` puts the values."""
    batches, count = a.bounds.shape[:-1], a.plain.shape[-1]
    matrices = math.prod(batches)  # not -1: no array tells how many there are if it has no elements
    bounds, plain = a.bounds.reshape(matrices, a.bounds.shape[-1]), a.plain.reshape(matrices, count)
    compressed_axis = (
        np.concatenate([kernels.rows_of(each) for each in bounds])
        if len(bounds)
        else np.zeros(0, np.int64, like=bounds)
    )
    other_axis = plain.reshape(-1)
    rows, columns = (compressed_axis, other_axis) if a.is_by_row else (other_axis, compressed_axis)
    batch = kernels.coordinates_of(np.repeat(np.arange(len(bounds), like=bounds), count), batches)
    if a.n_block:
        height, width = a.values.shape[a.n_batch + 1 : a.n_batch + 3]
        inner = kernels.coordinates_of(np.arange(height * width, like=bounds), (height, width))
        rows = (rows[:, None] * height + inner[0]).reshape(-1)
        columns = (columns[:, None] * width + inner[1]).reshape(-1)
        batch = np.repeat(batch, height * width, axis=1)
    return np.concatenate([batch, rows[None], columns[None]]).astype(np.int64, copy=False)


def one_by_one(values, a):
    """Return the values of a `Compressed`, a tensor, as one row for each element of its matrices."""
    whole = a.n_batch + 1 + a.n_block
    return values.reshape(math.prod(a.values.shape[:whole]), *a.values.shape[whole:])


# -- coordinates --


def merged_coordinates(a):
    """Return the distinct coordinates, and which of them each value has, or None if each has its own, in order."""
    if a.is_coalesced:
        return a.indices, None
    return kernels.grouped(a.indices, a.shape[: len(a.indices)])


def coalesce(tensor):
    """Return a sparse tensor whose coordinates are in order and occur once; itself if it already is one."""
    a = array(tensor)
    if a.is_coalesced:
        return tensor
    merged, groups = merged_coordinates(a)
    values = entries(tensor)
    if groups is not None:
        values = summed(values, groups, merged.shape[1])
    return built(merged, values, a.shape, True)


def summed(values, groups, count):
    """Return the sums of the values of each group; of booleans, whether one of them is true."""
    if values.dtype.name == "bool":
        return summed(values.int(), groups, count) > 0
    if array_of(values).dtype.name in ("float16", "bfloat16"):
        return summed(values.float(), groups, count).to(values.dtype)
    return values.new_zeros((count, *values.shape[1:])).index_add(0, tensor_of(groups), values)


def at_coordinates(tensor, indices):
    """Return the elements of a dense or sparse tensor at coordinates of its first dimensions, one row for each."""
    if is_sparse(tensor):
        a = array(tensor)
        if not isinstance(a, Coordinates) or len(a.indices) != len(indices):
            return at_coordinates(tensor.to_dense(), indices)
        tensor = coalesce(tensor)
        a = array(tensor)
        places, there = kernels.looked_up(a.indices, indices, a.shape[: len(indices)])
        values = entries(tensor)
        if not len(values):
            return values.new_zeros((indices.shape[1], *values.shape[1:]))
        found = values.index_select(0, tensor_of(places))
        if bool(there.all()):
            return found
        return found.masked_fill(tensor_of(~there).reshape(-1, *(1,) * (found.ndim - 1)), 0)
    if not len(indices):
        return tensor.unsqueeze(0).expand(indices.shape[1], *tensor.shape)
    return tensor[tuple(tensor_of(row) for row in indices)]


def with_values(tensor, values, shape=None):
    """Return a tensor with the coordinates of a sparse tensor and other values."""
    a = array(tensor)
    if isinstance(a, Compressed):
        return compressed(a.bounds, a.plain, values, a.shape, a.layout)
    return beside(a, a.indices, values, a.shape if shape is None else shape)


def beside(a, indices, values, shape):
    """Return the sparse tensor of these parts, which counts as coalesced if the sparse array `a` does."""
    found = built(indices, values, shape)
    array(found).is_coalesced = a.is_coalesced
    return found
