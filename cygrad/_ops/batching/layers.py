"""Batching rules of recurrent layers, evaluation-mode batch norm, sampling, padding, distances, and strides.

See rules.py.

Most of these ops have a batch dimension of their own, into which the samples are merged.
"""

import numpy as np

from cygrad._core.graph.internals import array_of
from cygrad._core.graph.opdef import registry
from cygrad._core.graph.record import apply_n
from cygrad._core.transforms.vmap_levels import NoBatchingRule
from cygrad._kernels.cpu.loss import ctc as ctc_kernels
from cygrad._ops.base.slicing import stack
from cygrad._ops.batching.rules import RULES, Call, regroup, rule
from cygrad._ops.image.grid_sampling import grid_neighbourhoods
from cygrad._ops.loss.ctc import ctc_loss_backward, losses_of_states
from cygrad._ops.nn.channels import by_products
from cygrad._ops.nn.normalization import batch_norm
from cygrad._ops.nn.recurrent import recurrent_layer
from cygrad._ops.shape.diagonals import triu_indices
from cygrad._ops.shape.padding import with_elements
from cygrad._ops.shape.strided import as_strided
from cygrad._ops.shape.view_copies import composite as copying_forms

# -- recurrent layers --


@rule("recurrent_layer")
def _recurrent(call):
    x, h0, *weights = call.inputs
    kind, sizes, is_reversed = call.args
    c0 = weights.pop(4)
    if any(call.has(w) for w in weights) or x.ndim != 3 or len(set(sizes)) > 1:
        return _each(call)
    steps, n = x.shape[:2]
    rows = call.full(x).transpose(0, 1).reshape(steps, call.size * n, x.shape[2])
    h0, c0 = (None if s is None else call.full(s).reshape(call.size * n, -1) for s in (h0, c0))
    inputs = [rows, h0, *weights[:4], c0, *weights[4:]]
    out, *last = recurrent_layer(kind, (call.size * n,) * steps, is_reversed, *inputs)
    out = regroup(out, (steps, call.size, n, -1)).transpose(0, 1)
    return [out, *[regroup(s, (call.size, n, -1)) for s in last]]


def _each(call):
    """Run the layer once per sample: for samples with weights of their own, or sequences of different lengths."""
    found = []
    for i in range(call.size):
        inputs = [call.samples(t)[i] if call.has(t) else t for t in call.inputs]
        found.append(recurrent_layer(*call.args, *inputs))
    return [stack(parts) for parts in zip(*found, strict=True)]


# -- normalization by given statistics --


def of_given_statistics(call):
    """`batch_norm` in evaluation mode."""
    x, *parameters = call.inputs
    *statistics, _, eps = call.args[4:8]
    side_by_side = call.full(x).transpose(0, 1).flatten(1, 2)
    mean, variance, weight, bias = (None if t is None else call.full(t).flatten() for t in (*statistics, *parameters))
    found = batch_norm(side_by_side, mean, variance, weight, bias, eps=eps)
    return regroup(found, (x.shape[0], call.size, *x.shape[1:])).transpose(0, 1)


# -- images --


@rule("grid_sampler_2d grid_sampler_3d")
def _grid_sampler(call):
    x, grid = (call.full(t).flatten(0, 1) for t in call.inputs)
    return call.shaped(apply_n(call.op, (x, grid), (tuple(x.shape), *call.args[1:])), call.out.shape)


@rule("grid_neighbourhoods")
def _grid_neighbourhoods(call):
    found = grid_neighbourhoods(call.full(call.inputs[0]).flatten(0, 1), *call.args)
    return [call.shaped(part, out.shape) for part, out in zip(found, call.outs, strict=True)]


@rule("take_columns add_columns")
def _columns(call):
    x, places = (call.full(t).flatten(0, 1) for t in call.inputs)
    return call.shaped(apply_n(call.op, (x, places), call.args), call.out.shape)


@rule("affine_grid_generator")
def _affine_grid(call):
    theta, (size, align_corners) = call.full(call.inputs[0]).flatten(0, 1), call.args
    found = apply_n(call.op, (theta,), ((len(theta), *size[1:]), align_corners))
    return call.shaped(found, call.out.shape)


@rule("trilinear")
def _trilinear(call):
    return call.shaped(by_products(*map(call.near, call.inputs)), call.out.shape)


@rule("channel_shuffle")
def _channel_shuffle(call):
    return call.shaped(apply_n(call.op, (call.full(call.inputs[0]).flatten(0, 1),), call.args), call.out.shape)


@rule(" ".join(f"pad.{mode}{dims}" for mode in ("reflect", "replicate") for dims in (1, 2, 3)) + " pad.circular")
def _pad(call):
    return with_elements(call.full(call.inputs[0]), *call.args[:2])


@rule("pad_backward")
def _pad_backward(call):
    mode, counts, shape = call.args
    return apply_n(call.op, (call.full(call.inputs[0]),), (mode, counts, (call.size, *shape)))


# -- losses and distances --


@rule("ctc_loss")
def _ctc(call):
    arguments = [*_ctc_arguments(call, call.inputs[0]), call.args[-1]]
    return call.shaped(losses_of_states(*arguments), call.out.shape)


@rule("ctc_loss_backward")
def _ctc_backward(call):
    g, log_probs = call.inputs
    rows, *targets = _ctc_arguments(call, log_probs)
    forward = ctc_kernels.forward(array_of(rows), *targets)
    found = ctc_loss_backward(call.full(g).flatten(), rows, *targets, *forward, call.args[-1])
    return regroup(found, (len(rows), call.size, *log_probs.shape[1:])).transpose(0, 1)


def _ctc_arguments(call, log_probs):
    """Return the arguments of `losses_of_states`, with outputs and targets of all samples side by side."""
    steps, n, symbols = log_probs.shape
    states, inputs, lengths, blank, *_ = call.args
    rows = call.full(log_probs).transpose(0, 1).reshape(steps, call.size * n, symbols)
    return [rows, *[np.concatenate([each] * call.size) for each in (states, inputs, lengths)], blank]


@rule("cdist")
def _cdist(call):
    ndim = max(t.ndim for t in call.inputs)
    return apply_n(call.op, tuple(call.aligned(t, ndim) for t in call.inputs), call.args)


@rule("pdist")
def _pdist(call):
    (x,), (p,) = call.inputs, call.args
    rows = call.samples(x)
    first, second = triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind()
    return registry["cdist"].entry(rows, rows, p, "donot_use_mm_for_euclid_dist")[:, first, second]


@rule("renorm")
def _renorm(call):
    p, dim, bound = call.args
    x = call.full(call.inputs[0]).movedim(dim + 1, 1)
    found = apply_n(call.op, (x.flatten(0, 1).flatten(1),), (p, 0, bound))
    return regroup(found, x.shape).movedim(1, dim + 1)


# -- views --


@rule("as_strided")
def _as_strided(call):
    t, (view, base) = call.inputs[0], call.args
    (shape, strides, offset), _ = _stacked(view, base, call)
    x, size = call.full(t), t.dtype.itemsize
    if x.stride()[1:] != t.stride():
        raise NoBatchingRule("as_strided")
    steps = [step // size for step in strides[1:]]
    return as_strided(x, shape, (x.stride(0), *steps), x.storage_offset() + offset // size)


def _stacked(view, base, call):
    """Return the geometries of a view and its base for all samples, which are consecutive in memory."""
    (shape, strides, offset), (lengths, steps) = view, base
    last, end = _extent(lengths, steps), offset + _extent(shape, strides)
    if min(offset, *strides, *steps, 0) < 0 or end > last and 0 not in shape:
        raise NoBatchingRule(call.key)  # the view shows memory outside the sample
    whole = call.out.dtype.itemsize + max(last, 0)
    return ((call.size, *shape), (whole, *strides), offset), ((call.size, *lengths), (whole, *steps))


def _extent(shape, strides):
    """Return the number of bytes from the first element to the last."""
    return sum((length - 1) * step for length, step in zip(shape, strides, strict=True))


@rule("strided_sum strided_gather strided_scatter as_strided_scatter")
def _strided(call):
    inputs = tuple(t if t is None else call.full(t) for t in call.inputs)
    view, base = call.args
    return apply_n(call.op, inputs, _stacked(view, base, call))


def copied(call):
    """Apply the rule of a view to its copying form and copy the result."""
    name = call.key.removesuffix("_copy")
    made = RULES.get(_VIEW_OF.get(name, name))
    if made is None or not call.args and name not in _WITHOUT_ARGS:
        raise NoBatchingRule(call.key)
    of_view = Call(call.batch, call.step, _VIEW_OF.get(name, name))
    found = made(of_view)
    return [part.clone() for part in found] if isinstance(found, (list, tuple)) else found.clone()


_WITHOUT_ARGS = ("alias", "detach", "expand", "squeeze", "t", "view_as_complex", "view_as_real")
_VIEW_OF = {"narrow": "slice", "detach": "alias"}

RULES |= dict.fromkeys(copying_forms, copied)
