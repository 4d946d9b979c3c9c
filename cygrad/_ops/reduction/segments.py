"""Reductions of consecutive segments of a dimension."""

import math

from cygrad._core.engine.backward import grad
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward
from cygrad._core.graph.internals import array_of, memory_of
from cygrad._core.graph.opdef import FUNCTION_ONLY, IN0, OUT0, declare, publish
from cygrad._core.graph.record import record_n
from cygrad._core.registry.dispatch import unseen
from cygrad._core.runtime.thread_state import get_modes, set_modes
from cygrad._core.types.dtypes import by_name
from cygrad._kernels.device.cupy_library import is_meta
from cygrad._ops.base.arguments import require, wrap_dim
from cygrad._ops.base.creation import full
from cygrad._ops.base.views import view
from cygrad._ops.creation.ranges import arange
from cygrad._ops.elementwise.selection import where
from cygrad._ops.reduction.searching import searchsorted
from cygrad._ops.shape.padding import pad
from cygrad._ops.shape.stacking import cat

_AMAX, _AMIN = ("amax", -math.inf), ("amin", math.inf)
# {the name of a reduction: (that of its op, what it starts with)}
_KINDS = {"sum": ("sum", 0.0), "mean": ("mean", 0.0), "prod": ("prod", 1.0), "amax": _AMAX, "amin": _AMIN}
_KINDS |= {"max": _AMAX, "min": _AMIN}


def segment_rule(n, g):
    data, (reduce, axis, initial, bounds, *_) = n.saved(0), n.args
    if reduce not in ("sum", "mean", "prod"):
        return _to_extrema(g, data, n.saved_result(), bounds, axis)
    is_recorded = not get_modes()
    leaf = view(data, data.shape) if is_recorded else data.detach()
    before = set_modes(0)
    try:
        if not leaf.requires_grad:
            leaf.requires_grad_()
        found = grad([composed(leaf, bounds, reduce, axis, initial)], [leaf], [g], create_graph=is_recorded)[0]
    finally:
        set_modes(before)
    return _beside_nan(found, g, data, bounds, axis, initial) if reduce == "prod" else found


def _to_extrema(g, data, found, bounds, axis):
    """Share the gradient of each extremum among the elements equal to it; a nan counts as one, as in PyTorch."""
    rows = _rows(data, bounds, axis)
    is_extremum = (data.detach() == _of_elements(found.detach(), data, bounds, axis, rows)) | data.isnan()
    counts = _counts(is_extremum, bounds, axis, rows)
    return _of_elements(g, data, bounds, axis, rows) * (is_extremum / counts.clamp_(min=1).to(g.dtype))


def _beside_nan(found, g, data, bounds, axis, initial):
    """Give a nan that is the only one of its segment the product of the others, where a quotient would be nan."""
    rows, is_nan = _rows(data, bounds, axis), data.isnan()
    others = composed(data.masked_fill(is_nan, 1.0), bounds, "prod", axis, initial)
    is_only_one = is_nan & (_counts(is_nan, bounds, axis, rows) == 1)
    return where(is_only_one, _of_elements(g * others, data, bounds, axis, rows), found)


def _of_elements(t, data, bounds, axis, rows):
    """Return what `t` has for the segment of each element, and 0 for an element in none."""
    segments, batches, inner = bounds.shape[-1] - 1, math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    padded = pad(t.reshape(batches, segments, inner), (0, 0, 0, 1))
    return padded.view(batches * (segments + 1), inner).index_select(0, rows).view(data.shape)


def _counts(mask, bounds, axis, rows):
    """Return how many elements of its segment a mask holds, for each element."""
    batches, inner = math.prod(mask.shape[:axis]), math.prod(mask.shape[axis + 1 :])
    counts = rows.new_zeros(batches * bounds.shape[-1], inner)
    counts.index_add_(0, rows, mask.to(rows.dtype).reshape(rows.shape[0], inner))
    return counts.index_select(0, rows).view(mask.shape)


SEGMENT_REDUCE = declare(
    "segment_reduce",
    segment_rule,
    saves=IN0 | OUT0,
    flags=FUNCTION_ONLY,
    inputs="data",
    attributes="reduce axis initial _ lengths offsets",
    batching=None,
    float8="_segment_reduce_cpu",
)


def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reduce segments of a dimension, which lie one after the other: "sum", "mean", "max", "min" or "prod" of each.

    Shapes: data (..., N, ...) with N along `axis`, lengths (..., S) or offsets (..., S + 1), where the leading
    dimensions are those of `data` before `axis`. Segment i goes from offsets[i] to offsets[i + 1]; lengths must add up
    to N unless `unsafe`. The results start with `initial`. An empty segment gives that, or 0, nan, -inf, inf or 1. Each
    saves `data`. Gradient: as for the reduction, shared by equal extrema.

    Raises RuntimeError for lengths that do not fit, NotImplementedError for data that are not floating-point.

    >>> import cygrad
    >>> cygrad.segment_reduce(cygrad.tensor([1.0, 2.0, 3.0]), "sum", lengths=cygrad.tensor([2, 1]))
    tensor([3., 3.])
    """
    data = require(data, "segment_reduce", "data")
    if not isinstance(reduce, str):
        raise messages.wrong_type("segment_reduce", "reduce", 2, "str", reduce)
    axis = wrap_dim(axis, data.ndim)
    if reduce not in _KINDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if not data.dtype.is_floating_point:
        raise messages.not_implemented_for("_segment_reduce_cpu", data.dtype)
    with unseen():
        bounds = _bounds(lengths, offsets, axis, data, unsafe)
    if is_forward():
        return composed(data, bounds, reduce, axis, initial)
    with unseen():
        array = memory_of(composed(data.detach(), bounds, reduce, axis, initial))
    args = reduce, axis, initial, bounds, lengths, offsets
    return record_n(SEGMENT_REDUCE, array, (data,), args, (unsafe,))


def composed(data, bounds, reduce, axis, initial):
    """Compute the reductions by ops that scatter rows, given the offsets of the segments."""
    (kind, neutral), size = _KINDS[reduce], data.shape[axis]
    segments = bounds.shape[-1] - 1
    batches, inner = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    rows = _rows(data, bounds, axis)
    start = neutral if initial is None else initial
    found = full((batches * (segments + 1), inner), start, dtype=data.dtype, device=data.device)
    values = data.reshape(batches * size, inner)
    if kind in ("sum", "mean"):
        found = found.index_add(0, rows, values)
    else:
        found = found.index_reduce(0, rows, values, kind)
    found = found.view(batches, segments + 1, inner)[:, :segments]
    if kind == "mean":
        bounds = bounds.reshape(batches, segments + 1)
        counts = (bounds[:, 1:] - bounds[:, :-1]).unsqueeze(2)
        found = found / (counts if initial is None else counts.clamp(min=1))
    return found.reshape(*data.shape[:axis], segments, *data.shape[axis + 1 :]).contiguous()


def _rows(data, bounds, axis):
    """Return the row of each element among those of all segments; each batch has one more, for what is in none."""
    size, segments, batches = data.shape[axis], bounds.shape[-1] - 1, math.prod(data.shape[:axis])
    places = arange(size, device=data.device).expand(batches, size).contiguous()
    owner = searchsorted(bounds.reshape(batches, segments + 1), places, right=True).sub_(1)
    owner.masked_fill_((owner < 0) | (owner >= segments), segments)
    return owner.add_(arange(batches, device=data.device).unsqueeze(1) * (segments + 1)).flatten()


def _bounds(lengths, offsets, axis, data, unsafe):
    """Return the offsets of the segments, with the one behind the last."""
    given, name = (offsets, "offsets") if lengths is None else (lengths, "lengths")
    given = require(given, "segment_reduce", name)
    if given.dtype not in (by_name()["int64"], by_name()["int32"]):
        raise messages.not_implemented_for(f"_segment_reduce_{name}_cpu_kernel1", given.dtype)
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if given.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(f"segment_reduce(): Expected the leading dimensions of {name} to be those of data.")
    given = given.to(by_name()["int64"])
    if lengths is None:
        return _checked(given, data.shape[axis], "offsets")
    values = array_of(given)  # of the first sample under `vmap`, where the others go unchecked
    if not is_meta(values) and (values < 0).any():
        raise RuntimeError("lengths contains negative value!")
    ends = given.cumsum(-1)
    if not unsafe and not is_meta(values) and (values.sum(-1) != data.shape[axis]).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    first = full((*given.shape[:-1], 1), 0, dtype=given.dtype, device=given.device)
    return _checked(cat((first, ends), -1), data.shape[axis], "lengths")


def _checked(bounds, size, name):
    """Raise RuntimeError for offsets that do not ascend from 0 to `size` at most."""
    values = array_of(bounds)
    if (
        bounds.shape[-1] < 1
        or not is_meta(values)
        and (((values < 0) | (values > size)).any() or (values[..., 1:] < values[..., :-1]).any())
    ):
        raise RuntimeError(f"segment_reduce(): Expected {name} to describe segments of {size} elements, in order.")
    return bounds


functions = publish(globals(), {"_segment_reduce": segment_reduce})
