"""Functions that make sparse tensors from their parts, and those that return the parts."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import named, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.predicates import layout as layout_type
from cygrad._core.tensor.predicates import layouts
from cygrad._core.types.size import Size
from cygrad._kernels.sparse.array import Compressed, Coordinates
from cygrad._kernels.sparse.coordinates import grouped
from cygrad._kernels.sparse.errors import not_for
from cygrad._kernels.sparse.invariants import check_compressed, check_coordinates, check_numel, is_checked
from cygrad._ops.base.creation import tensor as made
from cygrad._ops.sparse.entries import built, coalesce, compressed, entries
from cygrad._ops.sparse.tensor import array, is_sparse


class checking:
    """Whether `check_sparse_tensor_invariants` has been switched on."""

    is_on = False


def _values_of(values, dtype, device):
    given = values if isinstance(values, Tensor) else made(values)
    if is_sparse(given):
        raise RuntimeError("expected values to be a strided tensor, but got a sparse one")
    return given.to(device=given.device if device is None else device, dtype=given.dtype if dtype is None else dtype)


def _indices_of(indices, like, dtype=None):
    found = indices if isinstance(indices, Tensor) else made(indices)
    if dtype is None and not isinstance(indices, Tensor) and not found.numel():
        found = found.long()
    return array_of(found.detach().to(device=like.device, dtype=dtype or found.dtype))


def _finished(tensor, requires_grad):
    return tensor.detach().requires_grad_() if requires_grad and not tensor.requires_grad else tensor


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """Return the sparse tensor with `values` at the coordinates `indices`, in the layout `sparse_coo`.

    `indices`: (sparse dimensions, n), one column for each value; `values`: (n, dense dimensions). The size has the
    sparse dimensions and then the dense ones; by default it is just large enough. Values at equal coordinates count as
    their sum. `sparse_coo_tensor(size)` has no values. Gradients flow to `values`: the gradients at the coordinates.
    Raises RuntimeError for parts that do not fit together.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=torch.sparse_coo)
    """
    if values is None:
        size = indices if size is None else size
        if size is None or isinstance(size, Tensor):
            raise messages.no_such_call("sparse_coo_tensor", () if size is None else (size,), {}, _CALLS)
        return _empty_coordinates(tuple(size), dtype, device, requires_grad)
    given = _values_of(values, dtype, device)
    places = _indices_of(indices, given, _int64())
    given = given if given.ndim else given.reshape(1)
    content = array_of(given)
    if size is None:
        size = _least_size(places, content)
    size = tuple(int(length) for length in size)
    check_coordinates(places, content, size, is_checked(places, checking.is_on or check_invariants))
    if is_coalesced and (checking.is_on or check_invariants):
        _check_coalesced(places, size)
    return _finished(built(places, given, size, bool(is_coalesced)), requires_grad)


_CALLS = (
    "tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad = False",
    "Tensor indices, Tensor values, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad "
    "= False",
    "Tensor indices, Tensor values, tuple of ints size, *, torch.dtype dtype = None, torch.device device = None, bool "
    "requires_grad = False",
)


def _int64():
    from cygrad._core.types.dtypes import by_name  # its table is not needed when this module is imported

    return by_name()["int64"]


def _least_size(places, content):
    if places.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    lengths = [int(row.max()) + 1 if len(row) else 0 for row in places]
    return (*lengths, *content.shape[1:])


def _check_coalesced(places, size):
    if grouped(places, size[: len(places)])[1] is not None:
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def _empty_coordinates(size, dtype, device, requires_grad):
    values = made([], dtype=dtype, device=device)
    places = np.zeros((len(size), 0), np.int64, like=array_of(values))
    size = tuple(int(n) for n in size)
    check_numel(size)
    return _finished(built(places, values, size), requires_grad)


# -- compressed --


def _compressed_tensor(function, bounds, plain, values, size, layout, dtype, device, requires_grad, check):
    given = _values_of(values, dtype, device)
    starts, others = _indices_of(bounds, given), _indices_of(plain, given)
    a = Compressed(starts, others, array_of(given), (), layout)
    a.shape = _least_compressed_size(a) if size is None else tuple(int(length) for length in size)
    check_compressed(a, is_checked(starts, checking.is_on or check))
    return _finished(compressed(starts, others, given, a.shape, layout), requires_grad)


def _least_compressed_size(a):
    block = a.values.shape[a.n_batch + 1 : a.n_batch + 3] if a.n_block else (1, 1)
    lines, others = a.bounds.shape[-1] - 1, int(a.plain.max()) + 1 if a.plain.size else 0
    rows, columns = (lines, others) if a.is_by_row else (others, lines)
    dense = a.values.shape[a.n_batch + 1 + a.n_block :]
    return (*a.bounds.shape[:-1], rows * block[0], columns * block[1], *dense)


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a sparse tensor in one of the layouts `sparse_csr`, `sparse_csc`, `sparse_bsr` and `sparse_bsc`.

    The values are stored row by row (csr, bsr), or column by column; `compressed_indices` tells where each row begins
    and the last one ends, `plain_indices` the column of each value. In the layouts bsr and bsc each value is a block, a
    matrix. Gradients flow to `values`. Raises RuntimeError for parts that do not fit together.

    >>> import cygrad
    >>> cygrad.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=cygrad.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    name = layout._name if isinstance(layout, layout_type) else "none"
    if not name.startswith("sparse_") or name == "sparse_coo":
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got "
            f"{'none' if layout is None else word(layouts.get(name))}"
        )
    given = (compressed_indices, plain_indices, values, size, name, dtype, device, requires_grad, check_invariants)
    return _compressed_tensor("sparse_compressed_tensor", *given)


def sparse_csr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a sparse matrix by compressed rows: `sparse_compressed_tensor` with the layout `sparse_csr`.

    >>> import cygrad
    >>> cygrad.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0])
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 0]),
           values=tensor([3., 4.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)
    """
    given = (crow_indices, col_indices, values, size, "sparse_csr", dtype, device, requires_grad, check_invariants)
    return _compressed_tensor("sparse_csr_tensor", *given)


def sparse_csc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a sparse matrix by compressed columns: `sparse_compressed_tensor` with the layout `sparse_csc`.

    >>> import cygrad
    >>> cygrad.sparse_csc_tensor([0, 1, 2], [1, 0], [1.0, 2.0]).to_dense()
    tensor([[0., 2.],
            [1., 0.]])
    """
    given = (ccol_indices, row_indices, values, size, "sparse_csc", dtype, device, requires_grad, check_invariants)
    return _compressed_tensor("sparse_csc_tensor", *given)


def sparse_bsr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a sparse matrix of blocks by rows: `sparse_compressed_tensor` with the layout `sparse_bsr`.

    >>> import cygrad
    >>> cygrad.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]]).to_dense()
    tensor([[1., 2.]])
    """
    given = (crow_indices, col_indices, values, size, "sparse_bsr", dtype, device, requires_grad, check_invariants)
    return _compressed_tensor("sparse_bsr_tensor", *given)


def sparse_bsc_tensor(
    ccol_indices,
    row_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a sparse matrix of blocks by columns: `sparse_compressed_tensor` with the layout `sparse_bsc`.

    >>> import cygrad
    >>> cygrad.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2.0]]]).to_dense()
    tensor([[1., 2.]])
    """
    given = (ccol_indices, row_indices, values, size, "sparse_bsc", dtype, device, requires_grad, check_invariants)
    return _compressed_tensor("sparse_bsc_tensor", *given)


def new_zeros_in(layout, size, dtype, device, requires_grad):
    """Return a sparse tensor of a layout without values."""
    if layout._name == "sparse_coo":
        return _empty_coordinates(size, dtype, device, requires_grad)
    if layout._name in ("sparse_bsr", "sparse_bsc") or len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    values = made([], dtype=dtype, device=device)
    batch, lines = tuple(size[:-2]), size[-2] if layout._name == "sparse_csr" else size[-1]
    bounds = np.zeros((*batch, lines + 1), np.int64, like=array_of(values))
    plain = np.zeros((*batch, 0), np.int64, like=array_of(values))
    return _finished(compressed(bounds, plain, values.reshape(*batch, 0), size, layout._name), requires_grad)


# -- parts --


def word(layout):
    """Return PyTorch's word for a layout in errors."""
    name = layout._name
    return {"strided": "Strided", "sparse_coo": "Sparse"}.get(name, "Sparse" + name[-3:].title())


def _refuse_layout(self, name, kind):
    raise RuntimeError(f"{name} expected {kind} tensor layout but got {word(self.layout)}")


def _coordinates(self, name):
    if not self.is_sparse:
        _refuse_layout(self, name, "sparse coordinate")
    return array(self)


def _coalesced(self, what):
    if not array(self).is_coalesced:
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


def _of_either(self, name):
    if not is_sparse(self) or name in ("_indices", "_values") and not self.is_sparse:
        kind = "CPU" if self.device.type == "cpu" else "CUDA"
        raise not_for(name, f"SparseCsr{kind}" if is_sparse(self) else kind)
    return array(self)


@named("coalesce")
def coalesced(self):
    """Return a tensor whose coordinates are in order and occur once, with the sum of the values that were there.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
    >>> x.coalesce().values()
    tensor([5.])
    """
    _coordinates(self, "coalesce")
    return coalesce(self)


def is_coalesced(self):
    """Whether the coordinates are known to be in order and to occur once.

    >>> import cygrad
    >>> x = cygrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
    >>> x.is_coalesced(), x.coalesce().is_coalesced()
    (False, True)
    """
    return _coordinates(self, "is_coalesced").is_coalesced


def indices(self):
    """Return the coordinates (sparse dimensions, n) of a coalesced tensor.

    Raises RuntimeError for a tensor that is not coalesced.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    a = _coordinates(self, "indices")
    _coalesced(self, "indices")
    return tensor_of(a.indices)


def values(self):
    """Return the values of a coalesced or compressed tensor. Gradients flow back through them.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    if not is_sparse(self):
        _refuse_layout(self, "values", "sparse")
    if self.is_sparse:
        _coalesced(self, "values")
    return entries(self)


def _indices(self):
    """Return the coordinates, coalesced or not."""
    return tensor_of(_of_either(self, "_indices").indices)


def _values(self):
    """Return the values, coalesced or not, in the memory of the tensor, without history."""
    return tensor_of(_of_either(self, "_values").values)


def _nnz(self):
    """Return the number of values."""
    a = _of_either(self, "_nnz")
    return a.values.shape[0 if isinstance(a, Coordinates) else a.n_batch]


DOC_PART = """Return {what}, of a tensor by compressed {kind}s.

    Raises RuntimeError for other layouts.

    >>> import cygrad
    >>> cygrad.eye(2).to_sparse_cs{letter}().{name}()
    tensor({shown})
    """


def _part(name, is_by_row, part):
    kind = "row" if is_by_row else "column"

    def function(self):
        a = array(self) if is_sparse(self) else None
        if not isinstance(a, Compressed) or a.is_by_row is not is_by_row:
            _refuse_layout(self, name, f"sparse {kind} compressed")
        return tensor_of(getattr(a, part))

    function.__name__ = function.__qualname__ = name
    what = f"where each {kind} begins" if part == "bounds" else "the other coordinate of each value"
    function.__doc__ = DOC_PART.format(
        what=what, kind=kind, name=name, letter=kind[0], shown=[0, 1, 2] if part == "bounds" else [0, 1]
    )
    return function


crow_indices, col_indices = _part("crow_indices", True, "bounds"), _part("col_indices", True, "plain")
ccol_indices, row_indices = _part("ccol_indices", False, "bounds"), _part("row_indices", False, "plain")


def sparse_dim(self):
    """Return the number of dimensions that are sparse: 0 for a dense tensor.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[1]], [[2.0, 3.0]], (3, 2)).sparse_dim()
    1
    """
    if not is_sparse(self):
        return 0
    a = array(self)
    return len(a.indices) if isinstance(a, Coordinates) else 2


def dense_dim(self):
    """Return the number of dimensions of each value.

    >>> import cygrad
    >>> cygrad.sparse_coo_tensor([[1]], [[2.0, 3.0]], (3, 2)).dense_dim()
    1
    """
    if not is_sparse(self):
        return self.ndim
    a = array(self)
    return self.ndim - (len(a.indices) if isinstance(a, Coordinates) else a.n_batch + 2)


def size_of(values):
    """Return a size given as one sequence or as several integers."""
    return Size(values[0]) if len(values) == 1 and not isinstance(values[0], int) else Size(values)


def deprecated_sparse_tensor(kind, values, device):
    """Make a tensor as `torch.sparse.FloatTensor` and the like do: of indices and values, or of a shape."""
    if len(values) >= 2 and isinstance(values[0], Tensor):
        size = ", shape, " if len(values) > 2 else ", "
        given = "shape, " if len(values) > 2 else ""
        warn(
            f"torch.sparse.SparseTensor(indices, values{size}*, device=) is deprecated.  Please use "
            f"torch.sparse_coo_tensor(indices, values, {given}dtype=, device=)."
        )
        if values[1].dtype is not kind:
            raise TypeError(f"expected values of {kind}, but got {values[1].dtype}")
        return sparse_coo_tensor(*values, device=device)
    warn(
        "torch.sparse.SparseTensor(shape, *, device=) is deprecated.  Please use torch.sparse_coo_tensor(shape, "
        "dtype=, "
        "device=)."
    )
    return sparse_coo_tensor(size_of(values), dtype=kind, device=device)


methods = {
    "coalesce": coalesced,
    "is_coalesced": is_coalesced,
    "indices": indices,
    "values": values,
    "_indices": _indices,
    "_values": _values,
    "_nnz": _nnz,
    "crow_indices": crow_indices,
    "col_indices": col_indices,
    "ccol_indices": ccol_indices,
    "row_indices": row_indices,
    "sparse_dim": sparse_dim,
    "dense_dim": dense_dim,
}
_names = {"__name__": __name__, "methods": methods}  # not those of rows, which some functions here share
functions = publish(
    _names,
    {
        "sparse_coo_tensor": sparse_coo_tensor,
        "sparse_compressed_tensor": sparse_compressed_tensor,
        "sparse_csr_tensor": sparse_csr_tensor,
        "sparse_csc_tensor": sparse_csc_tensor,
        "sparse_bsr_tensor": sparse_bsr_tensor,
        "sparse_bsc_tensor": sparse_bsc_tensor,
    },
)
published_methods = _names["published_methods"]
