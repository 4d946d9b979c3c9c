"""Products of sparse matrices with dense and sparse ones. SciPy's and CuPy's kernels multiply (`_kernels/sparse`)."""

from typing import Any

import numpy as np

from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import IN0, IN1, publish, registry, unregistered
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._kernels.sparse import coordinates as kernels
from cygrad._kernels.sparse import products as kernel
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._kernels.sparse.errors import backend, not_for
from cygrad._ops.base.slicing import cat, stack
from cygrad._ops.sparse.conversions import sparse_mask, takes_dense_gradient, to_sparse
from cygrad._ops.sparse.creation import word
from cygrad._ops.sparse.entries import at_coordinates, built, coalesce, compressed, entries
from cygrad._ops.sparse.shapes import adjoint, matrix_transpose, select
from cygrad._ops.sparse.tensor import array, is_sparse, recorded
from cygrad._ops.sparse.writing import delivered


def matrix_of(tensor):
    """Return the library's matrix of a sparse tensor."""
    a = array(tensor)
    if isinstance(a, Compressed) and a.n_block:
        return matrix_of(to_sparse(tensor.detach()))
    if isinstance(a, Compressed):
        return kernel.matrix(a.bounds, a.plain, a.values, a.shape, a.is_by_row)
    if a.is_coalesced:
        return kernel.matrix(kernels.bounds_of(a.indices[0], a.shape[0]), a.indices[1], a.values, a.shape)
    return kernel.from_coordinates(a.indices, a.values, a.shape)


def _check_factors(a, b):
    if a.shape[1] != b.shape[0]:
        if is_sparse(a) and not is_sparse(b):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {_name(a)} but found {_name(b)}")
    if a.device != b.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {a.device} and {b.device}!"
        )


def _name(tensor):
    return tensor.dtype.type_name


def _check_matrix(tensor):
    if is_sparse(tensor):
        a = array(tensor)
        n = len(a.indices) if isinstance(a, Coordinates) else a.ndim
        if n != 2 or a.ndim != 2:
            raise RuntimeError(f"addmm: matrices expected, got {n}D tensor")
    elif tensor.ndim != 2:
        raise RuntimeError(f"mat{2 if tensor.ndim else 1} must be a matrix, got {tensor.ndim}-D tensor")


def multiplied(a, b, keeps_pattern=False):
    """Return the product of two matrices of which one is sparse.

    The gradient of a sparse leaf is dense, unless `keeps_pattern` is set: then it has the leaf's coordinates.
    """
    for each in (a, b):
        _check_matrix(each)
    _check_factors(a, b)
    if not is_sparse(a):
        if keeps_pattern or not takes_dense_gradient(b):
            return multiplied(matrix_transpose(b), a.t(), keeps_pattern).t()
        turned = kernel.times(matrix_of(matrix_transpose(b.detach())), array_of(a.t()), array_of(a).dtype)
        return record_n(DENSE_TIMES, turned.T, (a, b))
    if is_sparse(b):
        return _sparse_product(a, b)
    keeps_pattern = keeps_pattern or not takes_dense_gradient(a)
    content = kernel.times(matrix_of(a), array_of(b), array_of(b).dtype)
    return record_n(TIMES_DENSE if not keeps_pattern else TIMES_DENSE_KEEPING, content, (a, b), (keeps_pattern,))


def _times_dense_rule(n, g):
    a, b = n.saved(0), n.saved(1)
    first = second = None
    if n.needs(0):
        first = on_pattern(a, g, b.mH if b.is_complex() else b.t()) if n.args[0] else g @ b.t().conj()
    if n.needs(1):
        second = multiplied(adjoint(a), g)
    return first, second


TIMES_DENSE, TIMES_DENSE_KEEPING = (
    unregistered("mm", _times_dense_rule, node, saves=(IN1 | IN0, IN0 | IN1), inputs="self mat2")
    for node in ("MmBackward0", "SparseAddmmBackward0")
)


def _dense_times_rule(n, g):
    a, b = n.saved(0), n.saved(1)
    first = multiplied(g, adjoint(b)) if n.needs(0) else None
    return first, a.t().conj() @ g if n.needs(1) else None


DENSE_TIMES = unregistered("mm", _dense_times_rule, "MmBackward0", saves=(IN1 | IN0, IN0 | IN1), inputs="self mat2")


def coordinates(a):
    """Return the rows and columns of a sparse array without blocks."""
    if isinstance(a, Coordinates):
        return a.indices
    lines = kernels.rows_of(a.bounds)
    return (lines, a.plain) if a.is_by_row else (a.plain, lines)


def on_pattern(like, first, second):
    """Return the product of two dense matrices at the coordinates of a sparse one, as a sparse tensor of its layout."""
    a = array(like)
    if isinstance(a, Compressed) and a.n_block:
        return sparse_mask(first @ second, like)
    if isinstance(a, Coordinates) and not a.is_coalesced:
        like = coalesce(like.detach())
        a = array(like)
    rows, columns = (tensor_of(each) for each in coordinates(a))
    values = (first.index_select(0, rows) * second.t().index_select(0, columns)).sum(1)
    if isinstance(a, Compressed):
        return compressed(a.bounds, a.plain, values, a.shape, a.layout)
    return built(a.indices, values, a.shape, True)


def _sparse_product(a, b):
    bounds, plain, values = kernel.product(matrix_of(a), matrix_of(b))
    shape, values = (a.shape[0], b.shape[1]), values.astype(array(a).dtype, copy=False)
    found: Any = Compressed(bounds, plain, values, shape, "sparse_csr")
    if isinstance(array(a), Coordinates):
        found = Coordinates(np.stack(coordinates(found)), values, shape, True)
    return recorded(SPARSE_PRODUCT, found, (a, b))


def _sparse_product_rule(n, g):
    a, b = n.saved(0), n.saved(1)
    first = second = None
    if n.needs(0):
        first = sparse_mask(multiplied(g, adjoint(b)), _pattern(a))
    if n.needs(1):
        second = sparse_mask(multiplied(adjoint(a), g), _pattern(b))
    return first, second


def _pattern(tensor):
    return coalesce(tensor.detach()) if tensor.is_sparse else tensor


SPARSE_PRODUCT = unregistered(
    "_sparse_sparse_matmul", _sparse_product_rule, "SparseSparseMatmulBackward0", saves=(IN1 | IN0, IN0 | IN1),
    inputs="self other",
)  # fmt: skip


# -- functions --


def mm(input, mat2, *, out=None):
    """Return the matrix product."""
    return delivered(out, multiplied(input, mat2))


def mv(input, vec, *, out=None):
    """Return the product of a matrix and a vector."""
    if is_sparse(vec) or vec.ndim != 1 or input.ndim != 2:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}\n  the second operand is a "
            f"dense vector"
        )
    if input.shape[-1] != vec.shape[-1]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return delivered(out, multiplied(input, vec.unsqueeze(1)).squeeze(1))


def bmm(input, mat2, *, out=None):
    """Return the products of the matrices in a batch with those in another."""
    if not is_sparse(input) or is_sparse(mat2) or not input.is_sparse:
        raise not_for("bmm", backend("sparse_coo", mat2.device.type != "cpu"))
    n = len(array(input).indices)
    if n != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {n}")
    if mat2.ndim != 3:
        raise RuntimeError(f"bmm_sparse: Tensor 'mat2' must have 3 dims, but has {mat2.ndim}")
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError("bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match")
    if input.shape[2] != mat2.shape[1]:
        raise RuntimeError("bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match")
    if not len(mat2):
        return delivered(out, mat2.new_zeros((0, input.shape[1], mat2.shape[2])))
    return delivered(out, stack([multiplied(select(input, 0, i), mat2[i], True) for i in range(len(mat2))]))


def matmul(input, other, *, out=None):
    """Return the product of matrices, or of a matrix and a vector."""
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        return NotImplemented
    if input.ndim == 2 and other.ndim == 2:
        return mm(input, other, out=out)
    if input.ndim == 2 and other.ndim == 1:
        return mv(input, other, out=out)
    if input.ndim == 1 and other.ndim == 2 and is_sparse(other) and not is_sparse(input):
        return mv(matrix_transpose(other), input, out=out)
    if input.ndim == 3 and other.ndim == 3:
        return bmm(input, other, out=out)
    raise not_for("matmul", backend("sparse_coo", other.device.type != "cpu"))


def linear(input, weight, bias=None):
    """Return `input @ weight^T + bias`."""
    found = matmul(input, matrix_transpose(weight) if weight.ndim == 2 else weight)
    return found if bias is None else found + bias


def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """Return `beta * input + alpha * (mat1 @ mat2)`."""
    return delivered(out, added(input, mat1, mat2, beta, alpha, False))


def added(input, mat1, mat2, beta, alpha, keeps_pattern):
    """Return `beta * input + alpha * (mat1 @ mat2)`, where `input` is expanded if it is dense."""
    product = multiplied(mat1, mat2, keeps_pattern)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled
    base = input if beta == 1 else input * beta
    if is_sparse(base) and not is_sparse(scaled):
        return scaled + base
    return (base if is_sparse(base) else base.expand(product.shape)) + scaled


def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """Return `beta * input + alpha * (mat @ vec)` for a matrix by compressed rows or columns."""
    if is_sparse(input) or is_sparse(vec) or mat.is_sparse:
        raise not_for("addmv", backend("sparse_coo", vec.device.type != "cpu"))
    product = mv(mat, vec)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return delivered(out, scaled)
    return delivered(out, (input if beta == 1 else input * beta).expand(product.shape) + scaled)


def addmv_(self, mat, vec, *, beta=1, alpha=1):
    """Multiply this tensor by `beta` and add `alpha * (mat @ vec)`, in place."""
    found = addmv(self, mat, vec, beta=beta, alpha=alpha)
    if found.shape != self.shape:
        raise RuntimeError(f"Expected out tensor to have size {list(found.shape)}, but got {list(self.shape)} instead")
    return self.copy_(found)


def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
    """Multiply this tensor by `beta` and add `alpha * (mat1 @ mat2)`, in place."""
    product = multiplied(mat1, mat2)
    if beta != 1:
        self.mul_(beta)
    return self.add_(product, alpha=alpha)


def smm(input, mat2):
    """Return the product of a sparse and a dense matrix as a sparse matrix.

    >>> import cygrad
    >>> cygrad.smm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]])).layout
    torch.sparse_coo
    """
    return sspaddmm(None, input, mat2)


def hspmm(mat1, mat2, *, out=None):
    """Return the product of a sparse and a dense matrix as rows at coordinates: those of `mat1` that have elements.

    >>> import cygrad
    >>> cygrad.hspmm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]])).to_dense()
    tensor([[1.],
            [2.]])
    """
    _require_coordinates(mat1, "hspmm")
    product = multiplied(mat1, mat2)
    rows = kernels.grouped(array(mat1).indices[:1], mat1.shape[:1])[0]
    return delivered(out, built(rows, at_coordinates(product, rows), product.shape))


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """Return `beta * input + alpha * (mat1 @ mat2)`, all sparse but `mat2`.

    >>> import cygrad
    >>> eye = cygrad.eye(2).to_sparse()
    >>> cygrad.sspaddmm(eye, eye, cygrad.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    _require_coordinates(mat1, "sspaddmm")
    product = multiplied(mat1, mat2) * alpha
    rows = kernels.grouped(array(mat1).indices[:1], mat1.shape[:1])[0][0]
    width = product.shape[1]
    indices = np.stack([np.repeat(rows, width), np.tile(np.arange(width, like=rows), len(rows))])
    found = built(indices, at_coordinates(product, indices), product.shape)
    if input is None:
        return found
    base = array(input)
    values = [entries(input) * beta, entries(found)]
    joined = np.concatenate([base.indices, indices], 1)
    return delivered(out, built(joined, cat(values), product.shape))


def _require_coordinates(tensor, name):
    if not is_sparse(tensor) or not tensor.is_sparse:
        raise RuntimeError(f"{name}: expected a sparse tensor of the layout torch.sparse_coo, but got {tensor.layout}")


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """Return `beta * input + alpha * (mat1 @ mat2)` at the coordinates of `input`, a tensor by compressed rows.

    >>> import cygrad
    >>> pattern = cygrad.eye(2).to_sparse_csr()
    >>> cygrad.sparse.sampled_addmm(pattern, cygrad.ones(2, 3), cygrad.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    if not is_sparse(input) or not input.is_sparse_csr:
        kind = backend(input.layout._name, input.device.type != "cpu") if is_sparse(input) else "CPU"
        if not is_sparse(input):
            raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, but got {word(input.layout)}")
        raise not_for("sparse_sampled_addmm", kind)
    _check_factors(mat1, mat2)
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2], and self.shape[-1] mat2.shape[-1]")
    product = on_pattern(input, mat1, mat2)
    a = array(input)
    values = entries(input) * beta + entries(product) * alpha
    return delivered(out, compressed(a.bounds, a.plain, values, a.shape, a.layout))


def reduced(mat1, mat2, reduce):
    """Return, for each row of `mat1`, by compressed rows, the reduction of its values times the rows of `mat2`."""
    if not is_sparse(mat1) or not mat1.is_sparse_csr:
        raise not_for("_sparse_mm_reduce_impl", backend(mat1.layout._name, mat1.device.type != "cpu"))
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise ValueError("reduce argument must be either sum, mean, amax or amin")
    _check_factors(mat1, mat2)
    if reduce == "sum":
        return multiplied(mat1, mat2, True)
    a = array(mat1)
    rows, columns = (tensor_of(each).long() for each in coordinates(a))
    terms = entries(mat1).unsqueeze(1) * mat2.index_select(0, columns)
    start = terms.new_zeros((a.shape[0], mat2.shape[1]))
    places = rows.unsqueeze(1).expand(terms.shape)
    return start.scatter_reduce(0, places, terms, reduce, include_self=False)


def dsmm(input, mat2):
    """Return the product of a sparse and a dense matrix: an old name of `mm`.

    >>> import cygrad
    >>> cygrad.dsmm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    return mm(input, mat2)


def spmm(input, mat2):
    """Return the product of two matrices, of which the first may be sparse: an old name of `mm`.

    >>> import cygrad
    >>> cygrad.spmm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    return registry["mm"].entry(input, mat2)


def hsmm(mat1, mat2, *, out=None):
    """Return the product of a sparse and a dense matrix as a sparse one: an old name of `hspmm`.

    >>> import cygrad
    >>> cygrad.hsmm(cygrad.eye(2).to_sparse(), cygrad.tensor([[1.0], [2.0]])).to_dense()
    tensor([[1.],
            [2.]])
    """
    return hspmm(mat1, mat2, out=out)


methods = {"smm": smm, "sspaddmm": sspaddmm}
_names = {"__name__": __name__, "methods": methods}  # not those of rows, which some functions here share
functions = publish(_names, {f.__name__: f for f in (dsmm, hsmm, hspmm, smm, spmm, sspaddmm)})
published_methods = _names["published_methods"]
forms = {
    "mm": mm,
    "dsmm": mm,
    "spmm": mm,
    "mv": mv,
    "bmm": bmm,
    "matmul": matmul,
    "__matmul__": matmul,
    "__rmatmul__": lambda self, other: matmul(other, self),
    "linear": linear,
    "addmm": addmm,
    "addmm_": addmm_,
    "addmv": addmv,
    "addmv_": addmv_,
    "smm": smm,
    "hspmm": hspmm,
    "hsmm": hspmm,
    "sspaddmm": sspaddmm,
}
