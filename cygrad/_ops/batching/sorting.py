"""Batching rules of ops that search and count, without derivatives for the inspected values (see rules.py)."""

import numpy as np

from cygrad._core.graph.dual import values_of
from cygrad._core.graph.internals import tensor_of
from cygrad._core.graph.opdef import registry
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._kernels.gpu.base.arrays import in_memory
from cygrad._ops.base.slicing import stack
from cygrad._ops.batching.rules import rule

# -- sorted sequences --


@rule("searchsorted")
def _searchsorted(call):
    sequence, values = call.inputs
    sorter, right, out_int32 = call.args
    named = {"right": right, "out_int32": out_int32}
    entry = registry["searchsorted"].entry
    if sequence.ndim == 1 and not call.has(sequence) and not call.has(sorter):
        return entry(sequence, call.samples(values), sorter=sorter, **named)
    rows, sorter = call.full(sequence), None if sorter is None else call.full(sorter)
    found = call.full(_tensor(values, sequence))
    if sequence.ndim == 1:
        found = found.reshape(call.size, values.numel() if call.out.ndim else 1)
    return call.shaped(entry(rows, found, sorter=sorter, **named), call.out.shape)


def _tensor(value, like):
    """Convert a number to a tensor."""
    return tensor_of(np.asarray(value)).to(like.device) if isinstance(value, (int, float)) else value


@rule("isin")
def _isin(call):
    elements, tests, invert = call.args
    if not call.has(tests):
        return registry["isin"].entry(call.samples(elements), tests, invert=invert)
    ordered = call.full(tests).reshape(call.size, tests.numel()).sort(1).values
    wanted = call.full(_tensor(elements, tests))
    wanted = wanted.reshape(call.size, wanted[:1].numel())
    count = ordered.shape[1]
    if not count:
        found = wanted != wanted
    else:
        places = registry["searchsorted"].entry(ordered, wanted).clamp(max=count - 1)
        found = ordered.gather(1, places) == wanted
    return call.shaped(~found if invert else found, call.out.shape)


# -- counting --


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
