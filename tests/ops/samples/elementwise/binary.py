"""Samples for elementwise functions of two or three operands beyond arithmetic."""

import math

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers, positive

NAN, INF = math.nan, math.inf


def calls(*cases):
    return [Sample(*case) if case and isinstance(case[0], tuple) else Sample(case) for case in cases]


def errors():
    x, z, i, p, four = grid(2, 3), complex_grid(2, 3), integers(2, 3), booleans(2, 3), grid(4)
    single = x.astype(np.float32)
    pair = [(x, None), (x, "a"), (x, four)]
    return {
        "copysign": calls(*pair, (z, z), (1.0, x)),
        "nextafter": calls(*pair, (x, 1.0), (i, i), (z, z)),
        "heaviside": calls(*pair, (x, 1.0), (z, z), (x, i)),
        "ldexp": calls(*pair, (x, 2)),
        "logaddexp": calls(*pair, (i, i), (x, 1.0)),
        "logaddexp2": calls(*pair, (i, i), (z, z)),
        "xlogy": calls(*pair, (1.0, 1.0), (z, z)),
        "float_power": calls((x, None), (x, "a"), (2, 2), (x, four)),
        "lerp": calls((x, x, "a"), (x, 1.0, 0.5), (x, single, 0.5), (x, x, single), (i, i, 1), (x, four, 0.5)),
        "addcmul": [*calls((x, x, 1.0), (x, four, x)), Sample((i, i, i), {"value": 1j})],
        "addcdiv": calls((x, i, i), (x, x, 1.0), (x, four, x)),
        "addcmul_": calls((i, x, x), (grid(3), x, x)),
        "dist": calls((x, 1.0), (i, i), (x, four)),
        "gcd": calls((x, x), (p, p), (i, 2), (i, integers(4))),
        "lcm": calls((x, x), (p, p), (i, 2)),
        "bitwise_left_shift": calls((x, i), (p, p), (i, integers(4)), (i, None)),
        "bitwise_right_shift": calls((x, i), (p, p), (1, 2)),
        "float_power_": calls((i, 2), (single, 2)),
    }


def samples():
    x, y, p, z, i = grid(2, 3), grid(2, 3)[::-1] + 0.1, positive(2, 3), complex_grid(2, 3), integers(2, 3)
    zero, some = np.array([0.0, -0.0, 1.0, -2.0]), np.array([1.0, -1.0, -0.0, 0.0])
    edge, other = np.array([0.0, 0.0, 1.0, NAN, INF]), np.array([0.0, 2.0, 0.0, 1.0, INF])
    scalar = np.asarray(0.7)

    def pairs(function, *cases, steps=(), **more):
        return [Sample(case, numpy=function, **more) for case in cases] + [
            Sample(case, numpy=function, smooth=False, **more) for case in steps
        ]

    # PyTorch's gradient for equal infinities is NaN
    infinite = [Sample((edge, other), smooth=False, oracle_grad=False)]

    def xlogy(a, b):
        return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))

    def lerp(a, b, w):
        return a + w * (b - a)

    def add_product(a, b, c, value=1):
        return a + value * b * c

    def add_quotient(a, b, c, value=1):
        return a + value * b / c

    u = np.array([1, 3, 200, 255], np.uint8)
    shifts = np.array([0, 1, 7, 9])
    both = lambda f: lambda a, b: f(np.asarray(a), np.asarray(b))  # noqa: E731
    return {
        "copysign": pairs(np.copysign, (x, y), (i, y), (scalar, x), steps=[(zero, some)]),
        "copysign.Scalar": pairs(np.copysign, (x, -1.0), (i, 2), (x, -0.0), (p, True), steps=[(zero, -1)]),
        "nextafter": pairs(np.nextafter, (x, y), steps=[(zero, some), (edge, edge)]),
        "heaviside": pairs(np.heaviside, (x, y), (zero, some), (i, i), (zero, scalar), grad=False),
        "ldexp": pairs(lambda a, b: a * np.exp2(b), (x, y), (x, i), (i, i))
        + [Sample((z, y), numpy=lambda a, b: a * np.exp2(b), oracle_grad=False)],
        "logaddexp": pairs(np.logaddexp, (x, y), (x * 500, y * 500), (scalar, x)) + calls((z, z)) + infinite,
        "logaddexp2": pairs(np.logaddexp2, (x, y), (x * 500, y * 500)) + infinite,
        "xlogy": pairs(xlogy, (x, p), (i, p), (i, i * i), (0.0, p), (2, p), (x, 2.0))
        # PyTorch's gradient is NaN where the value is 0 by definition
        + [Sample((edge, other), numpy=xlogy, smooth=False, oracle_grad=False)],
        "float_power": pairs(both(np.float_power), (p, x), (p, 2), (2, x), (i, 2), (z, 2), single=False),
        "lerp.Scalar": pairs(lerp, (x, y, 0.3), (x, y, 2), (x, scalar, -1.5), (z, z[::-1], 0.25 + 1j), (x, y, 0.75)),
        "lerp": pairs(lerp, (x, y, p), (x, y, scalar), (z, z[::-1], z), (scalar, x, y)),
        "addcmul": pairs(add_product, (x, y, p), (x, y, scalar), (i, i, i), (z, z, z), (x, i, i))
        + [Sample((x, y, p), {"value": -0.5}, add_product), Sample((i, i, i), {"value": 2}, add_product)],
        "addcdiv": pairs(add_quotient, (x, y, p), (x, scalar, p), (z, z, z), (x, i, p))
        + [Sample((x, y, p), {"value": -0.5}, add_quotient)],
        "dist": pairs(lambda a, b, p=2: np.linalg.norm((a - b).ravel(), p), (x, y), (x, y, 1), (x, y, 3), (x, scalar))
        + [
            Sample((z, z * 2)),
            Sample((x, y, 0), oracle_grad=False),
            Sample((x, x), smooth=False),
            Sample((x, y, INF), smooth=False),
        ],
        "gcd": pairs(np.gcd, (i, i[::-1]), (i, i * 0), (u, u[::-1])),
        "lcm": pairs(np.lcm, (i, i[::-1]), (i, i * 0)),
        "bitwise_left_shift": pairs(np.left_shift, (i, abs(i)), (i, 2), (3, abs(i)))
        + calls((u, shifts), (i, -1), (i, 70)),
        "bitwise_right_shift": pairs(np.right_shift, (i, abs(i)), (i, 2), (300, abs(i))) + calls((u, shifts), (i, 70)),
    }
