"""Samples for elementwise functions: unary functions, rounding, selection, comparison, logic."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers, positive

NAN, INF = math.nan, math.inf


def samples():
    return {**functions(), **backwards(), **rounding(), **selection(), **comparisons(), **logic()}


def errors():
    x, z, i, p = grid(2, 3), complex_grid(2, 2), integers(2, 3), booleans(2, 3)
    four = grid(4)

    def calls(*cases):
        return [Sample(args, {}) for args in cases]

    return {
        **{name: calls(("a",), (1.0,)) for name in ("exp", "relu", "sgn", "floor", "isnan", "logical_not")},
        "exp_": calls((i,)),
        "sqrt_": calls((p,)),
        "relu": calls((p,), (z,), (None,)),
        "abs": calls((p,), (None,)),
        "abs_": calls((z,)),
        "sign": calls((z,)),
        "erf": calls((z,)),
        "positive": calls((p,)),
        "floor": calls((z,), (p,), (1.5,)),
        "ceil": calls((z,), (p,)),
        "trunc": calls((z,), (p,)),
        "frac": calls((z,), (i,)),
        "round": [*calls((z,), (p,)), Sample((i,), {"decimals": 2})],
        "floor_divide": calls((i, 0), (p, p), (z, z), (x, four), (i, np.zeros(3, int))),
        "remainder": calls((i, 0), (p, p), (z, z), (x, four)),
        "fmod": calls((i, 0), (p, p), (z, z), (x, four)),
        "floor_divide_": calls((i, 1.5), (grid(3), x)),
        "remainder_": calls((i, 1.5)),
        "maximum": calls((x, 1.0), (z, z), (x, four), (1.0, x)),
        "fmin": calls((x, None), (z, z), (x, four)),
        "clamp": calls((x,), (x, "a"), (x, 0.0, x), (x, x, 1.0), (z, 0), (x, four), ("a", 0)),
        "clamp_": calls((i, 0.5), (grid(3), x)),
        "where": calls((i, x, x), (p, x), (True, x, x), (booleans(4), x, x)),
        "eq": calls((x, None), (x, "a"), (x, four), (i, 2**70)),
        "lt": calls((z, z), (x, [1]), (z, 1), (x, 1j)),
        "isclose": [
            *calls((x, i), (x, 1.0), (x, four)),
            Sample((x, x), {"rtol": -1}),
            Sample((x, x), {"atol": -0.5}),
        ],
        "allclose": calls((x, i), (x, four)),
        "equal": calls((x, 1.0)),
        "logical_and": calls((x, 1), (1, x), (x, four)),
        "bitwise_and": calls((x, x), (i, 1.5), (i, integers(4))),
        "bitwise_not": calls((x,)),
        "__invert__": calls((x,)),
        "bitwise_or_": calls((p, i)),
    }


# --- Unary functions ---------------------------------------------------------------------------


def unary(function, *arrays, steps=()):
    """Samples of one array each; the arrays in `steps` have no derivative, or no simple one."""
    return [Sample((a,), numpy=function) for a in arrays] + [Sample((a,), numpy=function, smooth=False) for a in steps]


def functions():
    x, p, z, i = grid(2, 3), positive(2, 3), complex_grid(2, 2), integers(2, 3, low=1)
    scalar, empty = np.asarray(0.7), np.zeros((2, 0))
    special = np.array([0.0, 1.0, INF, NAN])
    everywhere, above_zero = (x, z, i, scalar, empty), (p, z, i, scalar, empty)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731
    kink = np.array([-1.5, 0.0, 2.0])
    return {
        "exp": unary(np.exp, *everywhere, booleans(3), steps=[special]),
        "exp2": unary(lambda a: np.exp(a * math.log(2)), *everywhere),
        "expm1": unary(np.expm1, *everywhere),
        "log": unary(np.log, *above_zero, booleans(3), steps=[special, -special]),
        "log2": unary(np.log2, *above_zero),
        "log10": unary(np.log10, *above_zero),
        "log1p": unary(np.log1p, *above_zero),
        "sqrt": unary(np.sqrt, *above_zero, steps=[special]),
        "rsqrt": unary(lambda a: 1 / np.sqrt(a), *above_zero, steps=[special]),
        "reciprocal": unary(lambda a: 1 / a, *above_zero, x),
        "square": unary(np.square, *everywhere, kink),
        "sin": unary(np.sin, *everywhere),
        "cos": unary(np.cos, *everywhere),
        "tan": unary(np.tan, x * 0.5, z, i, scalar, empty),
        "tanh": unary(np.tanh, *everywhere, steps=[special]),
        "sigmoid": unary(sigmoid, *everywhere, steps=[special]),
        "relu": unary(lambda a: np.maximum(a, 0), x, i, scalar, empty, steps=[kink, special]),
        "erf": unary(np.vectorize(math.erf, otypes=[float]), x, i, scalar, empty),
        "abs": unary(np.abs, *everywhere, steps=[kink, kink + 0j]),
        "sign": unary(np.sign, x, i, scalar, empty, steps=[kink]),
        "sgn": unary(np.sign, *everywhere, steps=[kink, kink + 0j]),
        "conj_physical": unary(np.conj, z),
        "positive": unary(np.positive, x, z, i),
    }


def backwards():
    """Samples for the backward ops that rules are built from."""
    g, y, h, z = grid(2, 3), grid(2, 3) * 0.4, complex_grid(2, 2), complex_grid(2, 2) * 0.4
    return {
        "tanh_backward": [
            Sample((g, y), numpy=lambda g, y: g * (1 - y * y)),
            Sample((h, z), numpy=lambda g, y: g * np.conj(1 - y * y)),
        ],
        "sigmoid_backward": [
            Sample((g, y), numpy=lambda g, y: g * y * (1 - y)),
            Sample((h, z), numpy=lambda g, y: g * np.conj(y * (1 - y))),
        ],
        "sigmoid_of_saved": unary(lambda a: 1 / (1 + np.exp(-a)), g, h),
        "tanh_of_saved": unary(np.tanh, g, h),
        "threshold_backward": [Sample((g, y), numpy=lambda g, y: g * (y > 0))],
        "real_part": unary(np.real, complex_grid(2, 3), complex_grid(), np.zeros((2, 0), complex)),
    }


# --- Rounding ----------------------------------------------------------------------------------


def rounding():
    x, i, halves = grid(2, 3), integers(2, 3), np.array([-1.5, -0.5, 0.5, 1.5, 2.5])
    a, b, whole = grid(2, 3) * 3, grid(3) + 0.1, integers(2, 3, low=1)

    def binary(function, **more):
        pairs = [(a, b), (b, a), (i, whole), (a, whole), (np.zeros((0, 3)), b)]
        return [Sample(pair, numpy=function, **more) for pair in pairs]

    def by_number(function, **more):
        pairs = [(a, 0.7), (a, -2), (i, 2), (i, 0.6), (np.asarray(2.2), 0.7)]
        return [Sample(pair, numpy=function, **more) for pair in pairs]

    def first_number(function, **more):
        return [Sample((3.5, b), numpy=function, **more), Sample((7, whole), numpy=function)]

    return {
        "floor": unary(np.floor, x, i, np.zeros(0), steps=[halves * 2]),
        "ceil": unary(np.ceil, x, i, np.zeros(0), steps=[halves * 2]),
        "trunc": unary(np.trunc, x, i, np.zeros(0), steps=[halves * 2]),
        "frac": unary(lambda a: a - np.trunc(a), x, np.zeros(0), steps=[halves * 2]),
        "round": unary(np.round, x, i, np.zeros(0), steps=[halves]),
        "round.decimals": [Sample((x,), {"decimals": n}, np.round) for n in (1, 2, -1)],
        "floor_divide": [
            *binary(np.floor_divide, grad=False),
            *by_number(np.floor_divide, grad=False),
            *first_number(np.floor_divide, grad=False),
        ],
        "remainder": by_number(np.remainder),
        "remainder.Tensor": [*binary(np.remainder), *first_number(np.remainder, oracle_grad=False)],
        "fmod": by_number(np.fmod),
        "fmod.Tensor": binary(np.fmod),
    }


# --- Selection ---------------------------------------------------------------------------------


def selection():
    x, y, row, i = grid(2, 3), grid(2, 3)[::-1] + 0.1, grid(3), integers(3)
    ties = np.array([1.0, 2.0, NAN, 1.0]), np.array([1.0, 1.0, 0.0, NAN])
    pairs = [(x, y), (x, row), (row, grid(2, 1)), (x, i), (i, i[::-1]), (np.zeros((0, 3)), row)]

    def larger(function):
        return [Sample(pair, numpy=function) for pair in pairs] + [Sample(ties, numpy=function, smooth=False)]

    return {
        "maximum": larger(np.maximum),
        "minimum": larger(np.minimum),
        "fmax": larger(np.fmax),
        "fmin": larger(np.fmin),
        **bounds(),
        **conditions(),
    }


def bounds():
    x, row, i = grid(2, 3), grid(3), integers(3)
    low, high = row * 0.3 - 0.6, row * 0.2 + 0.5
    edges = np.array([0.0, 1.0, 2.0, -1.0, NAN])
    on_edges = (
        np.array([0.0, 1.0, 2.0, 0.5, 0.5, NAN, 0.0]),
        np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]),
        np.array([1.0, 1.0, 1.0, 0.0, 0.5, 1.0, 1.0]),
    )

    def clamp(a, min=None, max=None):
        a = a if min is None else np.maximum(a, min)
        return a if max is None else np.minimum(a, max)

    return {
        "clamp": [
            Sample((x, -1, 1.2), numpy=clamp),
            Sample((x,), {"max": 0.4}, clamp),
            Sample((x,), {"min": 0.4}, clamp),
            Sample((x, 1, -1), numpy=clamp),
            Sample((i, 0, 2), numpy=clamp),
            Sample((i, 0.5), numpy=clamp),
            Sample((np.asarray(0.3), 0.5), numpy=clamp),
            Sample((np.zeros(0), 0.5), numpy=clamp),
            Sample((edges, 0, 1), numpy=clamp, smooth=False),
        ],
        "clamp.Tensor": [
            Sample((x, low, high), numpy=clamp),
            Sample((x, high, low), numpy=clamp),
            Sample((x, low), numpy=clamp),
            Sample((x,), {"max": high}, clamp),
            Sample((row, grid(2, 1) - 1, np.asarray(0.9)), numpy=clamp, oracle_grad=False),
            Sample((i, np.asarray(0.5)), numpy=clamp),
            Sample(on_edges, numpy=clamp, smooth=False),
        ],
        "clamp_min": [
            Sample((x, 0.3), numpy=np.maximum),
            Sample((edges, 0), numpy=np.maximum, smooth=False),
        ],
        "clamp_min.Tensor": [
            Sample((x, row), numpy=np.maximum),
            Sample((edges, edges), numpy=np.maximum, smooth=False),
        ],
        "clamp_max": [
            Sample((x, 0.3), numpy=np.minimum),
            Sample((edges, 0), numpy=np.minimum, smooth=False),
        ],
        "clamp_max.Tensor": [
            Sample((x, row), numpy=np.minimum),
            Sample((edges, edges), numpy=np.minimum, smooth=False),
        ],
    }


def conditions():
    x, y, mask = grid(2, 3), grid(2, 3) + 5, booleans(2, 3)
    complex_and_real = booleans(2, 2), complex_grid(2, 2), grid(2, 2)
    return {
        "where": [
            Sample((mask, x, y), numpy=np.where),
            Sample((mask, x, 0.0), numpy=np.where),
            Sample((mask, 2, y), numpy=np.where),
            Sample((mask, 1, 0.5), numpy=np.where),
            Sample((booleans(3), x, np.asarray(1.5)), numpy=np.where),
            Sample((mask, x, integers(2, 3)), numpy=np.where),
            Sample(complex_and_real, numpy=np.where, oracle_grad=False),
            Sample(
                (np.array([True, False, True]), np.array([1.0, NAN, INF]), 0.0),
                numpy=np.where,
                smooth=False,
            ),
        ],
        "where.indices": [
            Sample((mask,), numpy=np.where),
            Sample((x,), numpy=np.where, grad=False),
        ],
    }


# --- Comparison and logic ----------------------------------------------------------------------


def comparisons():
    x, row, i = np.round(grid(2, 3)), np.round(grid(3)), integers(2, 3)
    special = np.array([0.0, NAN, INF, -INF]), np.array([-0.0, NAN, INF, INF])

    def compare(function, *more):
        pairs = [
            (x, row),
            (x, 1),
            (x, 1.0),
            (i, 1),
            (i, 0.5),
            (x, i),
            special,
            (booleans(3), True),
            (np.zeros((0, 3)), row),
            (np.asarray(1.0), np.asarray(1)),
            *more,
        ]

        def wrapped(a, number):  # the scalar adopts the tensor's dtype
            return function(a, np.uint8(number % 256))

        bytes_ = [Sample((np.array([0, 44, 255], np.uint8), n), numpy=wrapped) for n in (300, -1)]
        return [Sample(pair, numpy=function) for pair in pairs] + bytes_

    close = np.array([1.0, 1.0 + 1e-6, NAN, INF, -INF]), np.array([1.0 + 1e-7, 2.0, NAN, INF, INF])
    return {
        "eq": compare(np.equal, (complex_grid(2, 2), complex_grid(2, 2))),
        "ne": compare(np.not_equal, (complex_grid(2, 2), complex_grid(2, 2))),
        "lt": compare(np.less),
        "le": compare(np.less_equal),
        "gt": compare(np.greater),
        "ge": compare(np.greater_equal),
        "isclose": [
            Sample(close, numpy=np.isclose),
            Sample(close, {"equal_nan": True}, np.isclose),
            Sample(close, {"rtol": 0.7, "atol": 0.1}, np.isclose),
            Sample((i, i + 1), {"rtol": 0.4}, np.isclose),
        ],
        "allclose": [Sample(close, numpy=np.allclose), Sample((x, x), numpy=np.allclose)],
        "equal": [
            Sample((x, x), numpy=np.array_equal),
            Sample((x, row), numpy=np.array_equal),
            Sample(close[:1] * 2, numpy=np.array_equal),
        ],
        "isnan": unary(np.isnan, close[0], i, complex_grid(2), booleans(2)),
        "isinf": unary(np.isinf, close[0], i, complex_grid(2), booleans(2)),
        "isfinite": unary(np.isfinite, close[0], i, complex_grid(2), booleans(2)),
    }


def logic():
    p, q, i, j = booleans(2, 3), booleans(3), integers(2, 3), integers(3, low=0)
    x = np.round(grid(2, 3))

    def logical(function):
        pairs = [(p, q), (i, j), (x, q), (np.asarray(True), q), (np.zeros((0, 3), bool), q)]
        return [Sample(pair, numpy=function) for pair in pairs]

    def bitwise(function):
        return [Sample(pair, numpy=function) for pair in [(p, q), (i, j), (i, 3), (p, True), (p, 3), (i, q), (5, i)]]

    return {
        "logical_and": logical(np.logical_and),
        "logical_or": logical(np.logical_or),
        "logical_xor": logical(np.logical_xor),
        "logical_not": unary(np.logical_not, p, i, x, complex_grid(2)),
        "bitwise_and": bitwise(np.bitwise_and),
        "bitwise_or": bitwise(np.bitwise_or),
        "bitwise_xor": bitwise(np.bitwise_xor),
        "bitwise_not": unary(np.bitwise_not, p, i, np.arange(3, dtype=np.uint8)),
    }
