"""Samples for activation functions, most of which are in nn.functional."""

import math

import numpy as np
from ops.sample import Sample, complex_grid, grid, integers

INF, NAN = math.inf, math.nan


def samples():
    return {**activations(), **rectifiers(), **of_two()}


KINK = np.array([-1.5, 0.0, 2.0])


def unary(function, *arguments, steps=(KINK,), oracle_grad=False, **named):
    """Samples of one tensor and other arguments; the tensors in `steps` have no derivative."""

    def numpy(a, *rest, **named):
        return function(a, *rest, **named)

    plain = (grid(2, 3), np.asarray(0.7), np.zeros((2, 0)), 10 * grid(2, 3))
    special = np.array([-INF, INF, NAN, 0.0])
    return [
        *(Sample((a, *arguments), named, numpy) for a in plain),
        *(Sample((a, *arguments), named, numpy, smooth=False, oracle_grad=oracle_grad) for a in steps),
        Sample((special, *arguments), named, smooth=False, oracle_grad=False, grad=False),
    ]


def activations():
    erf = np.vectorize(math.erf, otypes=[float])

    def leaky_relu(a, slope=0.01):
        return np.where(a > 0, a, slope * a)

    def elu(a, alpha=1.0):
        return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0)))

    def gelu(a, approximate="none"):
        if approximate == "tanh":
            return a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) / 2
        return a * (1 + erf(a / math.sqrt(2))) / 2

    def softplus(a, beta=1, threshold=20):
        return np.where(a * beta > threshold, a, np.log1p(np.exp(a * beta)) / beta)

    return {
        "leaky_relu": unary(leaky_relu) + unary(leaky_relu, 0.3) + unary(leaky_relu, -0.5),
        "elu": unary(elu) + unary(elu, 0.5),
        "gelu": without_infinity(unary(gelu, steps=()) + unary(gelu, steps=(), approximate="tanh")),
        "silu": [
            *without_infinity(unary(lambda a: a / (1 + np.exp(-a)), steps=())),
            Sample((complex_grid(2, 2),), numpy=lambda a: a / (1 + np.exp(-a)), grad=False),
        ],
        "mish": without_infinity(unary(lambda a: a * np.tanh(np.logaddexp(a, 0)), steps=())),
        "tanhshrink": without_infinity(unary(lambda a: a - np.tanh(a), steps=())),
        "softsign": [
            *without_infinity(unary(lambda a: a / (1 + np.abs(a)), steps=(np.array([0.0]),))),
            Sample((integers(2, 3),), numpy=lambda a: a / (1 + np.abs(a))),
        ],
        "softplus": unary(softplus) + unary(softplus, 2, 3),
        "logsigmoid": unary(lambda a: -np.log1p(np.exp(-a)), steps=()),
    }


def without_infinity(samples):
    """The samples without those for which PyTorch returns NaN at infinity."""
    return [sample for sample in samples if np.isfinite(sample.args[0]).all()]


def rectifiers():
    edges = np.array([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0, -0.5, 0.5])
    whole = integers(2, 3)

    def elu(a, alpha=1.0, scale=1.0, slope=1.0):
        return np.where(a > 0, scale * a, scale * alpha * np.expm1(slope * np.minimum(a, 0)))

    def at_edges(function, *arguments, **named):
        return unary(function, *arguments, steps=(edges,), oracle_grad=True, **named)

    def hardtanh(a, low=-1.0, high=1.0):
        return np.clip(a, low, high)

    def hardsigmoid(a):
        return np.clip(a + 3, 0, 6) / 6

    def threshold(a, bound, value):
        return np.where(a <= bound, value, a).astype(a.dtype)

    def hardshrink(a, bound=0.5):
        return np.where(np.abs(a) > bound, a, 0)

    def softshrink(a, bound=0.5):
        return np.sign(a) * np.maximum(np.abs(a) - bound, 0)

    def middle(a, low=0.125, high=1 / 3, training=False):
        return np.where(a > 0, a, a * (low + high) / 2)

    return {
        "selu": at_edges(lambda a: elu(a, 1.6732632423543772, 1.0507009873554805)),
        "celu": [
            *at_edges(lambda a, alpha=1.0: elu(a, alpha, 1.0, 1 / alpha)),
            *unary(lambda a, alpha: elu(a, alpha, 1.0, 1 / alpha), 0.5),
            *unary(lambda a, alpha: elu(a, alpha, 1.0, 1 / alpha), -2),
        ],
        "relu6": [*at_edges(lambda a: np.clip(a, 0, 6)), Sample((whole,), numpy=lambda a: np.clip(a, 0, 6))],
        "hardtanh": [
            *at_edges(hardtanh),
            *at_edges(hardtanh, -3, 0.5),
            *at_edges(hardtanh, 1.0, 1.0),
            Sample((whole, -2, 3), numpy=hardtanh),
            Sample((np.array([1, 7], np.uint8), 2, 3), numpy=hardtanh),
        ],
        "threshold": [
            *at_edges(threshold, 0.5, 7.0),
            *at_edges(threshold, 0, -1),
            Sample((whole, 1, 2), numpy=threshold),
            Sample((whole, 1.5, 2.5), numpy=lambda a, b, v: threshold(a, 1, 2)),
        ],
        "hardsigmoid": at_edges(hardsigmoid),
        "hardswish": without_infinity(at_edges(lambda a: a * hardsigmoid(a))),
        "hardshrink": at_edges(hardshrink) + at_edges(hardshrink, 1.0) + unary(hardshrink, -1),
        "softshrink": at_edges(softshrink) + at_edges(softshrink, 1) + unary(softshrink, 0.0),
        "rrelu": at_edges(middle) + at_edges(middle, 0.1, 0.1) + unary(middle, 0.2, 0.2, True),
    }


def of_two():
    x, images, edges = grid(2, 3), grid(2, 3, 2, 2), np.array([[-1.0, 0.0], [0.0, 2.0]])

    def glu(a, dim=-1):
        a, b = np.split(a, 2, dim)
        return a / (1 + np.exp(-b))

    def prelu(a, w):
        w = w.reshape(-1, *(1,) * (a.ndim - 2)) if w.size > 1 else w.reshape(())
        return np.where(a > 0, a, a * w)

    def softmin(a, dim):
        e = np.exp(-a)
        return e / e.sum(dim, keepdims=True)

    return {
        "glu": [
            *(Sample((a,), numpy=glu) for a in (grid(4), grid(3, 2), np.zeros((2, 0)), grid(2, 2, 4))),
            *(Sample((grid(2, 4, 3), dim), numpy=glu) for dim in (0, 1, -2)),
        ],
        "prelu": [
            *(Sample((a, w), numpy=prelu) for a in (x, images, grid(2, 3, 1)) for w in (grid(3), grid(1))),
            *(Sample((a, w), numpy=prelu) for a in (x, grid(4), np.asarray(-0.7)) for w in (grid(1), np.asarray(0.3))),
            Sample((np.zeros((0, 3)), grid(3)), numpy=prelu),
            Sample((edges, grid(2)), numpy=prelu, smooth=False, oracle_grad=False),
        ],
        "softmin": [Sample((a, dim), numpy=softmin) for a in (x, images) for dim in (0, 1, -1)],
        "tied": [Sample((a, 2 * a), numpy=lambda g, _: g) for a in (x, images, np.zeros((2, 0)))],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    x, i, z, b = grid(2, 4), integers(2, 4), complex_grid(2, 2), np.array([True, False])

    def bad(*cases, **named):
        return [Sample(case, named) for case in cases]

    return {
        "leaky_relu": bad((i,), ([1.0],), (z,), (x, "a")),
        "elu": bad((i,), (x, "a"), (z,)),
        "gelu": bad((i,), (z,)) + bad((x,), approximate="foo"),
        "silu": bad((i,)),
        "mish": bad((i,), (z,), (3,)),
        "softplus": bad((i,), (z,)),
        "logsigmoid": bad((i,)),
        "glu": bad((i,), (x, 2), (x[:, :3],), (np.asarray(1.0),), (x, "a")),
        "selu": bad((i,), (z,), ("a",)),
        "celu": bad((i,), (z,), ([1.0],), (x, 0.0), (x, "a")),
        "relu6": bad((z,), (b,)),
        "hardtanh": bad((z,), (b,), (x, 2, 1), (x, "a"), (np.array([3], np.uint8), -1, 1)),
        "hardsigmoid": bad((i,), (z,)),
        "hardswish": bad((i,), (z,), ([1.0],)),
        "threshold": bad((b, 1, 0), (z, 1, 1), (x, "a", 1), (x, 1, "b"), ("a", 1, 1)),
        "hardshrink": bad((i,), (z,)),
        "softshrink": bad((i,), (x, -1)),
        "rrelu": bad((x, 0.5, 0.1), (x, 0.1, 0.2, 1), ("a",), (i,), (i, 0.1, 0.2, True)),
        "prelu": bad(
            (x, np.ones(3)),
            (x, np.ones((2, 2))),
            (x, np.ones(4, np.float32)),
            (np.asarray(1.0), np.ones(2)),
            (np.ones(4), np.ones(4)),
            (x, 1),
            (1, x),
            (i, i[0]),
        ),
        "softmin": bad((i, 1), (x, 3)),
    }
