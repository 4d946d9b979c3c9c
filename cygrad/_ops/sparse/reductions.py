"""Sums of sparse tensors, and softmax over their elements."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import unregistered
from cygrad._core.graph.record import record_n
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse.errors import not_for
from cygrad._ops.sparse.conversions import to_dense, to_sparse
from cygrad._ops.sparse.entries import built, coalesce, entries, summed
from cygrad._ops.sparse.tensor import array, is_sparse
from cygrad._ops.sparse.writing import delivered


def _total_rule(n, g):
    return g.expand(n.args[0])


TOTAL = unregistered("sum", _total_rule, "SumBackward0")


def sum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Return the sum of all elements, or a sparse tensor of the sums over some dimensions.

    The gradient of a sparse leaf is dense. `sparse.sum` is the function whose gradient is sparse.
    """
    input = input if dtype is None else input.to(dtype)
    if dim is None or dim == () or dim == []:
        total = tensor_of(array(input).values).sum()
        found = record_n(TOTAL, array_of(total), (input,), (input.shape,))
        return delivered(out, found.reshape((1,) * input.ndim) if keepdim else found)
    if not input.is_sparse:
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return delivered(out, to_sparse(summed_over(to_sparse(input), dim, True), layout=input.layout))
    return delivered(out, summed_over(input, dim, keepdim))


def dims_of(input, dim):
    """Return the dimensions given as one integer or as a sequence, sorted."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    n = max(input.ndim, 1)
    for each in dims:
        if not -n <= each < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {each})")
    found = sorted(each % n for each in dims)
    for each, following in zip(found, found[1:]):
        if each == following:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
    return found


def summed_over(input, dim, keepdim=False):
    """Return the sums over some dimensions: sparse if dimensions with coordinates are left, else dense."""
    dims = dims_of(input, dim)
    a = array(input)
    n = len(a.indices)
    values = entries(input)
    dense = [each - n + 1 for each in dims if each >= n]
    if dense:
        values = values.sum(dense, keepdim=keepdim)
    gone = [each for each in dims if each < n]
    shape = [1 if i in dims else length for i, length in enumerate(a.shape) if keepdim or i not in dims]
    if len(gone) == n and not keepdim:
        return values.sum(0)
    if keepdim:
        indices = a.indices.copy()
        indices[gone] = 0
    else:
        indices = a.indices[[i for i in range(n) if i not in gone]]
    found = coalesce(built(indices, values, shape, a.is_coalesced and not gone))
    return built(array(found).indices, entries(found), shape) if keepdim else found  # PyTorch's is not coalesced


def sparse_sum(input, dim=None, dtype=None):
    """Return the sum of all elements, or the sums over some dimensions: sparse if dimensions with coordinates are left.

    The gradient of a sparse tensor is sparse, with the same coordinates.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[0, 1], [2, 2]], [3.0, 4.0], (2, 3))
    >>> cygrad.sparse.sum(x)
    tensor(7.)
    >>> cygrad.sparse.sum(x, 0).to_dense()
    tensor([0., 0., 7.])
    """
    if not is_sparse(input):
        if dim is None and dtype is None:
            return input.sum()
        raise not_for("_indices", "CPU" if input.device.type == "cpu" else "CUDA")
    if dim is None:
        if not input.is_sparse:
            raise RuntimeError("coalesce expected sparse coordinate tensor layout but got SparseCsr")
        return entries(coalesce(input)).sum(dtype=dtype)
    if not input.is_sparse:
        raise array(input).refused("_indices")
    return summed_over(input if dtype is None else input.to(dtype), dim)


# -- softmax --


def softmax(input, dim, *, dtype=None):
    """Return the softmax along a dimension over the elements that are stored; all others stay zero.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> cygrad.sparse.softmax(x, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000]])
    """
    return _normalized("softmax", input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """Return the logarithm of `sparse.softmax`, for the elements that are stored.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> cygrad.sparse.log_softmax(x, 1).to_dense()
    tensor([[-0.6931,  0.0000, -0.6931]])
    """
    return _normalized("log_softmax", input, dim, dtype)


def _normalized(name, input, dim, dtype):
    if not is_sparse(input):
        raise not_for(f"_sparse_{name}", "CPU" if input.device.type == "cpu" else "CUDA")
    if not input.is_sparse:
        raise array(input).refused(f"_sparse_{name}")
    input = input if dtype is None else input.to(dtype)
    (dim,) = dims_of(input, dim)
    if not input.dtype.is_floating_point:
        raise messages.not_implemented_for(name, input.dtype)
    input = coalesce(input)
    a = array(input)
    n = len(a.indices)
    values = entries(input)
    if dim >= n:
        return built(a.indices, getattr(values, name)(dim - n + 1), a.shape, True)
    rest = [i for i in range(n) if i != dim]
    pools, groups = kernels.grouped(a.indices[rest], [a.shape[i] for i in rest])
    count = pools.shape[1]
    if groups is None:
        groups = np.arange(count, like=a.indices)
    index = tensor_of(groups)
    wide = values.float() if values.dtype.name in ("float16", "bfloat16") else values
    places = index.reshape(-1, *(1,) * (wide.ndim - 1)).expand(wide.shape)
    largest = wide.new_zeros((count, *wide.shape[1:])).scatter_reduce(
        0, places, wide.detach(), "amax", include_self=False
    )
    shifted = wide - largest.index_select(0, index)
    exponentials = shifted.exp()
    totals = summed(exponentials, groups, count)
    if name == "softmax":
        found = exponentials / totals.index_select(0, index)
    else:
        found = shifted - totals.log().index_select(0, index)
    return built(a.indices, found.to(values.dtype), a.shape, True)


def is_truth(self):
    """Return the truth of the only element."""
    return bool(_only(self, "Boolean value of Tensor with {} is ambiguous", RuntimeError))


def item(self):
    """Return the only element as a Python number."""
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return to_dense(self.detach()).item()


def _only(self, text, kind):
    if self.numel() != 1:
        raise kind(text.format("more than one value" if self.numel() else "no values"))
    return to_dense(self.detach()).item()


def _converted(convert):
    return lambda self: convert(_only(self, "only one element tensors can be converted to Python scalars", ValueError))


forms = {
    "sum": sum,
    "item": item,
    "__bool__": is_truth,
    "is_nonzero": is_truth,
    "__float__": _converted(float),
    "__int__": _converted(int),
    "__complex__": _converted(complex),
    "__index__": _converted(int),
}
