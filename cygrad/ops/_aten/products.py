"""Products of matrices, distances, and norms of weights."""

import cygrad
from cygrad._core.errors import messages
from cygrad._ops.nn import activations
from cygrad.ops._aten.table import aten


@aten
def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return beta * self + alpha * mat1 @ mat2, where mat1 is sparse."""
    return cygrad.sparse.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


@aten
def _sparse_mm_reduce_impl(self, other, reduce):
    """Return, for each row of a matrix by compressed rows, the reduction of its values times the rows of `other`; and
    for "amax" and "amin", if gradients need it, which of its values that is."""
    result = cygrad.sparse.mm(self, other, reduce)
    if reduce not in ("amax", "amin") or not (self.requires_grad or other.requires_grad):
        return result, result.new_empty(0, dtype=cygrad.int64)
    terms = self.values().unsqueeze(1) * other[self.col_indices().long()]
    rows = cygrad.arange(self.shape[0]).repeat_interleave(self.crow_indices().diff().long())
    places = cygrad.arange(len(terms)).unsqueeze(1).expand(terms.shape)
    chosen = cygrad.where(terms == result[rows], places, len(terms))
    first = cygrad.full(result.shape, len(terms))
    return result, first.scatter_reduce(0, rows.unsqueeze(1).expand(terms.shape), chosen, "amin")


@aten
def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False, out=None):
    """Return `addmm`, and then `relu` or `gelu`."""
    result = cygrad.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    found = activations.gelu(result) if use_gelu else result.relu()
    return found if out is None else cygrad.add(found, 0, out=out)  # which checks `out`, and gives it the shape


@aten
def mm(self, mat2, out_dtype=None):
    """Return the product of two matrices, computed in `out_dtype`."""
    return cygrad.mm(self, mat2) if out_dtype is None else cygrad.mm(self.to(out_dtype), mat2.to(out_dtype))


@aten
def bmm(self, mat2, out_dtype=None):
    """Return the products of two batches of matrices, computed in `out_dtype`."""
    return cygrad.bmm(self, mat2) if out_dtype is None else cygrad.bmm(self.to(out_dtype), mat2.to(out_dtype))


@aten
def _int_mm(self, mat2, *, out=None):
    """Return the product of a matrix (m, k) of int8 or uint8 and one (k, n) of int8, in int32.

    Raises RuntimeError for other dtypes and shapes, and for an `out` that is not int32 of shape (m, n).

    >>> import cygrad as torch
    >>> x = torch.tensor([[100, 100]], dtype=torch.int8)
    >>> torch._int_mm(x, x.t())
    tensor([[20000]], dtype=torch.int32)
    """
    _check_int_mm(self, mat2, out)
    # Sums of fewer than 2^38 such products are exact in double precision, whose loops are the fastest ones.
    product = cygrad.mm(self.double(), mat2.double()).long().to(cygrad.int32)
    return product if out is None else out.copy_(product)


def _check_int_mm(self, mat2, out):
    for name, matrix in (("self", self), ("mat2", mat2)):
        _expect(matrix.ndim == 2, f"{name} to be of dimension 2 but got {matrix.ndim}")
    of_bytes = cygrad.int8, cygrad.uint8
    _expect(self.dtype in of_bytes, f"self dtype to be int8 or uint8 but got {messages.c_word(self)}")
    _expect(mat2.dtype is cygrad.int8, f"mat2 dtype to be of type int8 but got {messages.c_word(mat2)}")
    if self.shape[1] != mat2.shape[0]:
        sizes = f"{self.shape[1]} and {mat2.shape[0]}"
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {sizes}")
    if out is None:
        return
    _expect(out.dtype is cygrad.int32, f"result dtype to be of type kInt but got {messages.c_word(out)}")
    _expect(out.ndim == 2, f"result to be of dimension 2 but got {out.ndim}")
    for dim, length in enumerate((self.shape[0], mat2.shape[1])):
        _expect(out.shape[dim] == length, f"result.size({dim}) to be {length} but got {out.shape[dim]}")


def _expect(holds, what):
    if not holds:
        raise RuntimeError(f"int_mm_out_cpu: Expected {what}")


@aten
def norm_except_dim(v, pow=2, dim=0):
    """Return the norms over all dimensions but one; over all if `dim` is -1.

    Each is (sum of |x|^pow)^(1/pow).

    >>> import cygrad
    >>> cygrad.norm_except_dim(cygrad.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    axes = [i for i in range(v.ndim) if i != dim] if dim != -1 else list(range(v.ndim))
    return v.norm(pow) if dim == -1 else v.norm(pow, axes, keepdim=True)


@aten
def _weight_norm(v, g, dim=0):
    """Return `v * (g / norm_except_dim(v, 2, dim))`.

    >>> import cygrad as torch
    >>> torch._weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[10.0]]))
    tensor([[6., 8.]])
    """
    return v * (g / norm_except_dim(v, 2, dim))


@aten
def _cdist_forward(x1, x2, p, compute_mode=None):
    """Return `cdist`; the compute mode is None, or 0, 1 and 2 for the words of `cdist`."""
    modes = "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
    return cygrad.cdist(x1, x2, p, modes[compute_mode or 0])


@aten
def _pdist_forward(self, p=2):
    """Return the distances of all pairs of rows."""
    return cygrad.pdist(self, p)


@aten
def _euclidean_dist(x1, x2):
    """Return the Euclidean distances of all pairs."""
    return cygrad.cdist(x1, x2)


@aten
def _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1):
    """Return the sum over dimensions of the product of three tensors, each with new dimensions at its `expand`."""
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    product = i1 * i2 * i3
    return product.sum(tuple(sumdim)) if sumdim else product


@aten
def broadcast_tensors(tensors):
    """Return the tensors of a list, all expanded to one shape."""
    return cygrad.broadcast_tensors(*tensors)


@aten
def cartesian_prod(tensors):
    """Return the pairs, triples, ... of elements of the tensors of a list."""
    return cygrad.cartesian_prod(*tensors)


@aten
def chain_matmul(matrices):
    """Return the product of the matrices of a list."""
    return cygrad.chain_matmul(*matrices)


@aten
def block_diag(tensors):
    """Return the matrix with the tensors of a list along its diagonal."""
    return cygrad.block_diag(*tensors)
