"""The `_scatter` forms of views: copies of a tensor in which another tensor replaces what the view would show.

All are linear, convert `src` to the tensor's dtype, and save nothing but geometry. Gradients: of the tensor, g with
zeros in the view; of `src`, the view of g.
"""

import numpy as np

from cygrad._core import graph_errors
from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import LINEAR, declare, publish
from cygrad._core.graph.record import record_n, recorded
from cygrad._kernels.cpu.base.copying import in_dtype
from cygrad._kernels.cpu.base.view_geometry import overlaps_itself, restride
from cygrad._kernels.cpu.shape import diagonals, replacing, strided_gradients
from cygrad._ops.base.arguments import dim_argument, integer, require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import check_gradient_of_part
from cygrad._ops.base.slicing import select
from cygrad._ops.base.slicing import slice as slice_of
from cygrad._ops.shape.diagonals import diagonal
from cygrad._ops.shape.strided import as_strided, geometry_wanted, strided, strided_gather


def _check_part(part, shape):
    if array_of(part).shape != shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(part.shape)}, slice size = {list(shape)}"
        )


def _operands(t, part):
    check_gradient_of_part(t, part)
    return t, part


def _zeros_like(part, g):
    return tensor_of(np.zeros(part, array_of(g).dtype, like=array_of(g)))


# -- select --


def select_scatter_rule(n, g):
    dim, index, shape = n.args
    return (
        select_scatter(g, _zeros_like(shape, g), dim, index) if n.needs(0) else None,
        select(g, dim, index) if n.needs(1) else None,
    )


SELECT_SCATTER = declare(
    "select_scatter",
    select_scatter_rule,
    flags=LINEAR,
    kernel=replacing.at_index,
    inputs="self src",
    attributes="dim index",
    devices="together",
)


def select_scatter(input, src, dim, index):
    """Return a copy of `input` with `src` in place of `select(input, dim, index)`.

    Raises IndexError for a dimension or an index out of range, RuntimeError for another shape of `src`. Saves nothing.

    >>> import cygrad
    >>> cygrad.select_scatter(cygrad.zeros(2, 2), cygrad.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    t, part = require(input, "select_scatter"), require(src, "select_scatter", "src", 2)
    d = integer(dim, "select_scatter", "dim", 3)
    i = integer(index, "select_scatter", "index", 4)
    shape = array_of(t).shape
    if not (-len(shape) <= d < len(shape) and -shape[d] <= i < shape[d]):
        select(t, d, i)  # raises the error
    d %= len(shape)
    _check_part(part, shape[:d] + shape[d + 1 :])
    array = replacing.at_index(array_of(t), array_of(part), d, i)
    return record_n(SELECT_SCATTER, array, _operands(t, part), (d, i, array_of(part).shape))


# -- slice --


def slice_scatter_rule(n, g):
    dim, start, stop, step, shape = n.args
    return (
        slice_scatter(g, _zeros_like(shape, g), dim, start, stop, step) if n.needs(0) else None,
        slice_of(g, dim, start, shape[dim], step) if n.needs(1) else None,
    )


SLICE_SCATTER = declare(
    "slice_scatter",
    slice_scatter_rule,
    flags=LINEAR,
    kernel=replacing.at_slice,
    inputs="self src",
    attributes="dim start end step",
    devices="together",
    out_dtype="same",
)


def slice_scatter(input, src, dim=0, start=None, end=None, step=1, *, out=None):
    """Return a copy of `input` with `src` in place of `input[start:end:step]` along dimension `dim`.

    Raises RuntimeError for another shape of `src` or a step that is not positive. Saves nothing.

    >>> import cygrad
    >>> cygrad.slice_scatter(cygrad.zeros(4), cygrad.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    t, part = require(input, "slice_scatter"), require(src, "slice_scatter", "src", 2)
    d, first, stop, stride, count = bounds_of_slice(t, dim, start, end, step, "slice_scatter")
    array, source = array_of(t), array_of(part)
    shape, wanted = source.shape, array.shape
    if wanted[d] != count:
        wanted = (*wanted[:d], count, *wanted[d + 1 :])
    if shape != wanted:
        _check_part(part, wanted)
    array = replacing.at_slice(array, source, d, first, stop, stride)
    return recorded(SLICE_SCATTER, array, _operands(t, part), (d, first, stop, stride, shape), out)


@rule("slice_scatter select_scatter")
def _scatter_part(call):
    t, part = (call.full(x) for x in call.inputs)
    dim, *where, _ = call.args
    return getattr(t, call.key)(part, dim % call.out.ndim + 1, *where)


def bounds_of_slice(t, dim, start, end, step, name):
    """Return (dimension, start, stop, step, number of elements), clipped to the tensor."""
    shape = array_of(t).shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    d = dim_argument(dim, len(shape), name, "dim", 1)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if start.__class__ is bool or end.__class__ is bool:
        what, position = ("start", 4) if start.__class__ is bool else ("end", 5)
        raise messages.wrong_type(name, what, position, "int", True)
    first, stop, stride = slice(start, end, step).indices(shape[d])
    return d, first, stop, stride, 0 if stop <= first else (stop - first - 1) // stride + 1


# -- diagonal --


def diagonal_scatter_rule(n, g):
    *where, shape = n.args
    return (
        diagonal_scatter(g, _zeros_like(shape, g), *where) if n.needs(0) else None,
        diagonal(g, *where) if n.needs(1) else None,
    )


DIAGONAL_SCATTER = declare(
    "diagonal_scatter",
    diagonal_scatter_rule,
    flags=LINEAR,
    kernel=replacing.at_diagonal,
    inputs="self src",
    attributes="offset dim1 dim2",
    devices="together",
)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """Return a copy of `input` with `src` in place of `diagonal(input, offset, dim1, dim2)`.

    Raises IndexError for a dimension out of range, RuntimeError for another shape of `src`. Saves nothing.

    >>> import cygrad
    >>> cygrad.diagonal_scatter(cygrad.zeros(2, 2), cygrad.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    t, part = require(input, "diagonal_scatter"), require(src, "diagonal_scatter", "src", 2)
    ndim = t.ndim
    where = (
        integer(offset, "diagonal_scatter", "offset", 3),
        dim_argument(dim1, ndim, "diagonal_scatter", "dim1", 4),
        dim_argument(dim2, ndim, "diagonal_scatter", "dim2", 5),
    )
    if where[1] == where[2]:
        diagonal(t, *where)  # raises the error
    _check_part(part, diagonals.diagonal(array_of(t), *where).shape)
    array = replacing.at_diagonal(array_of(t), array_of(part), *where)
    return record_n(DIAGONAL_SCATTER, array, _operands(t, part), (*where, array_of(part).shape))


@rule("diagonal_scatter")
def _scatter_diagonal(call):
    offset, dim1, dim2 = call.args[:3]
    ndim = call.out.ndim
    t, part = map(call.full, call.inputs)
    return diagonal_scatter(t, part, offset, dim1 % ndim + 1, dim2 % ndim + 1)


# -- strided --


def as_strided_scatter_rule(n, g):
    view, base = n.args
    kept = None
    if n.needs(0):
        array = strided_gradients.strided_scatter(memory_of(g), None, view, base)
        kept = record_n(AS_STRIDED_SCATTER, array, (g, None), (view, base))
    return kept, strided_gather(g, view, base) if n.needs(1) else None


AS_STRIDED_SCATTER = declare(
    "as_strided_scatter",
    as_strided_scatter_rule,
    flags=LINEAR,
    kernel=strided_gradients.strided_scatter,
    inputs="self src",
    devices="together",
    batching=strided,
)


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """Return a copy of `input`, in its memory layout, with `src` in place of `as_strided(input, size, stride, ...)`.

    Raises RuntimeError for another shape of `src`, for a view that exceeds the memory of `input`, and for one whose
    elements overlap. Saves nothing.

    >>> import cygrad
    >>> cygrad.as_strided_scatter(cygrad.zeros(2, 2), cygrad.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    t, part = require(input, "as_strided_scatter"), require(src, "as_strided_scatter", "src", 2)
    view = geometry_wanted(t, size, stride, storage_offset)
    _check_part(part, view[0])
    whole = array_of(t)
    if overlaps_itself(restride(whole, *view)):
        raise graph_errors.overlap_error(as_strided(t, size, stride, storage_offset))
    base = (whole.shape, whole.strides)
    values = in_dtype(array_of(part), whole.dtype)
    array = strided_gradients.strided_scatter(whole, values, view, base)
    hint = part, list(size), list(stride), storage_offset
    return record_n(AS_STRIDED_SCATTER, array, _operands(t, part), (view, base), hint)


functions = publish(globals())
