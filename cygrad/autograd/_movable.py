"""The elements of tensors that `gradcheck` moves: all of a dense tensor, and those that a sparse one stores."""

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.tensor import Tensor
from cygrad._library import later

# Sparse tensors cost dense calls nothing until their module is imported.
_tensors = later("cygrad._ops.sparse.tensor")
_entries = later("cygrad._ops.sparse.entries")
arrays = later("cygrad._kernels.gpu.base.arrays")


def is_dense(value):
    """Whether a value is anything but a sparse tensor."""
    return not isinstance(value, Tensor) or value.layout._name == "strided"


def filled(value):
    """Return a sparse tensor that stores all elements of a sparse one, zeros too; any other value as it is."""
    if is_dense(value):
        return value
    dense = value.detach().to_dense()
    ones = dense.new_ones(dense.shape)
    if value.is_sparse:
        pattern = ones.to_sparse(value.sparse_dim())
    else:
        a = _tensors.array(value)
        sizes = a.values.shape[a.n_batch + 1 :][:2] if a.n_block else None
        pattern = ones.to_sparse(layout=value.layout, blocksize=sizes, dense_dim=value.dense_dim())
    return dense.sparse_mask(pattern).requires_grad_(value.requires_grad)


class Movable:
    """The elements of a tensor that can be moved.

    `values` is the array that holds them. Each has a column: the position of the element in the flattened dense tensor.
    """

    def __init__(self, tensor):
        self.shape = tuple(tensor.shape)
        if is_dense(tensor):
            self.values, self.places = array_of(tensor), None
            return
        a = _tensors.array(tensor)
        self.values = a.values
        if tensor.is_sparse:
            rows, inner = a.indices, a.values.shape[1:]
        else:
            rows, inner = _entries.elements_of(a), a.values.shape[a.n_batch + 1 + a.n_block :]
        sizes = self.shape[: len(rows)]
        count = int(np.prod(inner, dtype=np.int64))
        first = (
            np.ravel_multi_index(tuple(arrays.in_memory(rows)), sizes) if sizes else np.zeros(a.values.shape[0], int)
        )
        self.places = (first[:, None] * count + np.arange(count)).reshape(a.values.shape)

    def columns(self):
        """Return the columns of the elements."""
        return range(self.values.size) if self.places is None else map(int, self.places.reshape(-1))

    def index_of(self, column):
        """Return the index into `values` of the element with this column, or None if the tensor does not store it."""
        if self.places is None:
            return np.unravel_index(column, self.values.shape)
        found = np.argwhere(self.places == column)
        return tuple(found[0]) if len(found) else None

    def place_of(self, column):
        """Return the index of the element in the tensor."""
        return tuple(int(k) for k in np.unravel_index(column, self.shape)) if self.shape else ()

    def of(self, flat):
        """Return what a row of a Jacobian holds for each element, as an array like `values`."""
        return flat.reshape(self.values.shape) if self.places is None else flat[self.places]
