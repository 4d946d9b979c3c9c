"""Sparse tensors in other shapes: transposed, joined, and parts of them. Values are selected by dense ops."""

import operator

import numpy as np

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import unregistered
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._kernels.sparse.errors import backend, not_for
from cygrad._ops.base.slicing import cat as dense_cat
from cygrad._ops.sparse.conversions import takes_dense, takes_dense_gradient, to_dense, to_sparse
from cygrad._ops.sparse.entries import built, coalesce, compressed, entries
from cygrad._ops.sparse.tensor import array, is_sparse, recorded
from cygrad._ops.sparse.writing import written

_TRANSPOSED = {
    "sparse_csr": "sparse_csc",
    "sparse_csc": "sparse_csr",
    "sparse_bsr": "sparse_bsc",
    "sparse_bsc": "sparse_bsr",
}


def _dim(self, dim, extra=0):
    dim, n = operator.index(dim), self.ndim + extra
    if not -max(n, 1) <= dim < max(n, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(n, 1)}, {max(n, 1) - 1}], but got {dim})"
        )
    return dim % max(n, 1)


def _not_by_lines(self, name):
    """Raise the error for a function that only takes coordinates."""
    if not self.is_sparse:
        raise not_for(name, backend(array(self).layout, self.device.type != "cpu"))


# -- dimensions in another order --


def transpose(self, dim0, dim1):
    """Swap two dimensions."""
    first, second = _dim(self, dim0), _dim(self, dim1)
    if first == second:
        return self
    if self.requires_grad and takes_dense_gradient(self):
        return recorded(TRANSPOSED, array(_swapped(self.detach(), first, second)), (self,), (first, second))
    return _swapped(self, first, second)


TRANSPOSED = unregistered("transpose", lambda n, g: g.transpose(*n.args), "TransposeBackward0")


def _swapped(self, first, second):
    a = array(self)
    if isinstance(a, Compressed):
        return _lines_swapped(self, a, first, second)
    n = len(a.indices)
    if first >= n or second >= n:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {n}, d0: {first}, d1: {second}"
        )
    order = list(range(self.ndim))
    order[first], order[second] = second, first
    return permute(self, order)


def transpose_(self, dim0, dim1):
    """Swap two dimensions in place."""
    return written(self, transpose(self, dim0, dim1), True)


def movedim(input, source, destination):
    """Move dimensions to other places; the others keep their order."""
    single = isinstance(source, int)
    froms, tos = ((source,), (destination,)) if single else (tuple(source), tuple(destination))
    if len(froms) != len(tos):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(froms)} dims) should contain the same number "
            f"of dims as destination ({list(tos)} dims)"
        )
    places = dict(zip((_dim(input, dim) for dim in tos), (_dim(input, dim) for dim in froms)))
    for name, dims in (("source", set(places.values())), ("destination", places)):
        if len(dims) != len(froms):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(froms if name == 'source' else tos)})")
    rest = iter([dim for dim in range(input.ndim) if dim not in places.values()])
    return permute(input, [places[dim] if dim in places else next(rest) for dim in range(input.ndim)])


def _lines_swapped(self, a, first, second):
    if {first, second} != {a.n_batch, a.n_batch + 1}:
        raise RuntimeError(
            f"transpose: can only transpose the two sparse dimensions of a tensor by rows or columns, got {first} and "
            f"{second}"
        )
    values = entries(self)
    if a.n_block:
        values = values.transpose(a.n_batch + 1, a.n_batch + 2)
    shape = list(a.shape)
    shape[first], shape[second] = shape[second], shape[first]
    return compressed(a.bounds, a.plain, values, shape, _TRANSPOSED[a.layout])


def permute(self, *dims):
    """Put the dimensions in another order: those with coordinates among themselves, and those of the values."""
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [_dim(self, dim) for dim in dims]
    if len(order) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(order)}"
        )
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if order == list(range(self.ndim)):
        return self
    _not_by_lines(self, "permute")
    a = array(self)
    n = len(a.indices)
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only "
            "transpositions "
            "within sparse and dense dimensions are supported."
        )
    values = entries(self).permute(0, *(dim - n + 1 for dim in order[n:]))
    moves = order[:n] != list(range(n))
    shape = [a.shape[dim] for dim in order]
    return built(a.indices[order[:n]] if moves else a.indices, values, shape, a.is_coalesced and not moves)


def t(self):
    """Return the transpose of a matrix; a vector is returned as it is."""
    a = array(self)
    if isinstance(a, Coordinates) and (len(a.indices) > 2 or self.ndim > len(a.indices)):
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {len(a.indices)} sparse and "
            f"{self.ndim - len(a.indices)} dense dimensions"
        )
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self if self.ndim < 2 else transpose(self, 0, 1)


def matrix_transpose(self):
    """Return the tensor with its last two dimensions swapped."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return transpose(self, -2, -1)


def reversed_dims(self):
    """Return the tensor with its dimensions in reverse order."""
    if self.ndim == 2 and (not self.is_sparse or len(array(self).indices) == 2):
        return t(self)
    return permute(self, *range(self.ndim - 1, -1, -1))


def adjoint(self):
    """Return the conjugate transpose."""
    if self.is_complex() and self.requires_grad and takes_dense_gradient(self):
        return recorded(ADJOINT, array(matrix_transpose(self.detach()).conj()), (self,))
    return matrix_transpose(self).conj()


ADJOINT = unregistered("adjoint", lambda n, g: g.transpose(-2, -1).conj(), "ConjBackward0")
takes_dense.update((TRANSPOSED.node_name, ADJOINT.node_name))


def unsqueeze(self, dim):
    """Insert a dimension of length 1: with coordinates, or of the values if it comes after all of the former."""
    _not_by_lines(self, "unsqueeze")
    a, dim = array(self), _dim(self, dim, 1)
    n = len(a.indices)
    shape = [*a.shape[:dim], 1, *a.shape[dim:]]
    if dim > n:
        return built(a.indices, entries(self).unsqueeze(dim - n + 1), shape, a.is_coalesced)
    zeros = np.zeros((1, a.indices.shape[1]), np.int64, like=a.indices)
    return built(np.concatenate([a.indices[:dim], zeros, a.indices[dim:]]), entries(self), shape, a.is_coalesced)


# -- joined --


def _sequence(tensors, function):
    if isinstance(tensors, Tensor):
        raise TypeError(f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    return list(tensors)


def cat(tensors, dim=0, *, out=None):
    """Join sparse tensors along a dimension."""
    given = _sequence(tensors, "cat")
    for position, each in enumerate(given):
        if not is_sparse(each):
            if not position:
                raise not_for("_values", "CPU" if each.device.type == "cpu" else "CUDA")
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {position}.")
        _not_by_lines(each, "cat")
    dim = _dim(given[0], dim)
    arrays = [array(each) for each in given]
    first = arrays[0]
    n = len(first.indices)
    for position, a in enumerate(arrays[1:], 1):
        if len(a.indices) != n or a.ndim != first.ndim:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {n}, {first.ndim - n}, but tensor at "
                f"position {position} has {len(a.indices)}, {a.ndim - len(a.indices)}."
            )
        if any(i != dim and x != y for i, (x, y) in enumerate(zip(first.shape, a.shape))):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating "
                f"dimension), but "
                f"found shape: {list(a.shape)} at position {position}."
            )
    starts = np.cumsum([0, *(a.shape[dim] for a in arrays)]).tolist()
    shape = [*first.shape[:dim], starts[-1], *first.shape[dim + 1 :]]
    values = [entries(each) for each in given]
    if dim < n:
        moved = [a.indices.copy() for a in arrays]
        for indices, start in zip(moved, starts):
            indices[dim] += start
        return _delivered(out, built(np.concatenate(moved, 1), dense_cat(values), shape))
    axis = dim - n + 1
    padded = []
    for each, start, a in zip(values, starts, arrays):
        before, after = list(each.shape), list(each.shape)
        before[axis], after[axis] = start, starts[-1] - start - a.shape[dim]
        padded.append(dense_cat([each.new_zeros(before), each, each.new_zeros(after)], axis))
    return _delivered(out, built(np.concatenate([a.indices for a in arrays], 1), dense_cat(padded), shape))


def _delivered(out, found):
    return written(out, found, True)


def stack(tensors, dim=0, *, out=None):
    """Join sparse tensors along a new dimension."""
    given = _sequence(tensors, "stack")
    dim = _dim(given[0], dim, 1)
    for position, each in enumerate(given):
        if each.shape != given[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(given[0].shape)} at entry 0 and "
                f"{list(each.shape)} at entry {position}"
            )
    return cat([each.unsqueeze(dim) for each in given], dim, out=out)


def hstack(tensors, *, out=None):
    """Join sparse tensors along the second dimension, or the only one of vectors."""
    given = _sequence(tensors, "hstack")
    return cat(given, 0 if given[0].ndim == 1 else 1, out=out)


def vstack(tensors, *, out=None):
    """Join sparse tensors along the first dimension; vectors are rows."""
    return cat([each.unsqueeze(0) if each.ndim == 1 else each for each in _sequence(tensors, "vstack")], out=out)


# -- parts --


def select(self, dim, index):
    """Return the part at an index of a dimension; dense if no dimension with coordinates is left."""
    dim, index = _dim(self, dim), operator.index(index)
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    length = self.shape[dim]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    self, index = to_sparse(self), index % length
    a = array(self)
    n = len(a.indices)
    shape = [*a.shape[:dim], *a.shape[dim + 1 :]]
    if dim >= n:
        return built(a.indices, entries(self).select(dim - n + 1, index), shape, a.is_coalesced)
    kept = np.nonzero(a.indices[dim] == index)[0]
    values = entries(self).index_select(0, tensor_of(kept))
    if n == 1:
        return values.sum(0).to(values.dtype)
    rest = np.delete(a.indices, dim, 0)[:, kept] if isinstance(a.indices, np.ndarray) else _without(a, dim, kept)
    return built(rest, values, shape, a.is_coalesced)


def _without(a, dim, kept):
    return np.concatenate([a.indices[:dim], a.indices[dim + 1 :]])[:, kept]


def index_select(self, dim, index, *, out=None):
    """Return the parts at several indices of a dimension, in their order."""
    _not_by_lines(self, "index_select")
    dim = _dim(self, dim)
    wanted = array_of(to_dense(index)).reshape(-1)
    length = self.shape[dim]
    for each in wanted.tolist():
        if not -length <= each < length:
            raise IndexError(
                f"index_select(): index contains {each} that is out of range for tensor of size {list(self.shape)} at "
                f"dimension {dim}"
            )
    wanted = np.where(wanted < 0, wanted + length, wanted)
    a = array(self)
    n = len(a.indices)
    shape = [*a.shape[:dim], len(wanted), *a.shape[dim + 1 :]]
    if dim >= n:
        return built(a.indices, entries(self).index_select(dim - n + 1, tensor_of(wanted)), shape, a.is_coalesced)
    order = np.argsort(a.indices[dim], kind="stable")
    ordered = a.indices[dim][order]
    low, high = np.searchsorted(ordered, wanted), np.searchsorted(ordered, wanted, side="right")
    counts = high - low
    target = np.repeat(np.arange(len(wanted), like=counts), counts)
    within = np.arange(len(target), like=counts) - np.repeat(np.cumsum(counts) - counts, counts)
    source = order[np.repeat(low, counts) + within]
    indices = a.indices[:, source]
    indices[dim] = target
    return built(indices, entries(self).index_select(0, tensor_of(source)), shape)


def narrow(self, dim, start, length):
    """Return the part of a dimension that begins at `start`."""
    _not_by_lines(self, "narrow_copy")
    dim, start, length = _dim(self, dim), operator.index(start), operator.index(length)
    size = self.shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return _strided(self, dim, start, start + length, 1)


def _strided(self, dim, start, stop, step):
    """Return every `step`-th part of a dimension from `start` to before `stop`."""
    a = array(self)
    n = len(a.indices)
    count = max(0, -(-(stop - start) // step))
    shape = [*a.shape[:dim], count, *a.shape[dim + 1 :]]
    if dim >= n:
        index = (slice(None),) * (dim - n + 1) + (slice(start, stop, step),)
        return built(a.indices, entries(self)[index], shape, a.is_coalesced)
    row = a.indices[dim]
    kept = np.nonzero((row >= start) & (row < stop) & ((row - start) % step == 0))[0]
    indices = a.indices[:, kept]
    indices[dim] = (indices[dim] - start) // step
    return built(indices, entries(self).index_select(0, tensor_of(kept)), shape, a.is_coalesced)


def narrow_copy(self, dim, start, length):
    """The same as `narrow`, which copies the values of sparse tensors, too."""
    size = self.shape[_dim(self, dim)]
    if not (0 <= start and 0 <= length and start + length <= size):
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    return narrow(self, dim, start, length)


def unbind(self, dim=0):
    """Return all parts along a dimension, without it, in a tuple."""
    dim = _dim(self, dim)
    return tuple(select(self, dim, i) for i in range(self.shape[dim]))


def getitem(self, index):
    """Return the part at an index of integers, slices, None and `...`. Slices are copies."""
    given = index if isinstance(index, tuple) else (index,)
    taken = sum(1 for each in given if each is not None and each is not Ellipsis)
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    if Ellipsis not in [each for each in given if not isinstance(each, Tensor)]:
        given = (*given, Ellipsis)
    dim, found = 0, self
    for each in given:
        if each is Ellipsis:
            dim += self.ndim - taken
        elif each is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif isinstance(each, slice):
            found, dim = _sliced(found, dim, each), dim + 1
        elif isinstance(each, bool) or isinstance(each, (Tensor, list)) and not _is_integer(each):
            raise array(self).refused("index.Tensor")
        else:
            found = _at(found, dim, operator.index(each))
    return found


def _is_integer(value):
    return isinstance(value, Tensor) and not value.ndim and value.dtype.name not in ("bool", "uint8")


def _at(tensor, dim, index):
    length = tensor.shape[dim]
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {length}")
    return tensor.select(dim, index)


def _sliced(tensor, dim, part):
    start, stop, step = part.indices(tensor.shape[dim])
    if step < 0:
        raise ValueError("step must be greater than zero")
    if (start, stop, step) == (0, tensor.shape[dim], 1):
        return tensor
    if not is_sparse(tensor):
        return tensor[(slice(None),) * dim + (part,)]
    _not_by_lines(tensor, "slice.Tensor")
    return _strided(tensor, dim, start, stop, step)


def setitem(self, index, value):
    """Raise the error for an assignment to a part of a sparse tensor."""
    raise TypeError("Cannot assign to a sparse tensor")


def iterate(self):
    """Return an iterator over the parts along the first dimension."""
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


def t_(self):
    """Transpose a matrix in place."""
    return written(self, t(self), True)


def repeated(self, dim, length):
    """Return a tensor with a dimension of length 1, which has coordinates, repeated."""
    a = array(coalesce(self))
    count = a.indices.shape[1]
    copies = np.repeat(np.arange(length, like=a.indices), count)
    indices = np.concatenate([a.indices] * length, 1) if length else a.indices[:, :0]
    indices[dim] = copies
    values = entries(coalesce(self))
    shape = [*a.shape[:dim], length, *a.shape[dim + 1 :]]
    return built(indices, dense_cat([values] * length) if length else values[:0], shape, not dim)


forms = {
    "transpose": transpose,
    "swapaxes": transpose,
    "swapdims": transpose,
    "permute": permute,
    "movedim": movedim,
    "moveaxis": movedim,
    "transpose_": transpose_,
    "swapaxes_": transpose_,
    "swapdims_": transpose_,
    "t": t,
    "t_": t_,
    "T": reversed_dims,
    "mT": matrix_transpose,
    "adjoint": adjoint,
    "unsqueeze": unsqueeze,
    "cat": cat,
    "concat": cat,
    "concatenate": cat,
    "stack": stack,
    "hstack": hstack,
    "vstack": vstack,
    "row_stack": vstack,
    "select": select,
    "index_select": index_select,
    "narrow": narrow,
    "narrow_copy": narrow_copy,
    "unbind": unbind,
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__iter__": iterate,
}
