"""ONNX forms of losses. Their formulas are those of the documentation of `nn`'s layers."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.activations import logsigmoid
from cygrad.export._onnx_forms.elementwise import log1p, xlogy
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.products import linear, pairwise_distance
from cygrad.export._onnx_forms.table import Unsupported, form
from cygrad.nn import functional


def _loss(name: str) -> Callable[[Any], Any]:
    """Decorator that enters the form of a loss.

    It receives the arguments of `nn.functional`'s function by name, without the deprecated ones. One that does not take
    `reduction` returns the loss of each element, and is reduced here.
    """

    def enter(write: Any) -> Any:
        function = inspect.signature(getattr(functional, name))
        reduces = "reduction" in inspect.signature(write).parameters

        @form(name)
        def loss(g: Graph, *args: Any, **named: Any) -> Value:
            bound = function.bind(*args, **named).arguments
            if any(bound.pop(old, None) is not None for old in ("size_average", "reduce")):
                raise Unsupported("the deprecated `size_average` and `reduce`")
            if reduces:
                return write(g, **bound)
            reduction = bound.pop("reduction", "mean")
            return _reduced(g, write(g, **bound), reduction)

        return write

    return enter


def _reduced(g: Graph, loss: Value, reduction: str) -> Value:
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise Unsupported(f"the reduction {reduction!r}")
    return g.op("ReduceMean" if reduction == "mean" else "ReduceSum", loss, keepdims=0)


def _weighted(g: Graph, loss: Value, weight: Value | None) -> Value:
    return loss if weight is None else g.op("Mul", loss, weight)


def _hinge(g: Graph, gap: Value, margin: Any) -> Value:
    """max(0, margin + gap)"""
    return g.op("Relu", g.op("Add", gap, g.value(margin, gap.dtype)))


def _equals(g: Graph, value: Value, number: int) -> Value:
    return g.op("Equal", value, g.constant(number, value.dtype), dtype=cygrad.bool)


# -- of two tensors of one shape ---------------------------------------------------------------------------


@_loss("mse_loss")
def mse_loss(g: Graph, input: Value, target: Value, reduction: str = "mean", weight: Value | None = None) -> Value:
    return _mean_by_weight(g, _squared(g, g.op("Sub", *g.promoted(input, target))), weight, reduction)


@_loss("l1_loss")
def l1_loss(g: Graph, input: Value, target: Value, reduction: str = "mean", weight: Value | None = None) -> Value:
    return _mean_by_weight(g, g.op("Abs", g.op("Sub", *g.promoted(input, target))), weight, reduction)


def _squared(g: Graph, value: Value) -> Value:
    return g.op("Mul", value, value)


def _mean_by_weight(g: Graph, loss: Value, weight: Value | None, reduction: str) -> Value:
    """The reduction of a weighted loss, whose mean divides by the sum of the weights."""
    if weight is None or reduction != "mean":
        return _reduced(g, _weighted(g, loss, weight), reduction)
    weights = g.op("Expand", g.cast(weight, loss.dtype), g.sizes(Value(loss.name, loss.dtype)))
    total = g.op("ReduceSum", g.op("Mul", loss, weights), keepdims=0)
    return g.op("Div", total, g.op("ReduceSum", weights, keepdims=0))


@_loss("smooth_l1_loss")
def smooth_l1_loss(g: Graph, input: Value, target: Value, beta: float = 1.0) -> Value:
    gap = g.op("Abs", g.op("Sub", *g.promoted(input, target)))
    if beta == 0:
        return gap
    limit, half = g.constant(beta, gap.dtype), g.constant(0.5, gap.dtype)
    near = g.op("Mul", half, g.op("Div", _squared(g, gap), limit))
    return g.where(
        g.op("Less", gap, limit, dtype=cygrad.bool), near, g.op("Sub", gap, g.constant(0.5 * beta, gap.dtype))
    )


@_loss("huber_loss")
def huber_loss(
    g: Graph, input: Value, target: Value, reduction: str = "mean", delta: float = 1.0, weight: Value | None = None
) -> Value:
    gap = g.op("Abs", g.op("Sub", *g.promoted(input, target)))
    limit, half = g.constant(delta, gap.dtype), g.constant(0.5, gap.dtype)
    far = g.op("Mul", limit, g.op("Sub", gap, g.constant(0.5 * delta, gap.dtype)))
    near = g.op("Mul", half, _squared(g, gap))
    loss = g.where(g.op("LessOrEqual", gap, limit, dtype=cygrad.bool), near, far)
    return _reduced(g, _weighted(g, loss, weight), reduction)


@_loss("binary_cross_entropy")
def binary_cross_entropy(g: Graph, input: Value, target: Value, weight: Value | None = None) -> Value:
    one, least = g.constant(1, input.dtype), g.constant(-100, input.dtype)
    positive = g.op("Max", g.op("Log", input), least)
    negative = g.op("Max", log1p(g, g.op("Neg", input)), least)
    total = g.op("Add", g.op("Mul", target, positive), g.op("Mul", g.op("Sub", one, target), negative))
    return _weighted(g, g.op("Neg", total), weight)


@_loss("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    g: Graph, input: Value, target: Value, weight: Value | None = None, pos_weight: Value | None = None
) -> Value:
    one, zero = g.constant(1, input.dtype), g.constant(0, input.dtype)
    small = log1p(g, g.op("Exp", g.op("Neg", g.op("Abs", input))))
    log_of_one_less = g.op("Add", small, g.op("Max", g.op("Neg", input), zero))  # -log(sigmoid(input))
    if pos_weight is not None:
        factor = g.op("Add", one, g.op("Mul", g.op("Sub", pos_weight, one), target))
        log_of_one_less = g.op("Mul", factor, log_of_one_less)
    return _weighted(g, g.op("Add", g.op("Mul", g.op("Sub", one, target), input), log_of_one_less), weight)


@_loss("kl_div")
def kl_div(g: Graph, input: Value, target: Value, reduction: str = "mean", log_target: bool = False) -> Value:
    if log_target:
        loss = g.op("Mul", g.op("Exp", target), g.op("Sub", target, input))
    else:
        loss = g.op("Sub", xlogy(g, target, target), g.op("Mul", target, input))
    if reduction != "batchmean":
        return _reduced(g, loss, reduction)
    return g.op("Div", _reduced(g, loss, "sum"), g.number(g.size(input, 0), input.dtype))


@_loss("poisson_nll_loss")
def poisson_nll_loss(
    g: Graph,
    input: Value,
    target: Value,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
) -> Value:
    if log_input:
        loss = g.op("Sub", g.op("Exp", input), g.op("Mul", target, input))
    else:
        loss = g.op("Sub", input, g.op("Mul", target, g.op("Log", g.op("Add", input, g.constant(eps, input.dtype)))))
    if not full:
        return loss
    half, pi = g.constant(0.5, input.dtype), g.constant(2 * math.pi, input.dtype)
    stirling = g.op("Sub", g.op("Mul", target, g.op("Log", target)), target)
    stirling = g.op("Add", stirling, g.op("Mul", half, g.op("Log", g.op("Mul", pi, target))))
    is_large = g.op("Greater", target, g.constant(1, target.dtype), dtype=cygrad.bool)
    return g.op("Add", loss, g.where(is_large, stirling, g.constant(0, loss.dtype)))


@_loss("gaussian_nll_loss")
def gaussian_nll_loss(
    g: Graph, input: Value, target: Value, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Value:
    variance = g.value(var, input.dtype)
    if isinstance(var, Value) and var.rank == input.rank - 1:
        variance = g.op("Unsqueeze", variance, [-1])
    variance = g.op("Max", variance, g.constant(eps, input.dtype))
    square = _squared(g, g.op("Sub", input, target))
    loss = g.op("Add", g.op("Log", variance), g.op("Div", square, variance))
    loss = g.op("Mul", loss, g.constant(0.5, input.dtype))
    return _reduced(g, g.op("Add", loss, g.constant(0.5 * math.log(2 * math.pi) * full, input.dtype)), reduction)


# -- of margins --------------------------------------------------------------------------------------------


@_loss("hinge_embedding_loss")
def hinge_embedding_loss(g: Graph, input: Value, target: Value, margin: float = 1.0) -> Value:
    zero = g.constant(0, input.dtype)
    unlike = g.where(_equals(g, target, 1), zero, _hinge(g, g.op("Neg", input), margin))
    return g.op("Add", unlike, g.where(_equals(g, target, -1), zero, input))


@_loss("soft_margin_loss")
def soft_margin_loss(g: Graph, input: Value, target: Value) -> Value:
    return log1p(g, g.op("Exp", g.op("Neg", g.op("Mul", *g.promoted(target, input)))))


@_loss("margin_ranking_loss")
def margin_ranking_loss(g: Graph, input1: Value, input2: Value, target: Value, margin: float = 0) -> Value:
    gap = g.op("Sub", *g.promoted(input1, input2))
    return _hinge(g, g.op("Neg", g.op("Mul", *g.promoted(target, gap))), margin)


@_loss("cosine_embedding_loss")
def cosine_embedding_loss(g: Graph, input1: Value, input2: Value, target: Value, margin: float = 0) -> Value:
    a, b = g.promoted(input1, input2)
    tiny, one, zero = (g.constant(number, a.dtype) for number in (1e-12, 1, 0))

    def total(x: Value, y: Value) -> Value:
        return g.op("ReduceSum", g.op("Mul", x, y), [-1], keepdims=0)

    lengths = g.op("Mul", g.op("Add", total(a, a), tiny), g.op("Add", total(b, b), tiny))
    cosine = g.op("Div", total(a, b), g.op("Sqrt", lengths))
    unlike = g.where(_equals(g, target, -1), _hinge(g, cosine, -margin), zero)
    return g.where(_equals(g, target, 1), g.op("Sub", one, cosine), unlike)


@_loss("triplet_margin_loss")
def triplet_margin_loss(
    g: Graph,
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
) -> Value:
    near, far = pairwise_distance(g, anchor, positive, p, eps), pairwise_distance(g, anchor, negative, p, eps)
    if swap:
        far = g.op("Min", far, pairwise_distance(g, positive, negative, p, eps))
    return _hinge(g, g.op("Sub", near, far), margin)


@_loss("multi_margin_loss")
def multi_margin_loss(
    g: Graph, input: Value, target: Value, p: int = 1, margin: float = 1.0, weight: Value | None = None
) -> Value:
    classes = input.length(-1)
    places = g.op("Unsqueeze", target, [-1])
    gap = _hinge(g, g.op("Sub", input, g.op("GatherElements", input, places, axis=-1)), margin)
    gap = gap if p == 1 else _squared(g, gap)
    gap = _weighted(g, gap, None if weight is None else g.op("Gather", weight, places, axis=0))
    others = g.op("Equal", places, g.constant(np.arange(classes), target.dtype), dtype=cygrad.bool)
    return g.op("ReduceMean", g.where(others, g.constant(0, gap.dtype), gap), [-1], keepdims=0)


@_loss("multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(g: Graph, input: Value, target: Value, weight: Value | None = None) -> Value:
    one = g.constant(1, input.dtype)
    positive = g.op("Mul", target, logsigmoid(g, input))
    negative = g.op("Mul", g.op("Sub", one, target), logsigmoid(g, g.op("Neg", input)))
    loss = _weighted(g, g.op("Neg", g.op("Add", positive, negative)), weight)
    return g.op("ReduceMean", loss, [-1], keepdims=0)


@_loss("multilabel_margin_loss")
def multilabel_margin_loss(g: Graph, input: Value, target: Value) -> Value:
    classes, zero = input.length(-1), g.constant(0, cygrad.int64)
    ended = g.op(
        "CumSum", g.cast(g.op("Less", target, zero, dtype=cygrad.bool), cygrad.int32), g.constant(-1, cygrad.int64)
    )
    is_label = _equals(g, ended, 0)  # the labels end at the first negative number
    labels = g.where(is_label, target, zero)
    numbers = g.constant(np.arange(classes), cygrad.int64)
    matches = g.op("Equal", g.op("Unsqueeze", labels, [-1]), numbers, dtype=cygrad.bool)  # (..., label, class)
    matches = g.op("And", matches, g.op("Unsqueeze", is_label, [-1]))
    is_other = _equals(g, g.op("ReduceMax", g.cast(matches, cygrad.int32), [-2], keepdims=1), 0)
    at_labels = g.op("Unsqueeze", g.op("GatherElements", input, labels, axis=-1), [-1])
    gap = _hinge(g, g.op("Sub", g.op("Unsqueeze", input, [-2]), at_labels), 1)
    counts = g.op("And", is_other, g.op("Unsqueeze", is_label, [-1]))
    total = g.op("ReduceSum", g.where(counts, gap, g.constant(0, gap.dtype)), [-1, -2], keepdims=0)
    return g.op("Div", total, g.constant(classes, total.dtype))


# -- of classes --------------------------------------------------------------------------------------------


@_loss("nll_loss")
def nll_loss(
    g: Graph,
    input: Value,
    target: Value,
    weight: Value | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Value:
    loss, weights = _of_classes(g, input, target, weight, ignore_index)
    return _mean_of(g, loss, weights, reduction)


def _of_classes(
    g: Graph, input: Value, target: Value, weight: Value | None, ignored: int, smoothing: float = 0.0
) -> tuple[Value, Value]:
    """The losses of targets that are numbers of classes, and the weights by which a mean divides."""
    axis = min(input.rank - 1, 1)
    counted = g.op("Not", _equals(g, target, ignored))
    places = g.where(counted, target, g.constant(0, target.dtype))
    picked = g.op("GatherElements", input, g.op("Unsqueeze", places, [axis]), axis=axis)
    weights = g.cast(counted, input.dtype)
    if weight is not None:
        weights = g.op("Mul", weights, g.op("Gather", weight, places, axis=0))
    loss = g.op("Neg", g.op("Mul", g.op("Squeeze", picked, [axis]), weights))
    if smoothing:
        loss = g.op("Mul", loss, g.constant(1 - smoothing, loss.dtype))
        evenly = g.op("ReduceSum", _weighted(g, input, _along(g, weight, input)), [axis], keepdims=0)
        evenly = g.op("Mul", evenly, g.constant(-smoothing / input.length(axis), loss.dtype))
        loss = g.op("Add", loss, g.op("Mul", evenly, g.cast(counted, loss.dtype)))
    return loss, weights


def _along(g: Graph, weight: Value | None, input: Value) -> Value | None:
    """The weights of classes, shaped to be multiplied with the input."""
    return weight if weight is None or input.rank < 3 else g.reshape(weight, [-1, *[1] * (input.rank - 2)])


def _mean_of(g: Graph, loss: Value, weights: Value, reduction: str) -> Value:
    if reduction != "mean":
        return _reduced(g, loss, reduction)
    return g.op("Div", g.op("ReduceSum", loss, keepdims=0), g.op("ReduceSum", weights, keepdims=0))


@_loss("cross_entropy")
def cross_entropy(
    g: Graph,
    input: Value,
    target: Value,
    weight: Value | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    axis = min(input.rank - 1, 1)
    logs = g.op("LogSoftmax", input, axis=axis)
    logs._shape = input.shape
    if not target.is_float:
        loss, weights = _of_classes(g, logs, target, weight, ignore_index, label_smoothing)
        return _mean_of(g, loss, weights, reduction)
    if label_smoothing:
        even = g.constant(label_smoothing / input.length(axis), input.dtype)
        target = g.op("Add", g.op("Mul", target, g.constant(1 - label_smoothing, input.dtype)), even)
    product = _weighted(g, g.op("Mul", logs, target), _along(g, weight, input))
    return _reduced(g, g.op("Neg", g.op("ReduceSum", product, [axis], keepdims=0)), reduction)


@_loss("linear_cross_entropy")
def linear_cross_entropy(
    g: Graph,
    input: Value,
    linear_weight: Value,
    target: Value,
    *,
    linear_bias: Value | None = None,
    weight: Value | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Value:
    if linear_weight.rank > 2:
        raise Unsupported("weights with more than two dimensions")
    scores = linear(g, input, linear_weight, linear_bias)
    scores._shape = (*input.shape[:-1], linear_weight.length(0))
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        g,
        scores,
        target,
        weight,
        ignored,
        reduction,
        label_smoothing,
    )
