"""Second and higher derivatives, and typical uses of them."""

import math
import warnings

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from helpers import leaf, scalar

grad = torch.autograd.grad


def derivatives(function, at, orders):
    """Successive derivatives of `function` at a number, each computed from the previous one."""
    x = scalar(at, dtype=torch.float64)
    y = function(x)
    found = []
    for _ in range(orders):
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
        if not y.requires_grad:
            break
    return found


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x: x**5, 2.0, [80, 160, 240, 240, 120]),
        (lambda x: x * x * x, 2.0, [12, 12, 6]),
        (lambda x: 1 / x, 2.0, [-1 / 4, 2 / 8, -6 / 16, 24 / 32]),
        (lambda x: x.exp(), 0.5, [math.exp(0.5)] * 5),
        (lambda x: x.log(), 2.0, [1 / 2, -1 / 4, 2 / 8, -6 / 16]),
        (lambda x: x.sqrt(), 4.0, [1 / 4, -1 / 32, 3 / 256]),
        (lambda x: x.sin(), 0.3, [math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3)]),
        (lambda x: x.cos(), 0.3, [-math.sin(0.3), -math.cos(0.3), math.sin(0.3)]),
        (lambda x: 2**x, 1.0, [2 * math.log(2) ** n for n in (1, 2, 3)]),
        (lambda x: (x * 3).exp(), 0.0, [3, 9, 27, 81]),
        (lambda x: x.sigmoid(), 0.0, [1 / 4, 0, -1 / 8]),
        (lambda x: x.tanh(), 0.0, [1, 0, -2]),
    ],
)
def test_derivatives_of_a_number(function, at, expected):
    assert derivatives(function, at, len(expected)) == pytest.approx(expected, abs=1e-12)


def test_gradient_that_is_constant_requires_no_grad():
    x = leaf(1.0)
    (first,) = grad((x * 2).sum(), x, create_graph=True)
    assert not first.requires_grad and first.grad_fn is None


def test_gradient_depends_on_grad_outputs():
    x, v = leaf(1.0), leaf(3.0)
    (first,) = grad(x * 2, x, v, create_graph=True)
    assert first.requires_grad
    assert grad(first, v)[0].tolist() == [2.0]


def test_gradient_without_create_graph_is_cut():
    x = leaf(1.0)
    (first,) = grad(x * x, x)
    assert not first.requires_grad


def test_backward_of_a_gradient_adds_to_grad():
    x = leaf(3.0)
    (first,) = grad((x * x * x).sum(), x, create_graph=True)
    first.backward()
    assert x.grad.tolist() == [18.0]


def test_backward_with_create_graph_gives_a_grad_with_history():
    x = leaf(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x * x).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad and first.grad_fn is not None
    x.grad = None
    first.backward()
    assert x.grad.tolist() == [18.0]


def test_mixed_partial_derivatives():
    x, y = scalar(2.0), scalar(3.0)
    z = x * x * y + y * y * y
    over_x, over_y = grad(z, [x, y], create_graph=True)
    assert [g.item() for g in grad(over_x, [x, y], retain_graph=True)] == [6.0, 4.0]
    assert [g.item() for g in grad(over_y, [x, y])] == [4.0, 18.0]


def hessian(function, x):
    (first,) = grad(function(x), x, create_graph=True)
    rows = []
    for element in first:
        (row,) = grad(element, x, retain_graph=True, materialize_grads=True)
        rows.append(row.tolist())
    return rows


def test_hessian_row_by_row():
    x = leaf(1.0, 2.0, 3.0)
    assert hessian(lambda x: (x**3).sum(), x) == [
        [6.0, 0.0, 0.0],
        [0.0, 12.0, 0.0],
        [0.0, 0.0, 18.0],
    ]
    assert hessian(lambda x: x.prod(), x) == [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def test_hessian_of_a_quadratic_form():
    matrix = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    x = leaf(1.0, 1.0)
    assert hessian(lambda x: x @ (matrix @ x), x) == [[4.0, 1.0], [1.0, 6.0]]


def test_hessian_vector_product():
    x, v = leaf(1.0, 2.0), torch.tensor([1.0, 10.0])
    (first,) = grad((x**4).sum(), x, create_graph=True)
    (product,) = grad(first, x, v)
    assert product.tolist() == [12.0, 480.0]


def test_jacobian_vector_product_by_two_backward_passes():
    x, v = leaf(1.0, 2.0), torch.tensor([1.0, 10.0])
    dummy = torch.zeros(2, requires_grad=True)
    (transposed,) = grad(x**3, x, dummy, create_graph=True)
    (forward,) = grad(transposed, dummy, v)
    assert forward.tolist() == [3.0, 120.0]


def test_gradient_penalty_trains_the_weight():
    w, x = leaf(2.0), leaf(3.0)
    y = (w * x).sigmoid()
    (over_x,) = grad(y.sum(), x, create_graph=True)
    penalty = (over_x**2).sum()
    penalty.backward()
    s = 1 / (1 + math.exp(-6.0))
    slope = s * (1 - s)
    expected = 2 * (2 * slope) * (slope + 2 * slope * (1 - 2 * s) * 3)
    assert w.grad.item() == pytest.approx(expected, rel=1e-4)


def test_step_of_gradient_descent_is_differentiable():
    rate, x = scalar(0.25), leaf(3.0)
    (slope,) = grad((x * x).sum(), x, create_graph=True)
    moved = x - rate * slope
    (moved * moved).sum().backward()
    assert rate.grad.item() == 2 * 1.5 * -6.0
    assert x.grad.tolist() == [2 * 1.5 * 0.5]


def test_second_derivative_through_broadcast_sum_and_mean():
    x = torch.ones(3, 1, dtype=torch.float64, requires_grad=True)
    y = torch.ones(4, dtype=torch.float64, requires_grad=True)
    (first,) = grad(((x * y) ** 3).mean(), x, create_graph=True)
    assert first.shape == (3, 1)
    over_x, over_y = grad(first.sum(), [x, y])
    assert over_x.tolist() == [[pytest.approx(2.0)]] * 3
    assert over_y.tolist() == [pytest.approx(9 / 4)] * 4


def test_second_derivative_through_matmul():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (first,) = grad((a @ a).sum(), a, create_graph=True)
    (second,) = grad(first.sum(), a)
    assert second.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_second_derivative_through_relu_is_zero_but_connected():
    x = leaf(-1.0, 2.0)
    (first,) = grad((F.relu(x) ** 2).sum(), x, create_graph=True)
    assert first.tolist() == [0.0, 4.0]
    assert grad(first.sum(), x)[0].tolist() == [0.0, 2.0]


def test_second_derivative_through_views_and_indices():
    x = torch.arange(6.0).requires_grad_()
    y = x.view(2, 3).t()[1:].reshape(-1)[[0, 0, 3]]
    (first,) = grad((y**3).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert first.tolist() == [0.0, 6.0, 0.0, 0.0, 0.0, 75.0]
    assert second.tolist() == [0.0, 12.0, 0.0, 0.0, 0.0, 30.0]


def test_second_derivative_through_in_place_ops():
    x = leaf(2.0, 3.0)
    y = x * x
    y.mul_(x)
    y[0] = y[0].clone() * x[1]
    (first,) = grad(y.sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert first.tolist() == [3 * 4 * 3.0, 8 + 3 * 9.0]
    assert second.tolist() == [6 * 2 * 3 + 12.0, 12 + 18.0]


def test_second_derivative_of_softmax_cross_entropy():
    logits = torch.tensor([[0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = F.cross_entropy(logits, torch.tensor([0]))
    (first,) = grad(loss, logits, create_graph=True)
    assert first.tolist() == [[pytest.approx(-0.5), pytest.approx(0.5)]]
    (second,) = grad(first[0, 0], logits)
    assert second.tolist() == [[pytest.approx(0.25), pytest.approx(-0.25)]]


def test_second_derivative_through_max_and_where():
    x = leaf(1.0, 5.0, 3.0)
    y = torch.where(x > 2, x * x * x, x).max()
    (first,) = grad(y, x, create_graph=True)
    assert first.tolist() == [0.0, 75.0, 0.0]
    assert grad(first.sum(), x)[0].tolist() == [0.0, 30.0, 0.0]


def test_retained_gradient_of_a_second_pass():
    x = leaf(2.0)
    y = x * x
    (first,) = grad(y, x, create_graph=True)
    first.retain_grad()
    (first * first).backward()
    assert first.grad.tolist() == [8.0]
    assert x.grad.tolist() == [16.0]


def test_tenth_derivative():
    x = scalar(1.0, dtype=torch.float64)
    y = x**10
    for _ in range(10):
        (y,) = grad(y, x, create_graph=True)
    assert y.item() == math.factorial(10)


def test_gradient_graph_of_a_long_chain():
    x = scalar(1.0, dtype=torch.float64)
    y = x
    for _ in range(300):
        y = y * 1.001 + 0.0 * y * y
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first, x)
    assert first.item() == pytest.approx(1.001**300)
    assert second.item() == 0.0


def test_a_recorded_gradient_is_a_copy_as_in_pytorch():
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    assert repr(x.grad) == "tensor([2., 2.], grad_fn=<CopyBackwards>)"
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert repr(x.grad) == "tensor([4., 4.], grad_fn=<AddBackward0>)"
    assert first.tolist() == [2, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.leaky_relu(x, 0.1),
        lambda x: F.leaky_relu_(x * 1),
        F.hardtanh,
        F.relu6,
        F.relu,
        F.softshrink,
        F.hardshrink,
        lambda x: F.threshold(x, 0.1, 20.0),
        lambda x: F.prelu(x, torch.tensor([0.25])),
        lambda x: F.rrelu(x, training=True),
        lambda x: F.nll_loss(x[None], torch.tensor([1])),
    ],
)
def test_second_derivatives_of_straight_pieces_are_zero_and_there(function):
    x = leaf(-1.5, -0.3, 0.2, 0.7, float("inf"), float("nan"))
    torch.manual_seed(0)
    (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    assert g.requires_grad  # as in PyTorch, although all its derivatives are 0
    (second,) = torch.autograd.grad(g.sum(), x)
    assert second.tolist() == [0.0] * 6
    torch.manual_seed(0)
    (plain,) = torch.autograd.grad(function(x).sum(), x)
    assert not plain.requires_grad and torch.allclose(plain, g, equal_nan=True)


@pytest.mark.parametrize("exponent", [2, 3.0])
def test_each_derivative_of_a_power_is_recorded_until_it_is_zero(exponent):
    x = leaf(1.0, 2.0)
    y, factor = x**exponent, 1.0
    for n in range(int(exponent)):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        factor *= exponent - n
        assert y.requires_grad and y.tolist() == [factor * base ** (exponent - n - 1) for base in (1, 2)]
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0]
