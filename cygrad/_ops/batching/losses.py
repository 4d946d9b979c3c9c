"""Batching rules of losses (see rules.py)."""

import numpy as np

from cygrad._core.graph.opdef import registry
from cygrad._ops.batching.rules import operands, rule
from cygrad._ops.elementwise.selection import where

NONE, MEAN = 0, 1  # loss reductions
NONE_IGNORED = -1  # not a valid class index

# -- elementwise losses --


def reduced(losses, reduction):
    """Return the losses of all elements, or their mean or sum in each sample."""
    if reduction == NONE:
        return losses
    flat = losses.flatten(1) if losses.ndim > 1 else losses.unsqueeze(1)
    return flat.mean(1) if reduction == MEAN else flat.sum(1)


@rule("mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits")
def _pointwise_loss(call):
    reduction, _, *more = call.args
    shape = np.broadcast_shapes(*[x.shape for x in call.inputs])
    inputs = [x.expand(call.size, *shape) for x in operands(call, call.inputs)]
    named = {name: call.aligned(a, len(shape)) for name, a in zip(_NAMES.get(call.key, ()), more) if a is not None}
    losses = registry[call.key].entry(*inputs, reduction="none", **named)
    weight = call.kept.get(2)
    return reduced(losses if weight is None else losses * call.aligned(weight, len(shape)), reduction)


_NAMES = {
    "smooth_l1_loss": ("beta",),
    "huber_loss": ("delta",),
    "binary_cross_entropy_with_logits": ("pos_weight",),
}


@rule("l1_loss poisson_nll_loss hinge_embedding_loss margin_ranking_loss soft_margin_loss")
def _loss_of_elements(call):
    reduction, _, *more = call.args
    given = [*call.inputs, *call.kept.values()]  # targets without gradients are in `kept`
    shape = (call.size, *np.broadcast_shapes(*[x.shape for x in given]))
    inputs = [x.expand(shape) for x in operands(call, given)]
    named = dict(zip(call.op.attributes[2:], more, strict=True))
    return reduced(registry[call.op.name].entry(*inputs, reduction="none", **named), reduction)


@rule("gaussian_nll_loss")
def _gaussian(call):
    reduction, _, constant = call.args
    shape = (call.size, *np.broadcast_shapes(*[x.shape for x in call.inputs]))
    inputs = [x.expand(shape) for x in operands(call, call.inputs)]
    entry = registry["gaussian_nll_loss"].entry
    return reduced(entry(*inputs, full=bool(constant), eps=0, reduction="none"), reduction)


# -- classification losses --


@rule("nll_loss")
def _nll(call):
    return _nll_of(call, call.full(call.inputs[0]), call.kept[1], call.kept.get(2))


@rule("cross_entropy_of_softmax")
def _cross_entropy(call):
    (target, weight), _ = call.kept[2]
    logs = call.full(call.inputs[0]).log_softmax(2)
    return [_nll_of(call, logs, target, weight), logs.exp()]


def _nll_of(call, rows, target, weight):
    ignored, reduction, _ = call.args
    classes = call.full(target)
    if rows.ndim == 2:
        rows, classes = rows.unsqueeze(1), classes.reshape(call.size, 1)
    rows = rows.movedim(2, -1).flatten(0, -2)
    losses = registry["nll_loss"].entry(rows, classes.flatten(), ignore_index=ignored, reduction="none")
    losses, weights = losses.view(classes.shape), _weights(call, classes, weight, ignored)
    losses = losses if weight is None else losses * weights
    if reduction == NONE:
        return call.shaped(losses, call.out.shape)
    total = losses.flatten(1).sum(1)
    return total / weights.flatten(1).sum(1) if reduction == MEAN else total


def _weights(call, classes, weight, ignored):
    """Return the weight of each class index."""
    counts = classes != ignored
    if weight is None:
        return counts
    places = where(counts, classes, 0).long()
    return call.full(weight).gather(1, places.view(call.size, -1)).view(classes.shape) * counts


@rule("nll_loss_backward")
def _nll_backward(call):
    ignored, reduction, _, shape = call.args
    target, weight = call.kept[1], call.kept.get(2)
    classes = call.full(target)
    classes = classes.reshape(call.size, 1) if len(shape) == 1 else classes
    g = call.full(call.inputs[0])
    weights = _weights(call, classes, weight, ignored).to(g.dtype)
    if reduction == MEAN:
        g = g / weights.flatten(1).sum(1)
    g = g.view(-1, *(1,) * (classes.ndim - 1)) if reduction != NONE or len(shape) == 1 else g
    found = -(g * weights)
    channel = 2 if len(shape) > 1 else 1
    full = (call.size, *shape)
    places = where(classes == ignored, 0, classes).long()
    if len(shape) == 1:
        return found.new_zeros(full).scatter(1, places, found)
    return found.new_zeros(full).scatter(channel, places.unsqueeze(channel), found.unsqueeze(channel))


@rule("multi_margin_loss")
def _multi_margin(call):
    reduction, _, p, margin = call.args
    scores, target, weight = call.inputs[0], call.kept[1], call.kept.get(2)
    rows, classes = call.full(scores).reshape(-1, (scores.shape or (1,))[-1]), call.full(target)
    losses = registry["multi_margin_loss"].entry(rows, classes.flatten(), p=p, margin=margin, reduction="none")
    losses = call.shaped(losses, target.shape)
    if weight is not None:
        losses = losses * _weights(call, classes, weight, NONE_IGNORED)
    return reduced(losses, reduction)
