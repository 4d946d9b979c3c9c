"""Samples for softmax and losses, most of which are in nn.functional."""

import math

import numpy as np
from ops.sample import Sample, grid, integers, positive

INF, NAN = math.inf, math.nan


def samples():
    return {**softmaxes(), **elementwise_losses(), **classification(), **draws()}


# --- Softmax -----------------------------------------------------------------------------------


def softmax(a, dim):
    e = np.exp(a - a.max(dim, keepdims=True)) if a.size else a
    return e / e.sum(dim, keepdims=True)


def log_softmax(a, dim):
    shifted = a - a.max(dim, keepdims=True) if a.size else a
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


def softmaxes():
    x, stack, scalar = grid(2, 3), grid(2, 3, 2), np.asarray(0.7)
    calls = [(x, 0), (x, 1), (x, -1), (stack, 1), (stack, -3), (scalar, 0), (scalar, -1)]
    calls += [(np.zeros((0, 3)), 1), (np.zeros((3, 0)), 0), (x * 1000, 1), (grid(3), 0)]

    def both(function):
        special = np.array([[1.0, -INF, 2.0], [INF, 1.0, 2.0], [NAN, 1.0, 2.0], [-INF] * 3])
        return [
            *(Sample(call, numpy=function) for call in calls),
            Sample((special, 1), smooth=False, oracle_grad=False),
        ]

    def backward(of_result):
        def numpy(g, y, dim):
            return of_result(g, y, lambda a: a.sum(dim, keepdims=True))

        pairs = [(x, x[::-1].copy(), 0), (x, x + 0.3, 1), (stack, stack - 0.5, 1)]
        return [Sample(pair, numpy=numpy) for pair in [*pairs, (scalar, np.asarray(1.5), 0)]]

    return {
        "softmax": both(softmax),
        "log_softmax": both(log_softmax),
        "softmax_backward_data": backward(lambda g, y, total: y * (g - total(g * y))),
        "log_softmax_backward_data": backward(lambda g, y, total: g - np.exp(y) * total(g)),
    }


# --- Losses ------------------------------------------------------------------------------------


def reduced(losses, reduction):
    if reduction == "none":
        return losses
    return losses.sum() / (losses.size if reduction == "mean" else 1)


def each_reduction(function, *operands, **named):
    """Samples with every reduction."""

    def numpy(*operands, reduction="mean", **named):
        with np.errstate(all="ignore"):
            return reduced(function(*operands, **named), reduction)

    for reduction in ({}, {"reduction": "none"}, {"reduction": "sum"}, {"reduction": "mean"}):
        yield Sample(operands, {**named, **reduction}, numpy)


def each_code(function, *operands):
    """Samples with every reduction by its code, as the internal forms of the losses accept it."""
    for code, name in enumerate(("none", "mean", "sum")):
        yield Sample(operands, {"reduction": code}, lambda a, b, reduction, name=name: reduced(function(a, b), name))


def elementwise_losses():
    x, y, p, q = grid(2, 3), 2 * grid(2, 3)[:, ::-1] + 0.1, positive(2, 3) / 3, positive(2, 3) / 4
    scalar = np.asarray(0.7)

    def squared(a, b):
        return (a - b) ** 2

    def smooth_l1(a, b, beta=1.0):
        d = np.abs(a - b)
        return np.where(d < beta, d * d / 2 / beta, d - beta / 2)

    def binary(a, b):
        return -(b * np.log(a) + (1 - b) * np.log(1 - a))

    def with_logits(a, b, pos_weight=1):
        s = 1 / (1 + np.exp(-a))
        return -(pos_weight * b * np.log(s) + (1 - b) * np.log(1 - s))

    both = [(x, y), (scalar, np.asarray(1.5)), (np.zeros((0, 2)), np.zeros((0, 2)))]
    single = x.astype(np.float32)
    return {
        "mse_loss": [s for pair in both for s in each_reduction(squared, *pair)]
        + [Sample((single, y), grad=False), Sample((x, integers(2, 3)))],
        "l1_loss": [s for pair in both[:2] for s in each_reduction(lambda a, b: np.abs(a - b), *pair)],
        "smooth_l1_loss": [
            *(s for pair in both for s in each_reduction(smooth_l1, *pair)),
            *each_reduction(smooth_l1, x, y, beta=0.3),
        ],
        "smooth_l1_loss.l1": list(each_reduction(smooth_l1_of_zero, x, y, beta=0)),
        "binary_cross_entropy": [
            *each_reduction(binary, p, q),
            Sample((np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0])), smooth=False),
        ],
        "binary_cross_entropy_with_logits": [
            *each_code(with_logits, x, q),
            *each_code(with_logits, 5 * x, q),
            *each_code(with_logits, np.zeros((0, 2)), np.zeros((0, 2))),
        ],
    }


def smooth_l1_of_zero(a, b, beta):
    return np.abs(a - b)


def nll(logp, target, ignore_index=-100, reduction="mean"):
    if logp.ndim == 1:
        logp, target, shape = logp[None], target.reshape(1), ()
    else:
        shape = target.shape
    rows = np.moveaxis(logp, 1, -1).reshape(-1, logp.shape[1])
    flat = target.reshape(-1)
    kept = flat != ignore_index
    losses = np.where(kept, -rows[np.arange(len(flat)), np.where(kept, flat, 0)], 0.0)
    if reduction == "none":
        return losses.reshape(shape)
    return losses.sum() / (kept.sum() if reduction == "mean" else 1)


def biased_cross_entropy(a, w, target, linear_bias):
    return nll(log_softmax(a @ w.T + linear_bias, 1), target)


def classification():
    x, images, volumes = grid(4, 3), grid(2, 3, 2), grid(2, 3, 1, 2, 1)
    target = np.array([0, 2, 1, 1])
    ignored = np.array([-100, 2, 1, -100])
    pixels = integers(2, 2, low=0, high=3)
    soft = softmax(grid(4, 3) * 1.5, 1)

    def cross_entropy(a, target, **named):
        return nll(log_softmax(a, 1 if a.ndim > 1 else 0), target, **named)

    def soft_cross_entropy(a, target, reduction="mean", label_smoothing=0.0):
        dim = 1 if a.ndim > 1 else 0
        target = target * (1 - label_smoothing) + label_smoothing / a.shape[dim]
        return reduced(-(log_softmax(a, dim) * target).sum(dim), reduction)

    def smoothed(a, target, reduction="mean", label_smoothing=0.0):
        return soft_cross_entropy(a, np.eye(3)[target], reduction, label_smoothing)

    def with_softmax(a, target, weight, ignore_index, code):
        return nll(log_softmax(a, 1), target, reduction=("none", "mean", "sum")[code]), softmax(a, 1)

    def calls(function, *arguments, **named):
        return [
            Sample(arguments, {**named, **reduction}, function)
            for reduction in ({}, {"reduction": "none"}, {"reduction": "sum"})
        ]

    def both(function):
        return {
            "": calls(function, x, target)
            + calls(function, x, ignored)
            + calls(function, x, target, ignore_index=1)
            + calls(function, x[0], np.asarray(2))
            + [Sample((x[0], np.array([2])), {"reduction": "none"}, function, oracle_grad=False)]
            + [Sample((x, target.astype(np.uint8)), numpy=function)]
            + [Sample((x, np.full(4, -100)), {"reduction": "sum"}, function)]
            + calls(function, np.zeros((0, 3)), np.zeros(0, int))[1:],
            ".2d": calls(function, images, pixels)[:1]
            + calls(function, grid(2, 3, 2, 2), integers(2, 2, 2, low=0, high=3)),
            ".deep": calls(function, images, pixels)[2:] + calls(function, volumes, np.ones((2, 1, 2, 1), int))[::2],
            ".deep_none": [Sample((images, pixels), {"reduction": "none"}, function, oracle_grad=False)],
        }

    def nll_backward(g, target, weight, ignore_index, reduction, total, shape):
        rows = np.zeros(shape)
        kept = target != ignore_index
        scale = np.broadcast_to(g / total if reduction == 1 else g, target.shape)
        rows[np.flatnonzero(kept), target[kept]] = -scale[kept]
        return rows

    def backward(g, reduction, classes=target):
        total = np.array(float((classes != -100).sum()))
        return Sample((g, classes, None, -100, reduction, total, (4, 3)), {}, nll_backward)

    return {
        **{f"nll_loss{kind}": found for kind, found in both(nll).items()},
        **{f"cross_entropy{kind}": found for kind, found in both(cross_entropy).items()},
        "cross_entropy_of_softmax": [
            Sample((x, classes, None, -100, code), {}, with_softmax)
            for code in range(3)
            for classes in (target, ignored)
        ],
        "cross_entropy.soft": [
            *calls(soft_cross_entropy, x, soft),
            *calls(soft_cross_entropy, x[0], soft[0]),
            *calls(soft_cross_entropy, x, soft, label_smoothing=0.2),
        ],
        "cross_entropy.smoothed": [
            *calls(smoothed, x, target, label_smoothing=0.2),
            *calls(smoothed, x, target, label_smoothing=1.0),
        ],
        "linear_cross_entropy": [
            Sample((x, grid(5, 3), target), numpy=lambda a, w, t: cross_entropy(a @ w.T, t)),
            Sample((x, grid(5, 3), target), {"linear_bias": grid(5)}, biased_cross_entropy),
            Sample((x, grid(5, 3), target), {"label_smoothing": 0.1, "reduction": "none"}),
            Sample((x[0], grid(5, 3), np.asarray(1)), numpy=lambda a, w, t: cross_entropy(w @ a, t)),
            Sample((x, grid(5, 2, 3), integers(4, 2, low=0, high=5)), {"linear_bias": grid(5, 2)}),
            Sample((x, grid(3, 3), soft), numpy=lambda a, w, t: soft_cross_entropy(a @ w.T, t)),
        ],
        "nll_loss_backward": [
            Sample(s.args[:5] + (s.args[5].astype(int),) + s.args[6:], numpy=s.numpy, grad=False) for s in ()
        ]
        + [backward(grid(4), 0), backward(np.asarray(0.7), 2), backward(grid(4), 0, ignored)],
    }


# --- Random functions with a single possible outcome -------------------------------------------


def draws():
    coins = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    weights = np.array([[0.0, 2.0, 0.0], [0.5, 0.0, 0.0]])
    return {
        "bernoulli": [
            Sample((coins,), numpy=lambda p: p, smooth=False),
            Sample((np.asarray(1.0),), numpy=lambda p: p, smooth=False),
            Sample((np.zeros((0, 2)),), numpy=lambda p: p),
        ],
        "poisson": [
            Sample((np.zeros((2, 3)),), numpy=lambda rate: rate, smooth=False),
            Sample((np.asarray(0.0),), numpy=lambda rate: rate, smooth=False),
            Sample((np.zeros((0, 2)),), numpy=lambda rate: rate),
        ],
        "binomial": [
            Sample((integers(2, 3, low=0) + 0.0, coins), numpy=np.multiply, grad=False),
            Sample((integers(2, 3) + 0.0, coins[0]), numpy=lambda n, p: n.clip(0) * p, grad=False),
            Sample((np.asarray(5.0), np.asarray(1.0)), numpy=np.multiply, grad=False),
        ],
        "multinomial": [
            Sample((weights, 1), numpy=lambda w, n: np.array([[1], [0]])),
            Sample((weights[0], 1), numpy=lambda w, n: np.array([1])),
            Sample((weights, 3, True), numpy=lambda w, n, r: np.array([[1] * 3, [0] * 3])),
        ],
        "meshgrid": [
            Sample((grid(2), grid(3)), {"indexing": "ij"}, np_meshgrid),
            Sample((grid(2), grid(3), grid(2)), {"indexing": "xy"}, np_meshgrid),
            Sample((grid(2),), {"indexing": "xy"}, np_meshgrid),
            Sample((np.asarray(0.5), grid(3)), {"indexing": "ij"}, np_meshgrid),
            Sample(((integers(2), integers(3)),), {"indexing": "ij"}, np_meshgrid_of),
        ],
    }


def np_meshgrid(*vectors, indexing):
    return tuple(np.meshgrid(*vectors, indexing=indexing))


def np_meshgrid_of(vectors, indexing):
    return np_meshgrid(*vectors, indexing=indexing)


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, target, vector = grid(2, 3), integers(2, 3), np.array([0, 2]), grid(3)
    p = positive(2, 3) / 3

    def bad(*cases, **named):
        return [Sample(case, named) for case in cases]

    def losses():
        return bad((x, grid(4), None, None, "foo"), (x, x, None, None, "foo"))

    return {
        "softmax": bad((x, 2), (x, -3), (i, 1), (x, "a"), (x, 1.0), ([1.0], 0)),
        "log_softmax": bad((x, 2), (i, 1), (np.asarray(1.0), 1)),
        "mse_loss": bad((i, i), (x, x, None, None, "foo")),
        "smooth_l1_loss": bad((i, i), (x, x, None, None, "foo")) + bad((x, x), beta=-1),
        "binary_cross_entropy": bad((2 * x, p), (p, p[:1]), (p, p.astype(np.float32)), (p, i), (i, p), (p, p, grid(4))),
        "binary_cross_entropy_with_logits": bad((x, i), (x, p, grid(4))) + bad((x, p), pos_weight=grid(4)),
        "nll_loss": bad(
            (x, np.array([0, 3])),
            (x, np.array([0, -1])),
            (x, np.array([0.0, 1.0])),
            (x, np.array([0, 1, 1])),
            (x, target, grid(2)),
            (x, target, grid(3).astype(np.float32)),
            (x, target.astype(np.int32)),
            (x, target[:, None]),
            (np.asarray(1.0), np.asarray(1)),
            (i, target),
            (vector, target),
            (grid(2, 3, 4), np.zeros((2, 5), int)),
            (grid(2, 3, 4, 5), np.zeros((2, 4), int)),
            (grid(2, 3, 4, 5), np.zeros((2, 4, 6), int)),
            (grid(2, 3, 4, 5), np.zeros((3, 4, 5), int)),
            (x, target, None, None, -100, None, "foo"),
            ([1.0], target),
            (x, [1]),
        ),
        "cross_entropy": bad(
            (x, np.array([0, 3])),
            (x, grid(2, 4)),
            (x, grid(2)),
            (x, i),
            (x, booleans_of(target)),
            (x, 3),
            (i, target),
            (vector, target),
            (grid(2, 3, 4), np.zeros((2, 5), int)),
            (np.asarray(1.0), np.asarray(0)),
            (x, p, grid(2)),
            (x, target, grid(2)),
            (np.ones((2, 0)), target),
        )
        + bad((x, target), label_smoothing=1.1)
        + bad((x, p), ignore_index=2),
        "multinomial": bad(
            (np.ones(3), 4),
            (np.ones((2, 3, 4)), 2),
            (np.array([1.0, -1.0]), 1),
            (np.array([0.0, 0.0]), 1),
            (np.array([1.0, NAN]), 1),
            (np.array([1.0, INF]), 1),
            (np.array([1, 2]), 1),
            (np.ones(3), 0),
        ),
        "poisson": bad((np.array([1.0, -1.0]),), (np.array([NAN]),), (np.array([1]),), (1.0,)),
        "binomial": bad(
            (np.array([1]), np.array([0.5])),
            (np.array([1.0]), np.array([1])),
            (np.array([1.0]), 0.5),
            (np.array([1.0], np.float32), np.array([0.5])),
            (np.ones(2), np.ones(3)),
        ),
        "cauchy_": bad((np.ones(2), 0, 0), (np.ones(2), "a"), (np.ones(2, int),)),
        "log_normal_": bad((np.ones(2), 0, -1), (np.ones(2), "a"), (np.ones(2, int),)),
        "geometric_": bad((np.ones(2), 0), (np.ones(2), 1), (np.ones(2), "a"), (np.ones(2, bool), 0.5)),
        "bernoulli": bad((np.array([1.5]),), (np.array([1]),), (np.array([0.5]), 1.3)),
        "meshgrid": bad((vector, i[0]), (), indexing="ij") + bad((vector, vector), indexing="foo"),
    }


def booleans_of(array):
    return array > 0
