"""Conversions of tensors: from dense to sparse and back, between sparse layouts, between dtypes and devices."""

from typing import Any

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import publish, unregistered
from cygrad._core.graph.record import record_n
from cygrad._core.tensor.predicates import layout as layout_type
from cygrad._core.tensor.predicates import layouts
from cygrad._core.types.device import check_device
from cygrad._core.types.dtypes import dtype as dtype_class
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._kernels.sparse.errors import not_for
from cygrad._ops.sparse.entries import (
    at_coordinates,
    beside,
    built,
    coalesce,
    compressed,
    elements_of,
    entries,
    merged_coordinates,
    one_by_one,
    with_values,
)
from cygrad._ops.sparse.tensor import array, is_sparse, recorded, wrapped

_BLOCKS = ("sparse_bsr", "sparse_bsc")


# -- to dense --


def _dense_rule(n, g):
    a, masked = n.args
    if not masked:
        return _laid_out_like(g, a)
    if isinstance(a, Compressed):
        return compressed(
            a.bounds, a.plain, at_coordinates(g, elements_of(a)).reshape(a.values.shape), a.shape, a.layout
        )
    merged, _ = merged_coordinates(a)
    return built(merged, at_coordinates(g, merged), a.shape, True)


def _laid_out_like(dense, a):
    """Return a dense tensor in the layout of a sparse array."""
    if isinstance(a, Coordinates):
        return to_sparse(dense, len(a.indices))
    whole = a.n_batch + 1 + a.n_block
    sizes = a.values.shape[a.n_batch + 1 : whole] if a.n_block else None
    return to_sparse(dense, layout=layouts[a.layout], blocksize=sizes, dense_dim=a.values.ndim - whole)


TO_DENSE = unregistered("to_dense", _dense_rule, "ToDenseBackward0")


def to_dense(self, dtype=None, *, masked_grad=None):
    """Return a dense tensor with the same elements.

    The gradient of a sparse tensor is sparse, with the same coordinates, or if `masked_grad` is false all that are
    not zero.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not is_sparse(self):
        return self if dtype is None else self.to(_checked_dtype(dtype))
    a = array(self)
    content = _spread(a)
    found = record_n(TO_DENSE, content, (self,), (a, masked_grad is not False))
    return found if dtype is None else found.to(_checked_dtype(dtype))


def _checked_dtype(wanted):
    if not isinstance(wanted, dtype_class):
        raise messages.wrong_type("to_dense", "dtype", 1, "torch.dtype", wanted)
    return wanted


def _spread(a):
    """Return the array of all elements of a sparse array."""
    values, places = tensor_of(a.values), a.indices if isinstance(a, Coordinates) else elements_of(a)
    if isinstance(a, Compressed):
        values = one_by_one(values, a)
    found = values.new_zeros(a.shape)
    add_at(found, places, values)
    return array_of(found)


def add_at(target, places, values):
    """Add values to a dense tensor in place, at coordinates of its first dimensions."""
    if not len(places):
        return target.add_(values.sum(0).to(target.dtype))
    if target.dtype.name == "bool":
        return target.copy_(add_at(target.int(), places, values.int()) > 0)
    return target.index_put_(tuple(tensor_of(row) for row in places), values.to(target.dtype), accumulate=True)


# -- from dense --


def _sparse_rule(n, g):
    return g.to_dense() if is_sparse(g) else g


TO_SPARSE = unregistered("to_sparse", _sparse_rule, "ToSparseBackward0")
takes_dense = {TO_SPARSE.node_name}  # the nodes of sparse tensors that take dense gradients


def takes_dense_gradient(a):
    """Whether elements of the gradient count where `a` has none: most nodes look only at their own coordinates."""
    return a.is_leaf or a.grad_fn.name() in takes_dense


def _of_dense(self, sparse_dim):
    a = array_of(self.detach())
    n = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= n <= self.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {n} is given")
    places = kernels.nonzero_coordinates(a, n)
    values = array_of(at_coordinates(tensor_of(a), places))
    return Coordinates(places, values, self.shape, True)


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """Return a sparse tensor with the same elements: of the layout `sparse_coo`, or of `layout`.

    `sparse_dim` is the number of dimensions with coordinates (all of them by default); the others become dimensions of
    the values. `blocksize`, a pair or one number for both, is the shape of the blocks in the layouts `sparse_bsr` and
    `sparse_bsc`; `dense_dim` the number of dimensions of the values in compressed layouts. Gradients pass through
    unchanged.

    >>> import cygrad
    >>> cygrad.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 0]]),
           values=tensor([2., 3.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    if layout is not None and not isinstance(layout, layout_type):
        raise TypeError(f"to_sparse(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    name = "sparse_coo" if layout is None else layout._name
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if sparse_dim is not None and layout is not None:
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    if name == "strided":
        return to_dense(self)
    if is_sparse(self):
        return _relaid(self, name, blocksize, sparse_dim)
    if name == "sparse_coo":
        if dense_dim is not None:
            sparse_dim = self.ndim - dense_dim
        return recorded(TO_SPARSE, _of_dense(self, sparse_dim), (self,))
    depth = 0 if dense_dim is None else dense_dim
    _check_matrix(self, name, depth)
    a = _of_dense(self.detach(), self.ndim - depth)
    return recorded(TO_SPARSE, array(_by_lines(wrapped(a), name, blocksize)), (self,))


def _check_matrix(self, name, dense_dim=0):
    if self.ndim - dense_dim < 2:
        raise RuntimeError(
            f"dense_to_{name}: expected a tensor with at least 2 dimensions, but got {self.ndim - dense_dim}"
        )


def _relaid(self, name, blocksize, sparse_dim):
    """Return a sparse tensor in another layout."""
    a = array(self)
    if name == a.layout:
        if name == "sparse_coo" and sparse_dim not in (None, len(a.indices)):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is "
                "not supported"
            )
        if name not in _BLOCKS or blocksize is None or tuple(blocksize) == a.values.shape[a.n_batch + 1 :][:2]:
            return self
    if isinstance(a, Compressed):
        self = _by_coordinates(self)
        if name == "sparse_coo":
            return self
    return _by_lines(coalesce(self), name, blocksize)


def _by_coordinates(self):
    a = array(self)
    places, values = elements_of(a), one_by_one(entries(self), a)
    return coalesce(built(places, values, a.shape, a.is_by_row and not a.n_block and not a.n_batch))


def _by_lines(self, name, blocksize):
    """Return a coalesced tensor by compressed rows or columns."""
    a = array(self)
    shape, n_batch = a.shape, len(a.indices) - 2
    if n_batch < 0:
        raise RuntimeError(f"to_{name}: expected a tensor with at least 2 sparse dimensions, but got {len(a.indices)}")
    if name in _BLOCKS:
        return _by_blocks(self, name, blocksize)
    if n_batch:
        return _batch_by_lines(self, name, n_batch)
    rows, columns = a.indices
    values = entries(self)
    if name == "sparse_csr":
        return compressed(kernels.bounds_of(rows, shape[0]), columns, values, shape, name)
    order = kernels.order_by(columns, rows, shape[0])
    return compressed(
        kernels.bounds_of(columns[order], shape[1]), rows[order], values.index_select(0, tensor_of(order)), shape, name
    )


def _batch_by_lines(self, name, n_batch):
    """The same for a batch of matrices, which must have equally many values."""
    a = array(self)
    batches = a.shape[:n_batch]
    number = kernels.positions(a.indices[:n_batch], batches)
    total = int(np.prod(batches))
    counts = np.bincount(number, minlength=total)
    if total and not bool((counts == counts[0]).all()):
        raise RuntimeError(
            f"Expect the same number of specified elements per batch.\n  the {total} matrices have "
            f"{int(counts.min())} to {int(counts.max())} elements"
        )
    count = int(counts[0]) if total else 0
    lines, others = (0, 1) if name == "sparse_csr" else (1, 0)
    first, second = a.indices[n_batch + lines], a.indices[n_batch + others]
    height = a.shape[n_batch + lines]
    order = kernels.order_by(number * max(height, 1) + first, second, a.shape[n_batch + others])
    bounds = [kernels.bounds_of(each, height) for each in first[order].reshape(total, count)]
    values = entries(self).index_select(0, tensor_of(order))
    return compressed(
        np.stack(bounds).reshape(*batches, height + 1)
        if bounds
        else np.zeros((*batches, height + 1), np.int64, like=first),
        second[order].reshape(*batches, count),
        values.reshape(*batches, count, *values.shape[1:]),
        a.shape,
        name,
    )


def _by_blocks(self, name, blocksize):
    a = array(self)
    if blocksize is None:
        raise RuntimeError(
            f"dense_to_sparse: conversion from Strided to Sparse{name[-3:].title()} without blocksize argument given "
            "is not supported"
        )
    height, width = (int(n) for n in blocksize)
    rows, columns = a.shape[-2 - (a.values.ndim - 1) :][:2]
    if height < 1 or width < 1 or rows % height or columns % width:
        raise RuntimeError(
            f"dense_to_{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize "
            f"({height},{width})"
        )
    if len(a.indices) > 2:
        raise RuntimeError(f"to_{name}: conversion of a batch of matrices to blocks is not supported")
    first, second = a.indices[0] // height, a.indices[1] // width
    counts = (rows // height, columns // width)
    if name == "sparse_bsc":
        first, second, counts = second, first, counts[::-1]
    blocks, group = kernels.grouped(np.stack([first, second]), counts)
    if group is None:
        group = np.arange(blocks.shape[1], like=blocks)
    inner = (a.indices[0] % height) * width + a.indices[1] % width
    values = entries(self)
    flat = values.new_zeros((blocks.shape[1] * height * width, *values.shape[1:]))
    flat = flat.index_copy(0, tensor_of(group * height * width + inner), values)
    return compressed(
        kernels.bounds_of(blocks[0], counts[0]),
        blocks[1],
        flat.reshape(blocks.shape[1], height, width, *values.shape[1:]),
        a.shape,
        name,
    )


DOC = """Return a sparse tensor of the layout `{name}` with the same elements; see `to_sparse`.

    >>> import cygrad
    >>> x = cygrad.eye(2).to_{name}({sizes})
    >>> x.layout, cygrad.equal(x.to_dense(), cygrad.eye(2))
    (torch.{name}, True)
    """


def _to(name):
    def function(self, dense_dim=None):
        return to_sparse(self, layout=layouts[name], dense_dim=dense_dim)

    def of_blocks(self, blocksize, dense_dim=None):
        return to_sparse(self, layout=layouts[name], blocksize=blocksize, dense_dim=dense_dim)

    found = of_blocks if name in _BLOCKS else function
    found.__name__ = found.__qualname__ = f"to_{name}"
    sizes = "(1, 2)" if name in _BLOCKS else ""
    found.__doc__ = DOC.format(name=name, sizes=sizes)
    return found


to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc = map(_to, ("sparse_csr", "sparse_csc", *_BLOCKS))


def to_sparse_coo(self):
    """Return a sparse tensor of the layout `sparse_coo` with the same elements; see `to_sparse`.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_coo().layout
    torch.sparse_coo
    """
    return to_sparse(self)


def sparse_mask(self, mask):
    """Return a sparse tensor with the elements at the coordinates of a sparse tensor `mask`, whose values do not count.

    >>> import cygrad
    >>> cygrad.ones(2, 2).sparse_mask(cygrad.eye(2).to_sparse()).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not is_sparse(mask):
        raise not_for("sparse_mask", "CPU" if mask.device.type == "cpu" else "CUDA")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    a = array(mask)
    if isinstance(a, Compressed):
        values = at_coordinates(self, elements_of(a))
        return compressed(a.bounds, a.plain, values.reshape(a.values.shape), a.shape, a.layout)
    return built(a.indices, at_coordinates(self, a.indices), a.shape, a.is_coalesced)


# -- dtypes and devices --


def to(self, *args, **kwargs):
    """Return a sparse tensor with another dtype or on another device; itself if nothing changes."""
    like: Any = args[0] if args else kwargs.get("other")
    if is_sparse(like):
        args = (like.device, like.dtype, *args[1:]) if args else args
        if not args:
            kwargs = {**kwargs, "device": like.device, "dtype": like.dtype}
            kwargs.pop("other")
    if not is_sparse(self):
        return self.to(*args, **kwargs)
    copy = bool(kwargs.get("copy"))
    values = entries(self)
    moved = values.to(*args, **kwargs)
    if moved is values and not copy:
        return self
    a = array(self)
    place = array_of(moved)
    if is_array(place) == is_array(a.values) and (not is_array(place) or place.device.id == a.values.device.id):
        return with_values(self, moved)
    if isinstance(a, Compressed):
        return compressed(_moved(a.bounds, moved), _moved(a.plain, moved), moved, a.shape, a.layout)
    return built(_moved(a.indices, moved), moved, a.shape, a.is_coalesced)


def _moved(part, like):
    return array_of(tensor_of(part).to(like.device))


def cpu(self):
    """Return the tensor in main memory."""
    return to(self, "cpu")


def cuda(self, device=None, non_blocking=False):
    """Return the tensor on a GPU."""
    return to(self, check_device("cuda" if device is None else device))


def type_as(self, other):
    """Return the tensor with the dtype, and on the device, of another. Raises RuntimeError for another layout."""
    if self.layout is not other.layout:
        own, wanted = ("".join(map(str.title, t.layout._name.removesuffix("_coo").split("_"))) for t in (self, other))
        raise RuntimeError(
            f"to(options) doesn't support converting to a different layout, but got self.layout being {own} and "
            f"options.layout set as {wanted}"
        )
    return self.to(other.device, other.dtype)


def type_of(self, dtype=None, non_blocking=False):
    """Return the name of the legacy type, or the tensor with another dtype."""
    if dtype is not None:
        return with_values(self, entries(self).type(dtype))
    if not self.is_sparse:
        kind = "CPU" if self.device.type == "cpu" else "CUDA"
        raise RuntimeError(f"Unimplemented backend SparseCsr{kind}")
    place = "torch.sparse." if self.device.type == "cpu" else "torch.cuda.sparse."
    return place + entries(self.detach()).type().rpartition(".")[2]


def clone(self, *, memory_format=None):
    """Return a copy with its own indices and values. Raises RuntimeError for any memory format, as PyTorch does."""
    if memory_format is not None:
        words = str(memory_format).removeprefix("torch.").removesuffix("_format").split("_")
        raise RuntimeError(f"unsupported memory format option {''.join(map(str.capitalize, words))}")
    a = array(self)
    values = entries(self).clone()
    if isinstance(a, Compressed):
        return compressed(np.array(a.bounds, like=a.bounds), np.array(a.plain, like=a.plain), values, a.shape, a.layout)
    return beside(a, np.array(a.indices, like=a.indices), values, a.shape)


def detached(self):
    """Return a tensor with the same parts, and no history."""
    return wrapped(array(self))


methods = {
    "to_dense": to_dense,
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse_coo,
    "to_sparse_csr": to_sparse_csr,
    "to_sparse_csc": to_sparse_csc,
    "to_sparse_bsr": to_sparse_bsr,
    "to_sparse_bsc": to_sparse_bsc,
    "sparse_mask": sparse_mask,
}
forms = {
    **methods,
    "to": to,
    "cpu": cpu,
    "cuda": cuda,
    "type": type_of,
    "type_as": type_as,
    "clone": clone,
    "detach": detached,
}
_names = {"__name__": __name__, "methods": methods}  # not those of rows, which some functions here share
functions = publish(_names)
published_methods = _names["published_methods"]
