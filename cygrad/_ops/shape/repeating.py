"""Repeats tensors and their elements. The results are copies; all ops are linear."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import LINEAR, METHOD_ONLY, PRIVATE, declare, facts, publish
from cygrad._core.graph.record import apply1_args, apply_n, record_n
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._kernels.cpu.base.arrays import private
from cygrad._kernels.cpu.base.reduce import amax, amin
from cygrad._kernels.cpu.shape import rearranging as kernels
from cygrad._kernels.device.cupy_library import is_array, require_values
from cygrad._ops.base.arguments import dim_argument, integer, is_integer, require, variadic
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import check_unbatched
from cygrad._ops.base.checks.tuples import of_tuple
from cygrad._ops.base.copying import clone
from cygrad._ops.base.views import flatten, unsqueeze
from cygrad._ops.indexing.gathering import index_select

# -- repeat --


def repeat_rule(n, g):
    return repeat_backward(g, *n.args)


REPEAT = declare(
    "repeat", repeat_rule, flags=LINEAR | METHOD_ONLY, kernel=kernels.repeat, attributes="repeats self_sym_sizes"
)


def repeat(input, *repeats, **named):
    """Repeat the tensor `repeats[i]` times along dimension i; more counts than dimensions add dimensions in front.

    Gradient: the sum of g over the copies. Raises RuntimeError for too few or negative counts. Saves nothing.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return _repeated(require(input, "repeat"), variadic(repeats, named, "repeat", "repeats"))


@rule("repeat")
def _repeat(call):
    x = call.aligned(call.inputs[0], call.out.ndim)
    return (x if x.ndim > call.out.ndim else call.full(call.inputs[0])).repeat(1, *call.args[0])


def _repeated(t, times):
    array = array_of(t)
    if len(times) < array.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    result = [n * k for n, k in zip((1,) * (len(times) - array.ndim) + array.shape, times)]
    for length in result:
        if length < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {length}: {result}")
    checked_lengths(tuple(result))
    return record_n(REPEAT, kernels.repeat(array, times), (t,), (times, array.shape))


def repeat_backward_rule(n, g):
    return _repeated(g, n.args[0])


REPEAT_BACKWARD = declare("repeat_backward", repeat_backward_rule, flags=LINEAR | PRIVATE, kernel=kernels.sum_repeats)


def repeat_backward(input, repeats, shape):
    """Sum the copies that `repeat` made of a tensor of `shape`."""
    return apply1_args(REPEAT_BACKWARD, input, (repeats, shape), None)


@rule("repeat_backward")
def _repeat_backward(call):
    repeats, shape = call.args
    more = (1,) * (len(repeats) - len(shape))
    g = apply_n(call.op, (call.full(call.inputs[0]),), ((1, *repeats), (call.size, *more, *shape)))
    return call.shaped(g, shape)


def tile(input, *dims, **named):
    """Like `repeat`, but if there are fewer counts than dimensions, they apply to the last ones.

    >>> import cygrad
    >>> cygrad.tile(cygrad.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    t = require(input, "tile")
    times = variadic(dims, named, "tile", "dims")
    return _repeated(t, (1,) * (t.ndim - len(times)) + times)


# -- repeat_interleave --


@facts(devices="together", vmap_name="repeat_interleave.Tensor", overloads="1")
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Repeat each element along `dim` `repeats` times; a tensor `repeats` gives the number for each element.

    Without `dim`, the tensor is flattened first. `repeat_interleave(repeats)` returns the indices only. Gradient: the
    sum of g over the copies. Raises RuntimeError for mismatched or negative counts.

    >>> import cygrad
    >>> cygrad.tensor([7, 8]).repeat_interleave(2)
    tensor([7, 7, 8, 8])
    >>> cygrad.tensor([7, 8]).repeat_interleave(cygrad.tensor([1, 2]))
    tensor([7, 8, 8])
    """
    t = require(input, "repeat_interleave")
    if repeats is None:
        return tensor_of(_repeated_indices(array_of(t), output_size))
    if not isinstance(repeats, Tensor) and not is_integer(repeats):
        signatures = (
            "Tensor repeats, int dim = None, *, int output_size = None",
            "int repeats, int dim = None, *, int output_size = None",
        )
        given = (repeats,) if dim is None else (repeats, dim)
        raise messages.no_such_call("repeat_interleave", given, {}, signatures)
    if dim is None:
        t = flatten(t)
    d = 0 if dim is None else dim_argument(dim, t.ndim, "repeat_interleave", "dim", 2)
    if isinstance(repeats, Tensor):
        check_unbatched("repeat_interleave", repeats)
        counts = _counts(array_of(repeats), array_of(t).shape, d)
        return index_select(t, d, tensor_of(_repeated_indices(counts, output_size)))
    return _evenly_repeated(t, integer(repeats, "repeat_interleave", "repeats", 1), d, output_size)


def _evenly_repeated(t, count, d, output_size):
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    spread = unsqueeze(t, d + 1)
    shape = array_of(t).shape
    if output_size is not None and output_size != shape[d] * count:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {shape[d] * count} but got {output_size}")
    copies = clone(spread.expand(*shape[: d + 1], count, *shape[d + 1 :]))
    return copies.view(*shape[:d], shape[d] * count, *shape[d + 1 :])


def _counts(repeats, shape, dim):
    """Return how often each element along `dim` is repeated, given one number for all or one for each."""
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if not shape:
        raise messages.no_dimensions(dim)
    if repeats.size == 1:
        return np.broadcast_to(repeats.reshape(()), (shape[dim],))
    if repeats.size != shape[dim]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.size} and "
            f"input.size({dim}) = {shape[dim]}"
        )
    return repeats


LARGEST = 2**63 - 1


def _repeated_indices(repeats, output_size):
    """Return the indices of the repeated elements, for an array of counts."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (np.int64, np.int32):
        raise messages.not_implemented_for("repeat_interleave_cpu", tensor_of(repeats).dtype)
    if is_array(repeats) and output_size is not None:  # avoids waiting for the GPU
        return kernels.repeated_indices(repeats, output_size)
    require_values(repeats, "repeat_interleave")
    repeats = private(repeats)
    if repeats.size and amin(repeats).item() < 0:
        raise RuntimeError("repeats can not be negative")
    if repeats.size and amax(repeats).item() > LARGEST // repeats.size:
        checked_lengths((sum(repeats.tolist()),))  # NumPy would add without noticing an overflow
    if output_size is not None and output_size != repeats.sum():
        raise RuntimeError("allocated size does not match required size")
    return kernels.repeated_indices(repeats, None)


composite = {"tile": 0, "repeat_interleave": 0}
functions = publish(globals(), {"tile": of_tuple(tile, "dims")})
