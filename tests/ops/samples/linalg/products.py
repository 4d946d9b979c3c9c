"""Samples for products of matrices and vectors."""

import numpy as np
from ops.sample import Sample, booleans, complex_grid, grid, integers


def samples():
    return {**plain(), **stacked(), **added()}


def pairs(function, *operands):
    return [Sample(pair, numpy=function) for pair in operands]


def plain():
    a, b, tall, v, u = grid(2, 3), grid(3, 4), grid(4, 3), grid(3), grid(2)
    z, w = complex_grid(2, 3), complex_grid(3, 2)
    i, j = integers(2, 3), integers(3, 2, low=1)
    none, empty = np.zeros((2, 0)), np.zeros((0, 3))
    return {
        "mm": [
            *pairs(np.matmul, (a, b), (z, w), (i, j), (none, none.T), (empty, b), (a, tall.T)),
            Sample((a[:, :2], a[:, :2]), numpy=np.matmul),
        ],
        "mv": pairs(np.matmul, (a, v), (z, w[:, 0]), (i, j[:, 0]), (empty, v), (none, np.zeros(0))),
        "dot": pairs(np.dot, (v, v + 1), (z[0], w[:, 0]), (i[0], j[:, 0]), (np.zeros(0), np.zeros(0))),
        "outer": pairs(np.outer, (u, v), (z[0], w[0]), (u, i[0]), (np.zeros(0), v)),
        "ger": pairs(np.outer, (u, v)),
        "summed_products": [
            Sample((a, 2 * a + 1, axes), numpy=lambda x, y, axes: (x * y).sum(axes))
            for axes in (None, (0,), (1,), (0, 1))
        ],
        "gram": [Sample((x,), numpy=lambda x: x @ x.conj().T) for x in (a, z)],
        "inner": pairs(np.inner, (a, tall), (v, v + 1), (grid(2, 2, 3), a), (a, np.asarray(2.5))),
    }


def stacked():
    stack, more, v = grid(2, 2, 3), grid(2, 3, 2), grid(3)
    matrix, z = grid(3, 4), complex_grid(2, 2, 3)
    return {
        "bmm": pairs(
            np.matmul,
            (stack, more),
            (z, complex_grid(2, 3, 1)),
            (integers(2, 2, 3), integers(2, 3, 1)),
            (np.zeros((0, 2, 3)), np.zeros((0, 3, 2))),
            (stack, grid(2, 2, 3).transpose(0, 2, 1)),
        ),
        "matmul": pairs(
            np.matmul,
            (stack, more),
            (stack, matrix),
            (stack, grid(4, 3).T),
            (stack, v),
            (v, more),
            (grid(2, 1, 2, 3), more),
            (stack[:1], more),
            (z, complex_grid(3, 2)),
            (z, complex_grid(3)),
            (integers(2, 2, 3), integers(3, 2)),
            (np.zeros((2, 2, 0)), np.zeros((0, 3))),
            (np.zeros((0, 2, 3)), v),
        ),
        # Other shapes give nodes other than the row's.
        "matmul.plain": pairs(
            np.matmul,
            (grid(2, 3), matrix),
            (grid(2, 3), v),
            (v, matrix),
            (complex_grid(3), complex_grid(3, 2)),
            (v, v + 1),
        ),
        # PyTorch's last node depends on which operand requires grad.
        "matmul.matrix_stack": [Sample((grid(2, 3), more), numpy=np.matmul, oracle_grad=False)],
    }


def added():
    a, b, v, stack, more = grid(2, 3), grid(3, 4), grid(3), grid(2, 2, 3), grid(2, 3, 2)
    z, w = complex_grid(2, 3), complex_grid(3, 2)
    nan = np.full(2, np.nan)

    def sums(bases, *factors):
        def numpy(base, a, b, beta=1, alpha=1):
            return alpha * (a @ b) + (beta * base if beta else 0)

        scales = ({}, {"beta": 2, "alpha": -3}, {"beta": 0.5}, {"alpha": 1.5}, {"beta": 0})
        return [
            *(Sample((base, *factors), numpy=numpy) for base in bases),
            *(Sample((bases[0], *factors), scale, numpy) for scale in scales[1:]),
        ]

    def linear(a, weight, bias):
        return a @ weight.T + bias

    return {
        "addmm": [
            *sums((grid(2, 4), grid(4), grid(2, 1), np.asarray(0.5)), a, b),
            *sums((z[:, :2],), z, w),
            *sums((integers(2, 2),), integers(2, 3), integers(3, 2))[:2],
            Sample((nan, a, b[:, :2]), {"beta": 0}, lambda c, a, b, beta: a @ b, grad=False),
        ],
        "addmv": sums((grid(2), grid(1), np.asarray(0.5)), a, v) + sums((z[:, 0],), z, w[:, 0]),
        "baddbmm": sums((grid(2, 2, 2), grid(2), grid(2, 1)), stack, more),
        "linear": [
            Sample((a, grid(4, 3), grid(4)), numpy=linear),
            Sample((a, grid(4, 3), np.asarray(0.5)), numpy=linear),
            Sample((z, w.T, complex_grid(2)), numpy=linear),
            Sample((integers(2, 3), integers(4, 3), integers(4)), numpy=linear),
            Sample((np.zeros((0, 3)), grid(4, 3), grid(4)), numpy=linear),
        ],
        "linear.other_shapes": [
            Sample((stack, grid(4, 3), grid(4)), numpy=linear),
            Sample((v, grid(4, 3), grid(4)), numpy=linear),
            Sample((a, grid(4, 3)), numpy=lambda a, w: a @ w.T),
            Sample((stack, grid(4, 3)), numpy=lambda a, w: a @ w.T),
            Sample((v, grid(4, 3)), numpy=lambda a, w: a @ w.T),
            Sample((a, v), numpy=lambda a, w: a @ w.T),
        ],
    }


# --- Invalid input -----------------------------------------------------------------------------


def errors():
    a, b, v, u, stack = grid(2, 3), grid(3, 4), grid(3), grid(2), grid(2, 2, 3)
    f, i, t = a.astype(np.float32), integers(3, 4), booleans(2, 2)
    base = grid(4)

    def bad(*cases):
        return [Sample(case) for case in cases]

    return {
        "mm": bad((a, a), (a, v), (v, a), (f, b), (a, i), (t, t), (a, 3), (3, a), (stack, a)),
        "mv": bad((a, u), (v, a), (a, a), (f, v), (a, 3)),
        "dot": bad((v, u), (a, v), (v, v.astype(np.float32)), (t[0], t[0]), (v, 3)),
        "bmm": bad((stack, stack), (stack, a), (a, stack), (stack, grid(3, 3, 2)), (stack, 3)),
        "outer": bad((a, v), (v, a)),
        "inner": bad((a, b), (v, u)),
        "matmul": bad(
            (a, a),
            (a, u),
            (v, a),
            (v, u),
            (a, np.asarray(2.0)),
            (np.asarray(2.0), a),
            (stack, stack),
            (stack, grid(3, 3, 2)),
            (stack, grid(4, 3)),
            (stack, u),
            (v, stack),
            (f, b),
            (stack, i.astype(np.int32)),
            (a, 3),
        ),
        "addmm": bad((u, a, b), (base, a, a), (base, a, v), (base, v, b), (1, a, b), (base, f, b))
        + bad((base.astype(np.float32), a, b), (grid(5, 2, 4), a, b)),
        "addmv": bad((v, a, v), (u, a, u), (u, v, v), (a, a, v), (u.astype(np.float32), a, v)),
        "baddbmm": bad(
            (grid(3), stack, grid(2, 3, 4)),
            (base, stack, stack),
            (base.astype(np.float32), stack, grid(2, 3, 4)),
            (base, stack, grid(2, 3, 4).astype(np.float32)),
        ),
        "linear": bad(
            (a, grid(4, 5), grid(4)),
            (a, grid(4, 5)),
            (stack, grid(4, 5), grid(4)),
            (v, grid(4, 5), grid(4)),
            (v, grid(4, 5)),
            (f, grid(4, 3), grid(4)),
            (a, grid(4, 3), grid(4).astype(np.float32)),
            (a, grid(4, 3), grid(3)),
            (np.asarray(1.0), grid(4, 3), grid(4)),
            (a, grid(4, 3, 2), grid(4)),
            (a, grid(4, 3), 3),
            (3, grid(4, 3), grid(4)),
        ),
    }
