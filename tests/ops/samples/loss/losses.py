"""Samples for the losses that compare distributions or use margins."""

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers, positive

NONE, MEAN, SUM = range(3)


def samples():
    return {**errors_squared(), **distributions(), **by_element(), **between_classes()}


def reduced(losses, reduction):
    if reduction in (NONE, "none"):
        return losses
    return losses.sum() / (losses.size if reduction in (MEAN, "mean") else 1)


def by_name(function, *operands, **named):
    """Samples with every reduction, by name."""

    def numpy(*operands, reduction="mean", **named):
        return reduced(function(*operands, **named), reduction)

    for reduction in ({}, {"reduction": "none"}, {"reduction": "sum"}):
        yield Sample(operands, {**named, **reduction}, numpy)


def by_code(function, *operands, **named):
    """Samples with every reduction, by its code."""

    def numpy(*operands, reduction=MEAN, **named):
        return reduced(function(*operands, **named), reduction)

    for code in (NONE, MEAN, SUM):
        yield Sample(operands, {**named, "reduction": code}, numpy)


def errors_squared():
    x, y = grid(2, 3), 2 * grid(2, 3)[:, ::-1] + 0.1

    def huber(a, b, delta=1.0):
        d = np.abs(a - b)
        return np.where(d < delta, d * d / 2, delta * (d - delta / 2))

    edges = np.array([-1.0, 0.0, 1.0])
    return {
        "huber_loss": [
            *by_name(huber, x, y),
            *by_name(huber, x, y, delta=0.3),
            *by_name(huber, np.asarray(0.7), np.asarray(1.5)),
            *by_name(huber, np.zeros((0, 2)), np.zeros((0, 2))),
            Sample((edges, np.zeros(3)), {"reduction": "none"}, huber_of(huber), smooth=False),
        ]
    }


def huber_of(function):
    return lambda a, b, reduction: function(a, b)


def distributions():
    x, p, q = grid(2, 3), positive(2, 3), positive(2, 3)[::-1].copy()
    counts = integers(2, 3, low=0, high=5) + 0.0
    empty = np.zeros((0, 2))

    def divergence(a, b, log_target=False):
        return np.exp(b) * (b - a) if log_target else b * np.log(b) - b * a

    def poisson(a, b, log_input=True, full=False, eps=1e-8):
        losses = np.exp(a) - b * a if log_input else a - b * np.log(a + eps)
        if full:
            many = np.maximum(b, 1)
            losses = losses + np.where(b > 1, many * np.log(many) - many + np.log(2 * np.pi * many) / 2, 0)
        return losses

    def gaussian(a, b, var, full=False):
        var = var[..., None] if np.ndim(var) and var.ndim < a.ndim else var
        return (np.log(var) + (a - b) ** 2 / var) / 2 + (np.log(2 * np.pi) / 2 if full else 0)

    return {
        "kl_div": [
            *by_code(divergence, x, p),
            *by_code(divergence, x, q - 1, log_target=True),
            Sample((x, np.array([[0.0, 1.0, 0.0]] * 2)), smooth=False),
            Sample((empty, empty), {"reduction": SUM}, lambda a, b, reduction: np.array(0.0)),
        ],
        "kl_divergence": [
            Sample((x, p), numpy=lambda a, b: b * (np.log(b) - a)),
            Sample((x, grid(3, low=0.1)), numpy=lambda a, b: b * (np.log(b) - a)),
            Sample((np.array([1.0, -np.inf, 2.0]), np.array([0.0, 0.0, np.nan])), smooth=False),
            Sample((grid(6), np.array([-1.0, np.inf, 1.0, 0.0, 0.0, 2.0])), smooth=False),
        ],
        "poisson_nll_loss": [
            *by_code(poisson, x, q, log_input=True, full=False, eps=1e-8),
            *by_code(poisson, p, q + 1.1, log_input=False, full=True, eps=1e-3),
            Sample((x, counts, True, True, 1e-8, NONE), numpy=lambda a, b, *rest: poisson(a, b, full=True), grad=False),
        ],
        "gaussian_nll_loss": [
            *by_name(gaussian, x, p, q),
            *by_name(gaussian, x, p, q, full=True),
            *by_name(gaussian, x, p, positive(2, 1)),
            *by_name(gaussian, x, p, positive(2)),
            *by_name(gaussian, x, p, 2.0),
            Sample((grid(), grid(), np.array(0.0)), numpy=lambda a, b, _: gaussian(a, b, 1e-6), smooth=False),
        ],
    }


def by_element():
    x, y, s = grid(2, 3), grid(2, 3)[::-1].copy(), np.where(grid(2, 3) > 0, 1, -1)
    v, w = grid(3), grid(3)[::-1] * 0.8

    def hinge(a, b, margin=1.0):
        return np.where(b == 1, a, np.maximum(0, margin - a))

    def ranking(a, b, t, margin=0.0):
        return np.maximum(0, margin - t * (a - b))

    return {
        "hinge_embedding_loss": [
            *by_code(hinge, x, s),
            *by_code(hinge, x, s, margin=0.3),
            Sample((x, 0 * s, 1.0, NONE), numpy=lambda a, b, m, r: a + np.maximum(0, m - a)),
        ],
        "margin_ranking_loss": [
            *by_code(ranking, x, y, s),
            *by_code(ranking, x, y, s, margin=0.5),
            *by_code(ranking, v, w, s[0]),
        ],
        "soft_margin_loss": [
            *by_name(lambda a, b: np.log1p(np.exp(-a * b)), x, s),
            *by_name(lambda a, b: np.log1p(np.exp(-a * b)), np.asarray(0.7), np.asarray(-1)),
        ],
    }


def between_classes():
    x, target, weight = 0.97 * grid(3, 4), np.array([0, 3, 1]), np.array([1.0, 0.5, 2.0, 0.3])
    labels = np.array([[0, 2, -1, 1], [-1, 0, 0, 0], [3, 1, 0, 2]])

    def multi_margin(a, t, p=1, margin=1.0, weight=None):
        rows = a.reshape(-1, a.shape[-1])
        losses = []
        for row, c in zip(rows, t.reshape(-1)):
            gaps = [max(0, margin - row[c] + row[j]) ** p for j in range(len(row)) if j != c]
            losses.append(sum(gaps) / len(row) * (1 if weight is None else weight[c]))
        return np.array(losses).reshape(t.shape)

    def multilabel(a, t):
        losses = []
        for row, places in zip(a.reshape(-1, a.shape[-1]), t.reshape(-1, t.shape[-1])):
            own = list(places[: list(places).index(-1)] if -1 in places else places)
            others = [j for j in range(len(row)) if j not in own]
            losses.append(sum(max(0, 1 - row[i] + row[j]) for i in own for j in others) / len(row))
        return np.array(losses).reshape(a.shape[:-1])

    def soft(a, t, weight=1):
        return (weight * (np.log1p(np.exp(a)) - t * a)).mean(-1)

    # PyTorch's result depends on uninitialized memory here.
    empty = Sample(
        (np.zeros((0, 4)), np.zeros(0, int)), {"reduction": "sum"}, lambda *_, **__: np.array(0.0), unique=False
    )
    return {
        "multi_margin_loss": [
            *by_name(multi_margin, x, target),
            *by_name(multi_margin, x, target, p=2, margin=0.7),
            *by_name(multi_margin, x[0], np.asarray(2), p=2),
            *by_name(multi_margin, x[0], np.array([2])),
            empty,
        ],
        "multilabel_margin_loss": [
            *by_name(multilabel, x, labels),
            *by_name(multilabel, x[0], labels[0]),
            *by_name(multilabel, 0.1 * x, labels),
        ],
        "multilabel_soft_margin_loss": [
            *by_name(soft, x, np.where(x > 0.3, 1.0, 0.0)),
            *by_name(soft, x[0], positive(4) / 3),
            *by_name(
                lambda a, t, weight: (weight * (np.log1p(np.exp(a)) - t * a)).mean(-1), x, x * x / 4, weight=weight
            ),
        ],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, z, t = grid(2, 4), integers(2, 4), complex_grid(2, 2), np.array([1, 2])
    p = positive(2, 4)

    def bad(*cases, **named):
        return [Sample(case, named) for case in cases]

    return {
        "huber_loss": bad((i, i), (x, x, "foo"), (x, x, "mean", 0), (x, x, "mean", 1.0, grid(4)), (z, z)),
        "kl_div": bad((x, i), (i, i), (x, grid(3)), (x, 1)),
        "poisson_nll_loss": bad((x, grid(3), True, False, 1e-8, 1), (x, 1, True, False, 1e-8, 1)),
        "gaussian_nll_loss": bad(
            (x, x, -p), (x, x, -2.0), (x, x, grid(3) + 3), (x, x, p, False, 1e-6, "foo"), (x, x, p[:, :2])
        ),
        "hinge_embedding_loss": bad((x, grid(3)), (x, 1)),
        "margin_ranking_loss": bad((t + 0.5, t + 0.1, grid(3)), (x, x, 1)),
        "soft_margin_loss": bad((i, i), (x, grid(3)), (x, x, None, None, "foo")),
        "multi_margin_loss": bad(
            (x, t, 3),
            (x, t, 2, 1.0, grid(3)),
            (x, t, 2, 1.0, grid(1, 4)),
            (x, t + 5),
            (x, t - 3),
            (x, t + 0.5),
            (x, t[:1]),
            (x[None], t),
            (i, t),
            (x[:, :0], t),
        ),
        "multilabel_margin_loss": bad((x, i + 9), (x, (i % 4)[:, :2]), (x, x), (x[None], i[None]), (i, i + 9)),
        "multilabel_soft_margin_loss": bad((x, p, None, None, None, "foo"), (x, grid(3)), (x, p, grid(3))),
    }
