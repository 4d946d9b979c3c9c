"""Histograms and bincount. Only the weights of `bincount` have a gradient."""

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, LINEAR, NONDIFF, declare, publish, registry
from cygrad._core.graph.record import record_n, record_outputs, write_into
from cygrad._core.graph.tensor import Tensor
from cygrad._core.tensor.from_python import checked_lengths
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._core.types import return_types
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.cpu.base.numpy_fallback import silent
from cygrad._kernels.cpu.base.reduce import amax, amin
from cygrad._kernels.cpu.reduction import histograms as kernels
from cygrad._kernels.device.cupy_library import beside, is_meta, require_values
from cygrad._kernels.gpu.base.arrays import in_memory
from cygrad._ops.base.arguments import integer, is_integer, require
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.copying import to
from cygrad._ops.base.slicing import stack
from cygrad._ops.common.out_argument import write_several
from cygrad._ops.indexing.gathering import finished, index_select

# -- bincount --


def bincount_rule(n, g):
    return index_select(g, 0, n.saved(2))


LARGEST = 2**63 - 1  # no result can be this long

BINCOUNT = declare(
    "bincount", bincount_rule, flags=LINEAR, kernel=kernels.bincount, inputs="weights _ self", devices="together"
)


def _ends(array):
    """Return the smallest and the largest element of a nonempty array."""
    if isinstance(array, np.ndarray):
        return amin(array).item(), amax(array).item()
    return array.min(), array.max()


def bincount(input, weights=None, minlength=0):
    """Count the occurrences of each number from 0 on in `input`, a vector of integers, or sum their weights.

    `minlength` is the minimum length of the result. Saves `input`. Gradient for `weights`: g at the numbers. Raises
    RuntimeError for negative numbers, for 2**63 - 1, and for weights of another length.

    >>> import cygrad
    >>> cygrad.bincount(cygrad.tensor([1, 3, 1]))
    tensor([0, 2, 0, 1])
    """
    t, least = require(input, "bincount"), integer(minlength, "bincount", "minlength", 2)
    numbers = array_of(t)
    if numbers.dtype.kind not in "iu":
        raise messages.not_implemented_for("bincount_cpu", t.dtype)
    if least < 0:
        raise RuntimeError("minlength should be >= 0")
    require_values(numbers, "bincount")
    smallest, largest = _ends(numbers) if numbers.size else (0, 0)
    if numbers.ndim != 1 or smallest < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if largest >= LARGEST:  # NumPy would write out of bounds
        raise RuntimeError(f"maximum value of input overflowed, it should be < {LARGEST} but got {largest}")
    length = max(least, int(largest) + 1 if numbers.size else 0)
    checked_lengths((length,))
    if weights is None:
        return record_n(BINCOUNT, kernels.bincount(None, numbers, length), (t,), (least,))
    given = require(weights, "bincount", "weights", 2)
    if given.shape != t.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if given.is_complex():
        given = to(given, by_name()["float64"])  # warns
    if not numbers.size:
        return record_n(BINCOUNT, kernels.bincount(None, numbers, length), (t,), (least,))
    return finished(BINCOUNT, kernels.bincount(array_of(given), numbers, length), given, None, t, (least,), None)


@rule("bincount")
def _bincount(call):
    (least,), numbers = call.args, call.kept.get(2)
    weights = None if numbers is None else call.full(call.inputs[0])
    places, length = call.full(call.inputs[0] if numbers is None else numbers).long(), call.out.shape[0]
    values = in_memory(values_of(places))
    lengths = np.maximum(values.max(-1, initial=-1) + 1, least)
    if values.min(initial=0) < 0 or (lengths != length).any():
        raise NoBatchingRule("bincount")  # an error, or results of different lengths
    weights = places.new_ones(places.shape) if weights is None else weights
    zeros = weights.new_zeros((call.size, length)).to(call.out.dtype)
    return zeros.scatter_add(1, places, weights.to(call.out.dtype))


# -- histograms --

HISTC = declare("histc", flags=NONDIFF, kernel=kernels.count_evenly, out_dtype="counts", float8="linspace_cpu")


def _bounds(t, low, high, name, widen):
    """Return the bounds of the range, by default those of the elements; a range with a single value is widened."""
    if low == high and t.numel() and not t.is_meta:
        low, high = map(float, _ends(array_of(t)))
    if low == high:
        low, high = (low - widen, high + widen) if t.numel() else (0.0, 1.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    return low, high


def histc(input, bins=100, min=0, max=0, *, out=None):
    """Count the elements in each of `bins` equal intervals of [min, max], or of the range of the elements if min = max.

    The result has the dtype of `input`. Raises RuntimeError for a range that is infinite or reversed,
    NotImplementedError for integers.

    >>> import cygrad
    >>> cygrad.histc(cygrad.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    t, count = require(input, "histc"), integer(bins, "histc", "bins", 2)
    if count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if not t.is_floating_point():
        raise messages.not_implemented_for("histogram_cpu", t.dtype)
    checked_lengths((count,))
    low, high = _bounds(t, float(min), float(max), "torch.histc", 1.0)
    array, args = kernels.count_evenly(array_of(t), count, low, high), (count, min, max)  # kept for the batching rule
    return record_n(HISTC, array, (t,), args) if out is None else write_into(HISTC, out, array, (t,), args)


HISTOGRAM = declare(
    "histogram",
    flags=NONDIFF,
    kernel=kernels.histogram,
    devices="together",
    out_dtype=(
        "counts",
        "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input {result_c} and "
        "bin_edges {out_c} for dimension 0",
    ),
    overloads="16",
    float8="histogramdd",
)
HISTOGRAMDD = declare(
    "histogramdd", flags=NONDIFF | FUNCTION_ONLY, kernel=kernels.histogram, overloads="", float8="histogramdd"
)


def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):
    """Return a tuple (hist, bin_edges): the number of elements, or their total weight, between adjacent edges.

    `bins` is a vector of ascending edges, or the number of equal intervals of `range` (by default the range of the
    elements). The last interval includes its upper edge. With `density`, each weight is divided by the total weight and
    the length of the interval, so that the integral is 1. Both results have the dtype of `input`.

    >>> import cygrad
    >>> hist, edges = cygrad.histogram(cygrad.tensor([1.0, 2.0, 1.0]), 2, range=(0.0, 3.0))
    >>> hist, edges
    (tensor([2., 1.]), tensor([0.0000, 1.5000, 3.0000]))
    """
    t = require(input, "histogram")
    if isinstance(bins, bool) or not (isinstance(bins, Tensor) or is_integer(bins)):
        raise messages.fits_none("histogram")
    points = array_of(t).reshape(-1, 1)
    edges = _edges(t, points, [bins], range)
    weights = _weights(t, points, None if weight is None else weight.reshape(-1))
    hist = kernels.histogram(points, edges, weights, density)
    if out is not None:
        return return_types.histogram(write_several(HISTOGRAM, out, (hist, edges[0]), (t,)))
    return return_types.histogram(record_outputs(HISTOGRAM, (hist, edges[0]), (t,), (bins, range, weight, density), 0))


def histogramdd(input, bins, range=None, weight=None, density=False):
    """Histogram of points: `input` (..., d) gives a d-dimensional result and a tuple of d vectors of edges.

    `bins` is a list of d vectors of edges, or of d numbers of intervals, or one number for all dimensions; `range` is a
    flat list of d pairs (lowest, highest). See `histogram`.

    >>> import cygrad
    >>> points = cygrad.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> cygrad.histogramdd(points, bins=2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    t = require(input, "histogramdd")
    if isinstance(bins, Tensor) or not (isinstance(bins, (tuple, list)) or is_integer(bins)):
        raise messages.fits_none("histogramdd")
    for i, edge in enumerate(bins if isinstance(bins, (tuple, list)) else ()):
        if not (isinstance(edge, Tensor) or is_integer(edge)):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {messages.type_name(edge)}")
    if t.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = t.shape[-1]
    points = array_of(t).reshape((-1, dims) if dims else (0, 0))  # points of no dimension count for nothing
    edges = _edges(t, points, [bins] * dims if is_integer(bins) else list(bins), range)
    weights = _weights(t, points, None if weight is None or dims == 0 else weight.reshape(-1))
    hist, *found = record_outputs(
        HISTOGRAMDD,
        (kernels.histogram(points, edges, weights, density), *edges),
        (t,),
        (bins, range, weight, density),
        0,
    )
    return return_types.histogramdd((hist, tuple(found)))


@rule("histc histogram histogramdd")
def _histogram(call):
    """Process samples one by one, because each has its own bounds."""
    names = ("bins", "min", "max") if call.key == "histc" else ("bins", "range", "weight", "density")
    found = []
    for i in range(call.size):
        named = {name: _sample(call, value, i) for name, value in zip(names, call.args, strict=True)}
        result = registry[call.key].entry(_sample(call, call.inputs[0], i), **named)
        parts = (result,) if len(call.outs) == 1 else (result[0], *result[1]) if call.key == "histogramdd" else result
        found.append(parts)
    return [stack(parts) for parts in zip(*found, strict=True)]


def _sample(call, value, i):
    """Return sample `i` of an argument, or of each tensor in it."""
    if isinstance(value, (list, tuple)):
        return [_sample(call, part, i) for part in value]
    return call.samples(value)[i] if call.has(value) else value


def _edges(t, points, bins, limits):
    """Return the edges along each dimension as arrays of the dtype of `input`."""
    if not t.is_floating_point():
        raise messages.not_implemented_for("histogramdd", t.dtype)
    dims = points.shape[1]
    if len(bins) != dims:
        raise RuntimeError(
            f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got "
            f"{len(bins)}"
        )
    if limits is not None and len(limits) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(limits)}"
        )
    edges = []
    for d, wanted in enumerate(bins):
        if isinstance(wanted, Tensor):
            if wanted.ndim != 1:
                raise RuntimeError(
                    f"torch.histogramdd: bins tensor should have one dimension, but got {wanted.ndim} dimensions in "
                    f"the bins tensor for dimension {d}"
                )
            if wanted.dtype is not t.dtype:
                raise RuntimeError(
                    "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                    f"dtype {messages.c_word(t)} and bins for dimension {d} with dtype {messages.c_word(wanted)}"
                )
            edges.append(array_of(wanted).astype(points.dtype))
        else:
            edges.append(_even_edges(points[:, d], wanted, d, limits))
        if len(edges[-1]) < 2:
            count = len(edges[-1]) - 1
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}")
    return edges


@silent
def _even_edges(values, count, d, limits):
    low, high = (0.0, 0.0) if limits is None else limits[2 * d : 2 * d + 2]
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
        )
    if limits is None and len(values) and not is_meta(values):
        low, high = float(values.min()), float(values.max())
    elif limits is None:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return beside(np.linspace(low, high, max(count, 0) + 1).astype(values.dtype), values)


def _weights(t, points, weight):
    if weight is None:
        return None
    if weight.dtype is not t.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({messages.c_word(t)}), and weight({messages.c_word(weight)})"
        )
    if weight.numel() != len(points):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(points.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )
    return memory_of(weight)  # noted as an argument


functions = publish(globals())
