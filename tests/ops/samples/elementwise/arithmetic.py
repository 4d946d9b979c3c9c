"""Samples for arithmetic ops, from addition to powers."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers, positive


def samples():
    x, y, row, column = grid(2, 3), grid(2, 3) + 0.5, grid(3), grid(2, 1)
    z, w = complex_grid(2, 2), complex_grid(2, 2) * (0.5 - 1j)
    i, j = integers(2, 3), integers(2, 3, low=1, high=5)

    def binary(function, *more):
        """Samples with tensors, broadcasting, scalars, 0-dim tensors, promoting dtypes, complex and empty tensors."""
        pairs = [
            (x, y),
            (row, column),
            (x, 2.5),
            (x, 3),
            (x, np.asarray(1.5)),
            (x, j),
            (z, w),
            (z, x[:, :2]),
        ]
        pairs += [(i, 2.5), (i, j), (np.zeros((0, 3)), row), *more]
        return [Sample(pair, numpy=function) for pair in pairs]

    def scaled(function, alpha):
        return Sample((x, row), {"alpha": alpha}, lambda a, b, alpha: function(a, alpha * b))

    return {
        "add": [*binary(np.add, (2.5, x), (booleans(3), booleans(3)), (x, x)), scaled(np.add, 0.5)],
        "sub": [*binary(np.subtract, (2.5, x), (x, x)), scaled(np.subtract, 0.5)],
        "rsub": [
            Sample((x, y), numpy=lambda a, b: b - a),
            Sample((x, row), {"alpha": 0.5}, lambda a, b, alpha: b - alpha * a),
        ],
        "rsub.Scalar": [
            Sample((x, 2), numpy=lambda a, b: b - a),
            Sample((x, 2.5), {"alpha": -3}, lambda a, b, alpha: b - alpha * a),
        ],
        "mul": binary(np.multiply, (2.5, x), (x, x), (2j, z), (booleans(3), 2)),
        "div": binary(np.true_divide, (2.5, x), (x, x), (z, 2j), (i, 4), (j, j)),
        "div.floor": rounded("floor", np.floor_divide),
        "div.trunc": rounded("trunc", lambda a, b: np.trunc(a / b)),
        "neg": [Sample((a,), numpy=np.negative) for a in (x, z, i, np.asarray(1.5), np.zeros(0))],
        **powers(),
    }


def rounded(mode, function):
    x, p, i = grid(2, 3), grid(3) + 0.1, integers(2, 3, low=-9, high=9)
    cases = ((x, p), (x, 0.7), (x, np.asarray(0.3)), (i, 4), (i, np.array([2, -3, 1])), (i, 2.5), (i > 0, 2))
    numpy = lambda a, b, rounding_mode: function(a, b)  # noqa: E731
    given = [Sample(case, {"rounding_mode": mode}, numpy=numpy) for case in cases]
    return [*given, Sample((x, 0.0), {"rounding_mode": mode}, numpy=numpy, smooth=False)]


def errors():
    x, i, p, four = grid(2, 3), integers(2, 3), booleans(3), grid(4)

    def calls(*cases):
        return [Sample(args) for args in cases]

    return {
        "add": calls((x, four), (x, "a"), (x, None)),
        "sub": calls((x, four), (p, p), (p, True)),
        "mul": calls((x, four), (x, [1.0])),
        "div": calls((x, four), (x, {}))
        + [
            Sample(args, {"rounding_mode": mode})
            for mode in ("floor", "trunc", "foo")
            for args in ((i, 0), (i, i * 0), (p, p), (x * 1j, 2), (x, four))
        ],
        "neg": calls((p,), ("a",)),
        "pow": calls((x, four), (i, -1), (x, "a")),
        "add_": calls((i, 1.5), (grid(3), x), (i, x)),
        "div_": calls(
            (i, 2),
        ),
        "pow_": calls((i, 0.5), (grid(3), x)),
        "rsub": calls((p, p), (x, four)),
    }


def powers():
    x, base, row = grid(2, 3), positive(2, 3), grid(3)
    zero = np.array([0.0, 0.0, 2.0, -1.0])
    return {
        "pow": [
            *(Sample((x, n), numpy=np.power) for n in (2, 3, 0, 1, 2.0, 4.0)),
            *(Sample((base, n), numpy=np.power) for n in (-1, 0.5, 2.5, -1.5)),
            Sample((complex_grid(2, 2), 2), numpy=np.power),
            Sample((complex_grid(2, 2), 1.5), numpy=np.power),
            Sample((integers(2, 3), 2), numpy=np.power),
            Sample((zero, 2), numpy=np.power),
            Sample((zero, 0), numpy=np.power),
            Sample((zero, 1), numpy=np.power),
            Sample((np.zeros((0, 2)), 2), numpy=np.power),
        ],
        "pow.Tensor_Tensor": [
            Sample((base, row), numpy=np.power),
            Sample((base, x), numpy=np.power),
            Sample((base, np.asarray(2.0)), numpy=np.power),
            Sample((x, integers(2, 3, low=0, high=4)), numpy=np.power),
            Sample((complex_grid(2, 2), complex_grid(2, 2) * 0.5), numpy=np.power),
            Sample((zero, np.array([0.0, 2.0, 1.5, 2.0])), numpy=np.power, smooth=False),
            Sample((base, np.zeros(3)), numpy=np.power, oracle_grad=False),
            Sample((integers(3, low=1, high=4), np.array([0.5, 1.5, 2.5])), numpy=np.power),
        ],
        "pow.Scalar": [
            Sample((2.5, x), numpy=np.power),
            Sample((2, x), numpy=np.power),
            Sample((1.5, complex_grid(2, 2)), numpy=np.power),
            Sample((0.0, positive(3)), numpy=np.power),
        ],
    }
