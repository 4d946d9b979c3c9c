"""No gradient is NaN, infinite or 0 because of a branch that was not taken or a number that was rounded.

A formula with `where`, a mask or a saturating factor may be right, and its derivative 0 * inf. For each op in the
registry, derivatives at a special operand are compared with those at both of its neighbors: where these agree, there is
a limit, which has to be found at the operand as well.
"""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from ops.calls import DIFFERENTIABLE, SAMPLES, Call, flags_of

import cygrad
import cygrad.nn.functional as F
from cygrad._core.graph.opdef import ELEMENTWISE

STEPS = {0.0: 1e-7, 1.0: 1e-7, -100.0: 1e-5, 1e30: 1e20}
KINDS = "result", "gradient", "recorded gradient", "second gradient"
POLES = "has a pole at some of these operands"
SINGULAR = "the matrix is singular"
KINK = "the derivative jumps"
EXCEPTIONS = {
    0.0: {
        "copysign.Scalar": KINK,
        "fmod.Tensor": "a remainder of division by 0",
        "i0e": KINK,
        "lgamma": POLES,
        "linalg_lu_solve": SINGULAR,
        "linalg_solve_triangular": SINGULAR,
        "linalg_norm": "counts numbers, or is a root of the distance from 0",
        "lu_solve": SINGULAR,
        "mvlgamma": POLES,
        "norm": "as linalg_norm",
        "renorm": "1-norms have a kink",
        "softshrink": "a kink of the function without a threshold",
        "triangular_solve": SINGULAR,
    },
    1.0: {"mvlgamma": POLES},
    -100.0: {"lgamma": POLES, "mvlgamma": POLES},
    1e30: {},
}


def is_elementwise(name):
    return bool(flags_of(name) & ELEMENTWISE)


def cases(edges, names):
    return [
        pytest.param(name, edge, marks=pytest.mark.exhaustive if edge else ())
        for edge in edges
        for name in names
        if name not in EXCEPTIONS[edge]
    ]


def with_edge(value, place):
    """A function that puts a number at the start of the array at `place` among those with floating-point numbers."""
    places = itertools.count()

    def change(array):
        if array.dtype.kind not in "fc" or not array.size or next(places) != place:
            return array
        array = array.copy()
        array.reshape(-1)[0] = value
        return array

    return change


def derivatives(name, sample, change):
    """The results, their gradients, and the second gradients, as arrays; None if such operands are rejected."""
    try:
        with np.errstate(all="ignore"):
            call = Call(name, sample, change)
            outputs = call.outputs()
            if not outputs:
                return None
            weights = call.weights(outputs)
            first = call.gradients(weights, outputs, retain_graph=True)
            recorded = call.gradients(weights, outputs, create_graph=True)
            second = call.second_gradients(call.weights(outputs, requires_grad=True), call.weights(first, 1))
    except (RuntimeError, ValueError, IndexError, OverflowError):
        return None
    return [[np.array(call.on.array(t)) for t in ts] for ts in (outputs, first, recorded, second)]


def check(name, edge):
    for sample in SAMPLES[name]:
        if not (sample.grad and sample.smooth):
            continue
        for place in range(min(2, len(Call(name, sample).leaves))):
            points = (edge + step * STEPS[edge] for step in (0, 1, -1))
            here, *near = (derivatives(name, sample, with_edge(point, place)) for point in points)
            if here is None or None in near:
                continue
            for what, *values in zip(KINDS, here, *near):
                for i, (found, below, above) in enumerate(zip(*values)):
                    compare_with_limit(found, below, above, f"{what} {i} with {edge} in operand {place} of {sample}")


def compare_with_limit(found, below, above, what):
    """Where the values on both sides are alike, and not those beside a pole, there must be such a value in between."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(below), np.abs(above))
        is_limit = (size < 1e3) & (np.abs(below - above) <= 1e-3 * size)
        is_near = np.abs(found - below) <= 2e-3 * size + 1e-6
    assert (is_near | ~is_limit).all(), f"{found[is_limit & ~is_near]}, nearby {below[is_limit & ~is_near]}: {what}"


@pytest.mark.parametrize(("name", "edge"), cases([0.0, -100.0], DIFFERENTIABLE))
def test_derivatives_are_those_nearby(name, edge):
    check(name, edge)


@pytest.mark.parametrize(("name", "edge"), cases([1.0, 1e30], [*filter(is_elementwise, DIFFERENTIABLE)]))
def test_derivatives_of_elementwise_functions_are_those_nearby(name, edge):
    check(name, edge)


# --- Exact derivatives -------------------------------------------------------------------------

EXACT = json.loads(Path(__file__).with_name("exact_derivatives.json").read_text())
FUNCTIONS = {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": lambda x: F.softplus(x, threshold=50),
}
# Derivatives are computed from the saved result, as in PyTorch: where that is rounded to 1, they are less than a unit
# of 1. The functions of the second list are themselves sums whose parts cancel.
FROM_RESULT = {"tanh", "sigmoid"}
CANCELLING = {"ndtr", "tanhshrink"}


def function_named(name):
    places = cygrad, F, cygrad.special
    return FUNCTIONS.get(name) or next(getattr(place, name) for place in places if hasattr(place, name))


def derivatives_of(name, point):
    """The value, the gradient and the upper half of the second gradient, as numbers; gradients also as not recorded."""
    leaves = [cygrad.tensor(x, dtype=cygrad.float64, requires_grad=True) for x in point]
    value = function_named(name)(*leaves)
    plain = cygrad.autograd.grad(value, leaves, retain_graph=True)
    first = cygrad.autograd.grad(value, leaves, create_graph=True)
    second = []
    for i, g in enumerate(first):
        rows = [None] * len(leaves)
        if g.requires_grad:
            rows = cygrad.autograd.grad(g, leaves, retain_graph=True, allow_unused=True)
        second += [0.0 if h is None else h.item() for h in rows[i:]]
    numbers = [value.item(), *[g.item() for g in first], *second]
    return numbers, [g.item() for g in plain]


def tolerance(name, point, order):
    if name in FROM_RESULT or (name in CANCELLING and order == 0):
        return 3e-16
    if name == "hypot":  # the second derivative along the longer side is a difference
        return 3e-16 / max(map(abs, point))
    if name == "sinc":  # the argument pi * x is rounded
        return 40 / max(abs(point[0]), 1.0) if abs(point[0]) > 1e10 else 1e-13 * max(abs(point[0]), 1.0)
    return 1e-300


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_are_exact(name):
    for point, expected in EXACT[name]:
        numbers, plain = derivatives_of(name, point)
        orders = [0] + [1] * len(point) + [2] * (len(numbers) - 1 - len(point))
        pairs = [*zip(numbers, expected, orders), *zip(plain, expected[1:], orders[1:])]
        for found, right, order in pairs:
            if right is not None and abs(right) > 1e-290 or right == 0:
                bound = 1e-9 * abs(right) + tolerance(name, point, order)
                assert abs(found - right) <= bound, f"derivative {order} at {point}: {found}, not {right}"
