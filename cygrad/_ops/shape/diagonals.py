"""Diagonals and triangles of matrices. All ops are linear and save only shapes."""

import math
from functools import partial

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, own_array, tensor_of
from cygrad._core.graph.opdef import (
    FUNCTION_ONLY,
    INPLACE,
    LINEAR,
    METHOD_ONLY,
    PRIVATE,
    VIEW,
    declare,
    note_facts,
    publish,
    variant,
)
from cygrad._core.graph.record import apply1_args, as_type, record_n, record_view, result_type, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.types.dtypes import as_dtype, dtype_of_number
from cygrad._kernels.cpu.base.chunks import InPlace
from cygrad._kernels.cpu.base.copying import copy
from cygrad._kernels.cpu.shape import diagonals as kernels
from cygrad._kernels.device.cupy_library import is_array
from cygrad._kernels.device.unresolved import memory_behind, shown_through
from cygrad._kernels.tape.calls import made_of_numbers
from cygrad._ops.base.arguments import dim_argument, integer, require, tensor_list
from cygrad._ops.base.batching.rules import leading, rule, shifting
from cygrad._ops.base.creation import check_place, fresh, only_strided
from cygrad._ops.base.slicing import cat
from cygrad._ops.base.views import reshape
from cygrad._ops.shape.strided import as_strided

# -- diagonal --


def diagonal_rule(n, g):
    return diagonal_backward(g, *n.args)


DIAGONAL = declare(
    "diagonal",
    diagonal_rule,
    flags=VIEW | LINEAR,
    kernel=kernels.diagonal,
    attributes="self_sym_sizes offset dim1 dim2",
)


def diagonal(input, offset=0, dim1=0, dim2=1):
    """Return the diagonals of the matrices in dimensions `dim1` and `dim2`, as a new last dimension.

    A positive `offset` selects a diagonal above the main one, a negative one a diagonal below. Saves nothing. Gradient:
    g on that diagonal of zeros. Raises IndexError for a dimension out of range, RuntimeError if both are the same.

    >>> import cygrad
    >>> cygrad.diagonal(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    array = own_array(require(input, "diagonal"))
    where = (
        integer(offset, "diagonal", "offset", 1),
        dim_argument(dim1, array.ndim, "diagonal", "dim1", 2),
        dim_argument(dim2, array.ndim, "diagonal", "dim2", 3),
    )
    if where[1] == where[2]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shown = shown_through(array, kernels.diagonal(memory_behind(array), *where))
    return record_view(DIAGONAL, shown, input, (array.shape, *where))


@rule("diagonal")
def _diagonal(call):
    _, offset, dim1, dim2 = call.args
    ndim = call.inputs[0].ndim
    return call.full(call.inputs[0]).diagonal(offset, dim1 % ndim + 1, dim2 % ndim + 1)


def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Return the diagonals of the matrices in the last two (or the given) dimensions; see `cygrad.diagonal`.

    >>> import cygrad
    >>> cygrad.linalg.diagonal(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return diagonal(require(A, "linalg_diagonal", "A"), offset, dim1, dim2)


def diagonal_backward_rule(n, g):
    _, offset, dim1, dim2 = n.args
    return diagonal(g, offset, dim1, dim2)


DIAGONAL_BACKWARD = declare(
    "diagonal_backward",
    diagonal_backward_rule,
    flags=LINEAR | PRIVATE,
    kernel=kernels.on_diagonal,
    batching=shifting("s.dd"),
)


def diagonal_backward(input, shape, offset, dim1, dim2):
    """Return zeros of `shape` with `input` on the diagonals."""
    return apply1_args(DIAGONAL_BACKWARD, input, (shape, offset, dim1, dim2), None)


DIAGONAL_COPY = variant(DIAGONAL, "DiagonalBackward0_copy", name="diagonal_copy")


def diag_embed_rule(n, g):
    return diagonal(g, *n.args)


DIAG_EMBED = declare(
    "diag_embed",
    diag_embed_rule,
    flags=LINEAR,
    kernel=kernels.embed,
    attributes="offset dim1 dim2",
    batching=shifting(".dd"),
)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Return matrices, in dimensions `dim1` and `dim2` of the result, with the last dimension of `input` on a diagonal.

    A positive `offset` selects a diagonal above the main one, a negative one a diagonal below; all other elements are
    0. Saves nothing. Gradient: the diagonals of g. Raises IndexError for a dimension out of range, RuntimeError if both
    are the same.

    >>> import cygrad
    >>> cygrad.diag_embed(cygrad.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    t = require(input, "diag_embed")
    where = (
        integer(offset, "diag_embed", "offset", 1),
        dim_argument(dim1, t.ndim + 1, "diag_embed", "dim1", 2),
        dim_argument(dim2, t.ndim + 1, "diag_embed", "dim2", 3),
    )
    if where[1] == where[2]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    _check_offset(t.shape, where[0])
    return apply1_args(DIAG_EMBED, t, where, None)


def _check_offset(shape, offset):
    """Raise if matrices with vectors of this length on a diagonal at this offset would be too large."""
    if shape and abs(offset) > shape[-1]:
        n = shape[-1] + abs(offset)
        checked_lengths((*shape[:-1], n, n))


def diag(input, diagonal=0, *, out=None):
    """Return a matrix with the vector `input` on a diagonal, or a copy of a diagonal of the matrix `input`.

    `diagonal` is the offset from the main diagonal, positive above it. Gradient: the diagonal of g, or g on the
    diagonal. Raises RuntimeError for other numbers of dimensions.

    >>> import cygrad
    >>> cygrad.diag(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    t, offset = require(input, "diag"), integer(diagonal, "diag", "diagonal", 1)
    if t.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {t.ndim}D")
    where = (offset, 0, 1)
    if t.ndim == 1:
        _check_offset(t.shape, offset)
        return apply1_args(DIAG_EMBED if out is None else DIAG_VECTOR_OUT, t, where, out)
    array = array_of(t)
    if out is None:
        return record_n(DIAGONAL_COPY, copy(kernels.diagonal(array, *where)), (t,), (array.shape, *where))
    return apply1_args(DIAGONAL_OUT, t, where, out)


DIAGONAL_OUT = variant(DIAGONAL, "DiagonalBackward0_copy", name="diag")
DIAG_VECTOR_OUT = variant(DIAG_EMBED, "DiagEmbedBackward0", name="diag.vector")
note_facts("diag", {"out_dtype": "same"})
note_facts(
    "diag.vector",
    {
        "out_dtype": "same",
        "out_castable": "diag: result type {result} can't be cast to the desired out= type {out}",
    },
)


def diagflat(input, offset=0):
    """Return a matrix with all elements of `input` on a diagonal; see `diag_embed`.

    >>> import cygrad
    >>> cygrad.diagflat(cygrad.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(require(input, "diagflat"), (-1,)), offset)


def fill_diagonal_(self, fill_value, wrap=False):
    """Fill the diagonal of this tensor with a number and return it; with more than two dimensions, all must be equal.

    With `wrap`, the diagonal of a tall matrix restarts below each square.

    >>> import cygrad
    >>> cygrad.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    shape = array_of(require(self, "fill_diagonal_")).shape
    if isinstance(fill_value, Tensor) and not fill_value.ndim:
        fill_value = fill_value.item()
    if not isinstance(fill_value, (int, float, complex)):
        raise messages.wrong_type("fill_diagonal_", "fill_value", 1, "Number", fill_value)
    messages.check_flag("fill_diagonal_", "wrap", 2, wrap)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    size, step = min(shape), sum(self.stride())
    as_strided(self, (size,), (step,)).fill_(fill_value)
    rows, columns = shape[:2]
    if wrap and len(shape) == 2 and rows > columns + 1:
        start = self.storage_offset() + self.stride(0) * (columns + 1)
        left = math.ceil(rows * columns / (columns + 1)) - size
        as_strided(self, (left,), (step,), start).fill_(fill_value)
    return self


# -- blocks --


def block_diag_rule(n, g):
    grads, row, column = [], 0, 0
    for i, shape in enumerate(n.args[0]):
        height, width = (1, 1, *shape)[-2:]
        part = g[row : row + height, column : column + width] if n.needs(i) else None
        grads.append(part if part is None or len(shape) == 2 else reshape(part, shape))
        row, column = row + height, column + width
    return tuple(grads)


BLOCK_DIAG = declare(
    "block_diag",
    block_diag_rule,
    flags=LINEAR | FUNCTION_ONLY,
    kernel=kernels.block_diag,
    inputs="tensors",
    devices="together",
    in_python=True,
)


def block_diag(*tensors):
    """Return a block-diagonal matrix of the given matrices, with 0 elsewhere. Dtypes are promoted.

    Vectors count as rows. Saves nothing. Gradient: each tensor's block of g. Raises RuntimeError for more than 2
    dimensions.

    >>> import cygrad
    >>> cygrad.block_diag(cygrad.tensor([1, 2]), cygrad.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    given = tensor_list(tensors, "block_diag")
    for i, t in enumerate(given):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    if not given:
        return tensor_of(np.empty((1, 0), np.float32))
    kind = result_type(given)
    shapes = [array_of(t).shape for t in given]  # first, since `array_of` has what waits on a GPU computed
    array = kernels.block_diag([as_type(t, kind) for t in given], kind.numpy)
    return record_n(BLOCK_DIAG, array, given, (shapes,))


@rule("block_diag")
def _block_diag(call):
    shapes = [(1,) * (2 - x.ndim) + x.shape for x in call.inputs]
    rows, before, width = [], 0, call.out.shape[1]
    for x, (height, own) in zip(call.inputs, shapes, strict=True):
        block = call.shaped(call.full(x).to(call.out.dtype), (height, own))
        left, right = (block.new_zeros((call.size, height, n)) for n in (before, width - before - own))
        rows.append(cat([left, block, right], 2))
        before += own
    return cat(rows, 1)


# -- triangles --


def tril_rule(n, g):
    return tril(g, n.args[0])


TRIL = declare(
    "tril",
    tril_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.tril,
    attributes="diagonal",
    out_dtype="same",
    batching=leading,
)


def tril(input, diagonal=0, *, out=None):
    """Set elements above a diagonal of matrices (the last two dimensions) to zero. Saves nothing. Gradient: tril of g.

    `diagonal` is the offset from the main diagonal, positive above it. Raises RuntimeError for fewer than 2 dimensions.

    >>> import cygrad
    >>> cygrad.tril(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """
    return _triangle(TRIL, require(input, "tril"), diagonal, out)


def triu_rule(n, g):
    return triu(g, n.args[0])


TRIU = declare(
    "triu",
    triu_rule,
    flags=LINEAR | INPLACE,
    kernel=kernels.triu,
    attributes="diagonal",
    out_dtype="same",
    batching=leading,
)


def triu(input, diagonal=0, *, out=None):
    """Set elements below a diagonal of matrices (the last two dimensions) to zero. Saves nothing. Gradient: triu of g.

    `diagonal` is the offset from the main diagonal, positive above it. Raises RuntimeError for fewer than 2 dimensions.

    >>> import cygrad
    >>> cygrad.triu(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """
    return _triangle(TRIU, require(input, "triu"), diagonal, out)


def _triangle(op, t, diagonal, out):
    shift = integer(diagonal, op.name, "diagonal", 1)
    if t.ndim < 2:
        raise RuntimeError(f"{op.name}: input tensor must have at least 2 dimensions")
    if out is t and not is_array(array_of(t)):
        change = partial(kernels.tril_within if op is TRIL else kernels.triu_within, offset=shift)
        return write_into(op, t, InPlace(array_of(t), change), (t,), (shift,))
    return apply1_args(op, t, (shift,), out)


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, requires_grad=False):
    """Return the indices of the elements that `tril` keeps of a `row` x `col` matrix: row numbers above column numbers.

    >>> import cygrad
    >>> cygrad.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    only_strided(layout, "tril_indices")
    return _triangle_indices("tril_indices", kernels.tril_indices, row, col, offset, dtype, device)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, requires_grad=False):
    """Return the indices of the elements that `triu` keeps of a `row` x `col` matrix: row numbers above column numbers.

    >>> import cygrad
    >>> cygrad.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    only_strided(layout, "triu_indices")
    return _triangle_indices("triu_indices", kernels.triu_indices, row, col, offset, dtype, device)


def _triangle_indices(name, kernel, row, col, offset, dtype, device):
    place = check_place(device, False)
    rows, columns = integer(row, name, "row", 1), integer(col, name, "col", 2)
    shift = integer(offset, name, "offset", 3)
    if rows < 0 or columns < 0:
        axis, size = ("row", rows) if rows < 0 else ("col", columns)
        raise RuntimeError(f"{axis} must be non-negative, got{size}")
    kind = dtype_of_number(0) if dtype is None else as_dtype(dtype)
    if kind.name not in ("int64", "int32"):
        raise messages.not_implemented_for(name, kind)
    return fresh(made_of_numbers(_indices, kernel, rows, columns, shift, kind.numpy), False, name, None, place)


def _indices(kernel, rows, columns, shift, dtype):
    return kernel(rows, columns, shift).astype(dtype, copy=False)


composite = {"diag": 0, "diagflat": 0, "tril_indices": FUNCTION_ONLY, "triu_indices": FUNCTION_ONLY}
composite["linalg_diagonal"] = FUNCTION_ONLY | METHOD_ONLY  # in neither namespace, only in cygrad.linalg
methods = {"fill_diagonal_": fill_diagonal_}
functions = publish(globals())
