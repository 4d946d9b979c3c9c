"""Margin losses: between an output and the side its label is on, or between classes.

`reduction` and its predecessors are described in reductions.py; the functions in `cygrad` itself take its code.
"""

import numpy as np

from cygrad._core.engine.blocked_gradients import in_parts, is_own
from cygrad._core.errors import messages
from cygrad._core.graph.dual import is_forward, is_recorded, keep
from cygrad._core.graph.internals import array_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, IN0, IN1, IN2, declare, facts, named, publish
from cygrad._core.graph.record import promoted, result_type
from cygrad._kernels.cpu.loss import losses as kernels
from cygrad._kernels.device.cupy_library import is_array
from cygrad._ops.base.arguments import broadcast_shape, require
from cygrad._ops.base.arithmetic import add, div, mul, neg, sub
from cygrad._ops.base.batching.rules import rule
from cygrad._ops.base.checks.common import are_within, typed
from cygrad._ops.base.pointwise import sigmoid
from cygrad._ops.base.reductions import sum as total
from cygrad._ops.base.views import reshape, unsqueeze
from cygrad._ops.common.gradients import fused_gradient
from cygrad._ops.creation.ranges import arange
from cygrad._ops.elementwise.selection import where
from cygrad._ops.indexing.gathering import gather, index_select, scatter_add
from cygrad._ops.loss.distribution_losses import with_logits
from cygrad._ops.loss.reductions import (
    CODES,
    MEAN,
    NONE,
    by_reduction,
    computed,
    finished,
    known,
    loss_of_elements,
    of_one_type,
    reduced,
    reduced_samples,
    reduction_of,
    spread,
    weights_of_classes,
)
from cygrad._ops.reduction.scans import cumprod

# -- elementwise --


@in_parts(0, 0, inputs=0)
def hinge_rule(n, g):
    x, y, scale = n.saved(0), n.saved(1), spread(n, g)
    return sub(where(y != -1, scale, 0.0), where((y != 1) & (n.args[2] - x >= 0), scale, 0.0))


HINGE = declare(
    "hinge_embedding_loss",
    hinge_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="self target",
    attributes="reduction _ margin",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=loss_of_elements,
    float8="add_stub",
)
HINGE_BY_REDUCTION = by_reduction(HINGE, "AddBackward0")


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """`input` where target is 1, `max(0, margin - input)` where it is -1; their mean, sum, or each element's loss.

    Saves `input` and `target`.

    >>> import cygrad
    >>> cygrad.nn.functional.hinge_embedding_loss(cygrad.tensor([0.2, 0.2]), cygrad.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    return hinge_embedding_of_package(input, target, margin, reduction_of(reduction, size_average, reduce))


@typed(margin=float, reduction=int)
@named("hinge_embedding_loss")
def hinge_embedding_of_package(input, target, margin=1.0, reduction=NONE):
    """`input` where target is 1, `max(0, margin - input)` where it is -1; `reduction` is a code. Saves both.

    >>> import cygrad
    >>> cygrad.hinge_embedding_loss(cygrad.tensor([0.3, 0.3]), cygrad.tensor([1, -1]))
    tensor([0.3000, 0.7000])
    """
    x, y = require(input, "hinge_embedding_loss"), require(target, "hinge_embedding_loss", "target", 2)
    if x.is_complex():
        raise NotImplementedError("clamp is not supported for complex types")
    broadcast_shape(array_of(y).shape, array_of(x).shape)  # raises if they do not broadcast
    (x,) = of_one_type(x)
    arrays = array_of(x), array_of(y)
    result = computed(
        HINGE_BY_REDUCTION[known(reduction)], kernels.hinge, arrays, (margin,), (x,), reduction, (margin,), hint=(y,)
    )
    keep(result, 1, y)
    return result


@in_parts(0, 0, inputs=0)
def margin_ranking_rule(n, g):
    d, y = sub(n.saved(0), n.saved(1)), n.saved(2)
    scale = where(n.args[2] - mul(d, y) >= 0, spread(n, g), 0.0)
    grad = mul(scale, y) if n.needs(0) or n.needs(1) else None
    return (
        neg(grad) if n.needs(0) else None,
        grad if n.needs(1) else None,
        neg(mul(scale, d)) if n.needs(2) else None,
    )


MARGIN_RANKING = declare(
    "margin_ranking_loss",
    margin_ranking_rule,
    saves=IN0 | IN1 | IN2,
    flags=ELSEWHERE,
    kernel=kernels.margin_ranking,
    inputs="input1 input2 target",
    attributes="reduction _ margin",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=loss_of_elements,
)
MARGIN_RANKING_BY_REDUCTION = by_reduction(MARGIN_RANKING, "ClampMinBackward0")


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """`max(0, margin - target * (input1 - input2))`, target 1 or -1; their mean, sum, or each element's loss.

    Saves all three. Gradients: -target * g and target * g where `margin - target * (input1 - input2) >= 0`, else 0.
    Raises RuntimeError for different numbers of dimensions.

    >>> import cygrad
    >>> cygrad.nn.functional.margin_ranking_loss(cygrad.tensor([1.0]), cygrad.tensor([3.0]), cygrad.tensor([1.0]))
    tensor(2.)
    """
    name, how = "margin_ranking_loss", reduction_of(reduction, size_average, reduce)
    a, b = require(input1, name, "input1"), require(input2, name, "input2", 2)
    if not a.ndim == b.ndim == require(target, name, "target", 3).ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {a.shape}, "
            f"input2: {b.shape}, target: {target.shape} "
        )
    return margin_ranking_of_package(a, b, target, margin, how)


@typed(margin=float, reduction=int)
@named("margin_ranking_loss")
def margin_ranking_of_package(input1, input2, target, margin=0.0, reduction=NONE):
    """`max(0, margin - target * (input1 - input2))`; `reduction`: 0 none, 1 mean, 2 sum. Saves all three.

    >>> import cygrad
    >>> x, y = cygrad.tensor([1.0, 2.0]), cygrad.tensor([0.0, 4.0])
    >>> cygrad.margin_ranking_loss(x, y, cygrad.tensor([1.0, 1.0]))
    tensor([0., 2.])
    """
    name = "margin_ranking_loss"
    a, b = require(input1, name, "input1"), require(input2, name, "input2", 2)
    given = of_one_type(a, b, require(target, name, "target", 3))
    if given is None:
        raise NotImplementedError("clamp is not supported for complex types")
    arrays, row = tuple(map(array_of, given)), MARGIN_RANKING_BY_REDUCTION[known(reduction)]
    broadcast_shape(arrays[2].shape, broadcast_shape(arrays[0].shape, arrays[1].shape))  # raises if they do not
    return computed(row, kernels.margin_ranking, arrays, (margin,), given, reduction, (margin,))


def _finished(op, losses, input, kept, reduction, more=()):
    """Reduce and record a loss that is differentiable only in its input; `kept` are saved in addition."""
    result = finished(op, losses, (input,), reduction, more, hint=kept)
    for slot, value in enumerate(kept, 1):
        if value is not None:
            keep(result, slot, value)
    return result


def soft_margin_rule(n, g):
    x, y = n.saved(0), n.saved(1)
    found = fused_gradient("soft_margin_gradient", x, y, spread(n, g))
    return _soft_margin_gradient(n.opened(x, y), g) if found is None else found


@in_parts(0, 0, inputs=0)
def _soft_margin_gradient(n, g):
    y = n.saved(1)
    return mul(mul(neg(y), sigmoid(neg(mul(n.saved(0), y)))), spread(n, g))


SOFT_MARGIN = declare(
    "soft_margin_loss",
    soft_margin_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="self target",
    attributes="reduction",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=loss_of_elements,
    in_python=True,
)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """`log(1 + exp(-target * input))`, target 1 or -1; their mean, sum, or each element's loss.

    Saves `input` and `target`. Gradient: -g * target * sigmoid(-target * input), divided by the number of elements for
    the mean. Not differentiable for complex inputs.

    >>> import cygrad
    >>> cygrad.nn.functional.soft_margin_loss(cygrad.tensor([0.0]), cygrad.tensor([1.0]))
    tensor(0.6931)
    """
    x, y = require(input, "soft_margin_loss"), require(target, "soft_margin_loss", "target", 2)
    how = reduction_of(reduction, size_average, reduce)
    broadcast_shape(array_of(x).shape, array_of(y).shape)  # raises if they do not broadcast
    kind = result_type((x, y))
    if not (x.is_floating_point() or x.is_complex()) or kind.is_complex > x.is_complex():
        kind = result_type((x, y, 1.0))
        raise RuntimeError(f"result type {kind.type_name} can't be cast to the desired output type {x.dtype.type_name}")
    if x.is_complex() and is_recorded(x):
        raise RuntimeError(
            "soft_margin_loss does not support automatic differentiation for outputs with complex dtype."
        )
    kernel, arrays = kernels.soft_margin, (array_of(x), array_of(y))
    if arrays[1].dtype.kind in "biu" and arrays[0].dtype.char in "fd" and not is_array(arrays[0]):
        kernel = kernels.soft_margin_of_labels  # converts the labels chunk by chunk
    else:
        arrays = promoted(x, y, 0)
    result = computed(SOFT_MARGIN, kernel, arrays, (), (x,), how, hint=(y,))
    keep(result, 1, y)
    return result


# -- between classes --


def _check_rows(array):
    """Raise unless the array is a vector or a matrix of class scores."""
    if array.ndim > 2 or (array.ndim and array.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(array.shape)}"
        )


def _check_long(target):
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.type_name}")


def _per_row(g, x):
    """Reshape the gradient of each row's loss, or of the reduced loss, to broadcast over the classes."""
    return unsqueeze(g, -1) if g.ndim and x.ndim == 2 else g


@in_parts(lambda n: 0, lambda n: (1, 0, None, None), inputs=1)
def multi_margin_rule(n, g):
    x, target, weight = n.saved(0), n.saved(1), n.saved(2)
    p, margin = n.args[2:]
    scores = x if x.ndim == 2 else reshape(x, (1, -1))
    classes = reshape(target, (-1, 1))
    is_label = classes == arange(scores.shape[1], device=x.device)
    gap = add(sub(scores, gather(scores, 1, classes)), margin)
    scale = mul((gap > 0).masked_fill(is_label, False).to(x.dtype), p / scores.shape[1])
    if weight is not None:
        scale = mul(scale, unsqueeze(index_select(weight, 0, reshape(target, (-1,))), 1))
    slope = scale if p == 1 else mul(where(gap > 0, gap, 0.0), scale)
    slope = sub(slope, mul(total(slope, 1, True), is_label.to(x.dtype)))
    return mul(_per_row(spread(n, g), x), slope if x.ndim == 2 else reshape(slope, tuple(x.shape)))


MULTI_MARGIN = declare(
    "multi_margin_loss",
    multi_margin_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="self target weight",
    attributes="reduction _ p margin",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    in_python=True,
    derived={"weight": None},
    float8="multi_margin_loss_cpu_kernel",
)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over other classes j of `max(0, margin - input[target] + input[j])^p`; mean, sum, or each sample's loss.

    NaN terms count as 0. Shapes: input (C) or (N, C), target () or (N) of int64, weight (C), a factor for the losses of
    each class. p is 1 or 2. Saves all. Raises ValueError or RuntimeError for invalid arguments.

    >>> import cygrad
    >>> cygrad.nn.functional.multi_margin_loss(cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([3]))
    tensor(0.3250)
    """
    name, how = "multi_margin_loss", reduction_of(reduction, size_average, reduce)
    x, y = require(input, name), require(target, name, "target", 2)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and require(weight, name, "weight", 5).ndim != 1:
        raise ValueError("weight must be one-dimensional")
    values, classes = array_of(x), array_of(y)
    _check_rows(values)
    rows = values if values.ndim == 2 else values.reshape(1, -1)
    if classes.ndim > 1 or classes.size != len(rows):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{len(rows)}], but got {list(classes.shape)}. Input has shape "
            f"{list(values.shape)}."
        )
    if weight is not None and weight.shape != (rows.shape[1],):
        raise RuntimeError(f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}")
    if not x.dtype.is_floating_point:
        raise messages.not_implemented_for("multi_margin_loss_cpu_kernel", x.dtype)
    _check_long(y)
    if not is_array(classes) and not are_within(classes, 0, rows.shape[1]):
        raise RuntimeError("target out of range")
    weights = None if weight is None else array_of(weight)
    losses = kernels.multi_margin(rows, classes.reshape(-1), weights, margin, p).reshape(classes.shape)
    return _finished(MULTI_MARGIN, losses, x, (y, weight), how, (p, margin))


@rule("multi_margin_loss")
def _multi_margin(call):
    reduction, _, p, margin = call.args
    scores, target, weight = call.inputs[0], call.kept[1], call.kept.get(2)
    rows, classes = call.full(scores).reshape(-1, (scores.shape or (1,))[-1]), call.full(target)
    losses = multi_margin_loss(rows, classes.flatten(), p=p, margin=margin, reduction="none")
    losses = call.shaped(losses, target.shape)
    if weight is not None:
        losses = losses * weights_of_classes(call, classes, weight, NONE_IGNORED)
    return reduced_samples(losses, reduction)


NONE_IGNORED = -1  # not a valid class index


def multilabel_margin_rule(n, g):
    return mul(_per_row(spread(n, g), n.saved(0)), n.args[2])


MULTILABEL_MARGIN = declare(
    "multilabel_margin_loss",
    multilabel_margin_rule,
    saves=IN0,
    flags=ELSEWHERE,
    inputs="self target",
    attributes="reduction _ _ is_target",
    devices="together",
    autocast="float32",
    autocast_gpu="float32",
    batching=None,
    in_python=True,
    float8="multilabel_margin_loss_forward_out_frame",
)


def _multilabel_by_ops(x, y):
    """The loss of each row, composed of ops, for forward mode and batching, which cannot use the kernel's slopes."""
    x, y = (t if t.ndim else reshape(t, (1,)) for t in (x, y))
    counts = cumprod(y >= 0, -1) > 0  # up to the first entry that is not a label
    labels = where(counts, y, 0)
    is_label = scatter_add(y * 0, -1, labels, counts.long()) > 0
    gaps = add(sub(unsqueeze(x, -2), unsqueeze(gather(x, -1, labels), -1)), 1)
    takes_part = unsqueeze(counts, -1) & ~unsqueeze(is_label, -2) & (gaps > 0)
    return div(total(where(takes_part, gaps, 0.0), (-1, -2)), x.shape[-1])


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The sum over labels i, other classes j of `max(0, 1 - input[i] + input[j]) / C`; mean, sum, or each sample's.

    Shapes: input (C) or (N, C), target the same, of int64: the labels, then -1. Saves the derivatives. Raises
    RuntimeError for invalid arguments.

    >>> import cygrad
    >>> scores, labels = cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([[3, 0, -1, 1]])
    >>> cygrad.nn.functional.multilabel_margin_loss(scores, labels)
    tensor(0.8500)
    """
    name, how = "multilabel_margin_loss", reduction_of(reduction, size_average, reduce)
    x, y = require(input, name), require(target, name, "target", 2)
    values, labels = array_of(x), array_of(y)
    _check_rows(values)
    if values.shape != labels.shape:
        raise RuntimeError(f"inconsistent target size: {list(labels.shape)} for input of size: {list(values.shape)}")
    _check_long(y)
    rows = values if values.ndim == 2 else values.reshape(1, -1)
    is_known = x.dtype.is_floating_point
    found = kernels.multilabel_margin(rows if is_known else rows.astype(np.float32), labels.reshape(rows.shape))
    if found is None:
        raise RuntimeError("argument #2 'target' is out of range")
    if not is_known:
        raise messages.not_implemented_for("multilabel_margin_loss_forward_out_frame", x.dtype)
    if is_forward():
        return reduced(_multilabel_by_ops(x, y), how)
    losses, slopes, is_target = found
    losses = losses if values.ndim == 2 else losses.reshape(())
    args = tensor_of(slopes.reshape(values.shape)), tensor_of(is_target.reshape(values.shape))
    return _finished(MULTILABEL_MARGIN, losses, x, (y,), how, args)


@facts(devices="together", in_python=True)
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes of the binary cross-entropy with logits `input`; its mean, sum, or each sample's loss.

    The loss of a sample is the mean over classes c of
    -weight[c] * (target[c] * log(sigmoid(input[c])) + (1 - target[c]) * log(sigmoid(-input[c]))).

    `target` is 1 for labels and 0 for the other classes; `weight` (C) scales the losses of the classes.

    >>> import cygrad
    >>> cygrad.nn.functional.multilabel_soft_margin_loss(cygrad.zeros(1, 2), cygrad.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    name = "multilabel_soft_margin_loss"
    x, y = require(input, name), require(target, name, "target", 2)
    if size_average is not None or reduce is not None:
        how = reduction_of(reduction, size_average, reduce)
    elif isinstance(reduction, str) and reduction in CODES:
        how = CODES[reduction]
    else:
        raise ValueError(f"{reduction} is not valid")
    if weight is None and how != NONE and is_own(x) and x.shape == y.shape and x.ndim:
        loss = with_logits(x, y, how)
        return loss if how == MEAN else div(loss, x.shape[-1])
    if not x.ndim:
        raise messages.no_dimensions(-1)
    losses = with_logits(x, y)
    if weight is not None:
        losses = mul(losses, require(weight, name, "weight", 3))
    return reduced(div(total(losses, x.ndim - 1), x.shape[-1]), how)


composite = {"multilabel_soft_margin_loss": ELSEWHERE}
functions = publish(
    globals(),
    {
        "hinge_embedding_loss": hinge_embedding_of_package,
        "margin_ranking_loss": margin_ranking_of_package,
    },
)
