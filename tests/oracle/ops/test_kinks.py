"""Gradients at non-differentiable points match PyTorch's."""

import itertools

import pytest
from oracle.programs import compare

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

IMAGE = [[[[1.0, 2.0, 4.0, 8.0], [16.0, 32.0, 64.0, 128.0], [3.0, 9.0, 27.0, 81.0]]]]
POINTS = [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0], [0.5, 0.0], [-0.5, 0.0], [-1.5, 0.0], [0.75, 0.5]
INF = float("inf")
CASES = {
    "renorm": [
        (lambda torch, x, p=p, most=most: torch.renorm(x, p, 0, most), [[3.0, 4.0], [0.0, 0.0], [-1.0, 1.0]])
        for p, most in itertools.product((1, 2, INF), (0.0, 1.0, 4.0, 5.0, 7.0))
    ],
    "lp_pool1d": [
        (lambda torch, x, p=p: torch.nn.functional.lp_pool1d(x, p, 2), [[[0.0, 0.0, 1.0, 0.0, -1.0, 1.0, 2.0, 2.0]]])
        for p in (1.0, 2.0, 3.0, INF, -INF)
    ],
    "frobenius_norm": [(lambda torch, x: torch.frobenius_norm(x, (0, 1)), [[0.0, 0.0], [0.0, 0.0]])],
    "nuclear_norm": [
        (lambda torch, x: torch.nuclear_norm(x), x)
        for x in ([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    ],
    "rnn_relu": [
        (lambda torch, x, h: torch.rnn_relu_cell(x, h, torch.ones(1, 1).double(), torch.ones(1, 1).double()), x, h)
        for x, h in itertools.product(([[0.0]], [[1.0]]), ([[0.0]], [[-1.0]]))
    ],
    "grid_sample": [
        (lambda torch, x, grid, how=how: torch.nn.functional.grid_sample(x, grid, *how), IMAGE, [[[point]]])
        for *how, point in itertools.product(
            ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (True, False), POINTS
        )
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    def program(torch, say):
        for function, *values in CASES[name]:
            operands = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]
            result = function(torch, *operands)
            for gradient in torch.autograd.grad(result.sum(), operands):
                say([round(value, 6) + 0.0 for value in gradient.flatten().tolist()])

    compare(program)
