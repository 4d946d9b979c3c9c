"""Joining tensors after adding dimensions, broadcasting, combinations: all composed of other ops."""

import math

import numpy as np

from cygrad._core.engine.blocked_gradients import is_own
from cygrad._core.graph.internals import array_of, memory_of, tensor_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, LINEAR, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.types.size import Size
from cygrad._kernels.cpu.base.arrays import new_array
from cygrad._kernels.device.cupy_library import beside, is_array
from cygrad._ops.base.arguments import broadcast_shape, integer, integers, is_integer, require, tensor_list
from cygrad._ops.base.checks import slicing as checks
from cygrad._ops.base.slicing import cat, select, stack
from cygrad._ops.base.views import expand, reshape, unsqueeze
from cygrad._ops.creation.ranges import meshgrid
from cygrad._ops.indexing.gathering import index_select


def _joinable(tensors, name):
    given = tensor_list(tensors, name)
    if not given:
        raise checks.nothing_to_stack(name)
    return given


def hstack(tensors, *, out=None):
    """Concatenate tensors horizontally: along the second dimension, or the only one of vectors.

    Raises RuntimeError like `cat`.

    >>> import cygrad
    >>> cygrad.hstack([cygrad.tensor([1, 2]), cygrad.tensor([3])])
    tensor([1, 2, 3])
    """
    given = [t if isinstance(t, Tensor) and t.ndim else atleast_1d(t) for t in _joinable(tensors, "hstack")]
    return cat(given, 0 if given[0].ndim == 1 else 1, out=out)


@facts(spellings={"row_stack": "row_stack"})
def vstack(tensors, *, out=None):
    """Concatenate tensors vertically, along the first dimension; vectors are treated as rows.

    Raises RuntimeError like `cat`.

    >>> import cygrad
    >>> cygrad.vstack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    given = [t if isinstance(t, Tensor) and t.ndim > 1 else atleast_2d(t) for t in _joinable(tensors, "vstack")]
    return cat(given, 0, out=out)


row_stack = vstack


def dstack(tensors, *, out=None):
    """Concatenate tensors along the third dimension. Raises RuntimeError like `cat`.

    >>> import cygrad
    >>> cygrad.dstack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return cat([atleast_3d(t) for t in _joinable(tensors, "dstack")], 2, out=out)


def column_stack(tensors, *, out=None):
    """Concatenate matrices, and vectors and scalars as columns, horizontally. Raises RuntimeError like `cat`.

    >>> import cygrad
    >>> cygrad.column_stack([cygrad.tensor([1, 2]), cygrad.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    given = _joinable(tensors, "column_stack")
    return cat([reshape(t, (t.numel(), 1)) if t.ndim <= 1 else t for t in given], 1, out=out)


def _each(tensors, function):
    """Apply `function` to one tensor, or to each of several tensors or of a list."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    elif len(tensors) == 1:
        return function(tensors[0])
    return tuple(function(t) for t in tensors)


@facts(in_python=True)
def atleast_1d(*tensors):
    """Return each tensor with at least one dimension, as a view.

    >>> import cygrad
    >>> cygrad.atleast_1d(cygrad.tensor(3.0))
    tensor([3.])
    """
    return _each(tensors, lambda t: t if require(t, "atleast_1d").ndim else reshape(t, (1,)))


@facts(in_python=True)
def atleast_2d(*tensors):
    """Return each tensor with at least two dimensions, as a view; a vector of n elements becomes a row, (1, n).

    >>> import cygrad
    >>> cygrad.atleast_2d(cygrad.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """

    def deepen(t):
        ndim = require(t, "atleast_2d").ndim
        return reshape(t, (1, 1)) if ndim == 0 else unsqueeze(t, 0) if ndim == 1 else t

    return _each(tensors, deepen)


@facts(in_python=True)
def atleast_3d(*tensors):
    """Return each tensor with at least three dimensions: shapes (1, n, 1) for a vector and (m, n, 1) for a matrix.

    >>> import cygrad
    >>> cygrad.atleast_3d(cygrad.tensor([1.0, 2.0])).shape
    torch.Size([1, 2, 1])
    """

    def deepen(t):
        ndim = require(t, "atleast_3d").ndim
        if ndim == 1:
            return unsqueeze(unsqueeze(t, 0), -1)
        return reshape(t, (1, 1, 1)) if ndim == 0 else unsqueeze(t, -1) if ndim == 2 else t

    return _each(tensors, deepen)


@facts(in_python=True)
def broadcast_tensors(*tensors):
    """Expand the tensors to their common broadcast shape; tensors of that shape are returned as they are.

    Raises RuntimeError for shapes that do not broadcast.

    >>> import cygrad
    >>> a, b = cygrad.broadcast_tensors(cygrad.zeros(2, 1), cygrad.zeros(3))
    >>> a.shape, b.shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    given = tensor_list(tensors, "broadcast_tensors")
    shape = ()
    for t in given:
        shape = broadcast_shape(shape, array_of(t).shape)
    return tuple(t if array_of(t).shape == shape else expand(t, shape) for t in given)


@facts(in_python=True)
def broadcast_shapes(*shapes):
    """Return the shape that tensors of these shapes broadcast to; an int is a shape of one dimension.

    >>> import cygrad
    >>> cygrad.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    result: tuple[int, ...] = ()
    for i, given in enumerate(shapes):
        if not is_integer(given) and not isinstance(given, (tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {given}")
        shape = integers((given,) if is_integer(given) else given, "broadcast_shapes", "shapes", i + 1)
        for length in shape:
            if length < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({length}): ({length})")
        for place, (n, m) in enumerate(zip(reversed(result), reversed(shape)), 1):
            if n != m and n != 1 and m != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {m} at {-place}! Mismatching argument at index {i} "
                    f"had {shape}; but expected shape should be broadcastable to {list(result)}"
                )
        result = broadcast_shape(result, shape)
    return Size(result)


# -- combinations and products of elements --


def _require_vector(t):
    if t.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")


def _choices(length, count, with_replacement):
    """Return the indices of each choice: (count, choices), int64. Raises MemoryError if they do not fit in memory."""
    most = length - 1 if with_replacement else length - count  # the largest possible first index
    if most < 0:
        return np.empty((count, 0), np.int64)
    log = math.lgamma(most + count + 1) - math.lgamma(count + 1) - math.lgamma(most + 1)
    if log > math.log(2**59 / count):
        raise MemoryError(f"Unable to allocate the indices of e^{log:.0f} combinations of {count} elements")
    places = new_array((count, math.comb(most + count, count)), np.dtype(np.int64).num)
    # number of ways to choose k further elements, by the distance of the current one from `most`
    endings = [np.ones(most + 1, np.int64)]
    for _ in range(count - 1):
        endings.append(np.cumsum(endings[-1]))
    last = np.arange(most + 1)  # the last element of each prefix; the next one is the same or a later one
    for k in range(count):
        if k:
            lengths = most + 1 - last
            first = np.repeat(last - np.cumsum(lengths) + lengths, lengths)
            first += np.arange(len(first))
            last = first
        places[k] = np.repeat(last, endings.pop()[most - last]) if len(endings) > 1 else last
        if not with_replacement:
            places[k] += k
    return places


def combinations(input, r=2, with_replacement=False):
    """Return all combinations of `r` elements of a vector as rows, in its order; or those `with_replacement`.

    >>> import cygrad
    >>> cygrad.combinations(cygrad.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    t, count = require(input, "combinations"), integer(r, "combinations", "r", 1)
    _require_vector(t)
    if count < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {count}")
    if count == 0:
        return tensor_of(np.empty(0, memory_of(t).dtype, like=memory_of(t)))
    if count == 1:
        return stack([t], 1)
    places = _choices(t.numel(), count, with_replacement)
    return stack([index_select(t, 0, tensor_of(beside(column, memory_of(t)))) for column in places], 1)


def stacked_grids_rule(n, g):
    grids = reshape(g, (*n.args[0], g.shape[-1]))
    return tuple([select(grids, -1, i) if n.needs(i) else None for i in range(g.shape[-1])])


STACKED_GRIDS = declare(
    "stacked_grids",
    stacked_grids_rule,
    flags=LINEAR | PRIVATE,
    node="StackBackward0",
    inputs="tensors",
    attributes="shape",
    batching=None,
)


def stacked_grids(grids):
    """Return the elements of grids of one shape and dtype as columns; a single op if they are on the CPU."""
    arrays = [array_of(grid) for grid in grids]
    if any(is_array(array) for array in arrays):
        return _columns(grids)
    shape = arrays[0].shape
    out = new_array((*shape, len(arrays)), arrays[0].dtype.num)
    for i, array in enumerate(arrays):
        out[..., i] = array
    return record_n(STACKED_GRIDS, out.reshape(-1, len(arrays)), tuple(grids), (shape,))


@facts(in_python=True)
def cartesian_prod(*tensors):
    """Return all rows with one element of each vector, in order; for one vector, the vector itself.

    >>> import cygrad
    >>> cygrad.cartesian_prod(cygrad.tensor([1, 2]), cygrad.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    given = tensor_list(tensors, "cartesian_prod")
    for t in given:
        _require_vector(t)
    if len(given) == 1:
        return given[0]
    grids = meshgrid(*given, indexing="ij")
    return stacked_grids(grids) if is_own(grids[0]) else _columns(grids)


def _columns(grids):
    return stack([reshape(t, (-1,)) for t in grids], 1)


composite = dict.fromkeys(
    (
        "broadcast_shapes",
        "cartesian_prod",
        "combinations",
        "hstack",
        "vstack",
        "row_stack",
        "dstack",
        "column_stack",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "broadcast_tensors",
    ),
    FUNCTION_ONLY,
)
functions = publish(globals())
