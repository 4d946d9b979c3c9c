"""Situations from common autograd tutorials, with their output."""

import math
import textwrap
import threading

import pytest

import cygrad as torch
import cygrad.nn as nn
import cygrad.nn.functional as F


@pytest.fixture
def printed(capsys):
    """Compare the output so far with a text."""

    def compare(text):
        assert capsys.readouterr().out == textwrap.dedent(text).lstrip("\n")

    return compare


def test_leaf_and_non_leaf(printed):
    x = torch.tensor(3.0, requires_grad=True)
    y = 2 * x**3 - x
    print(x, x.is_leaf, x.grad_fn)
    print(y, y.is_leaf)
    y.backward()
    print(x.grad)
    printed(
        """
        tensor(3., requires_grad=True) True None
        tensor(51., grad_fn=<SubBackward0>) False
        tensor(53.)
        """
    )


def test_requires_grad_spreads(printed):
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    b = a * 3
    print(b.requires_grad, b.grad_fn)
    a.requires_grad_(True)
    b = (a * a).sum()
    print(b.requires_grad, b)
    printed(
        """
        False None
        True tensor(30., grad_fn=<SumBackward0>)
        """
    )


def test_mean_of_a_small_matrix(printed):
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    print(x, y, z, out, sep="\n")
    out.backward()
    print(x.grad)
    printed(
        """
        tensor([[1., 1.],
                [1., 1.]], requires_grad=True)
        tensor([[3., 3.],
                [3., 3.]], grad_fn=<AddBackward0>)
        tensor([[27., 27.],
                [27., 27.]], grad_fn=<MulBackward0>)
        tensor(27., grad_fn=<MeanBackward0>)
        tensor([[4.5000, 4.5000],
                [4.5000, 4.5000]])
        """
    )


def test_vector_output_with_an_external_gradient(printed):
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    print(q)
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    print(9 * a**2 == a.grad)
    print(-2 * b == b.grad)
    printed(
        """
        tensor([-12.,  65.], grad_fn=<SubBackward0>)
        tensor([True, True])
        tensor([True, True])
        """
    )


def test_doubling_until_the_norm_is_large(printed):
    x = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    y = x * 2
    while y.data.norm() < 1000:
        y = y * 2
    print(y)
    y.backward(torch.tensor([0.1, 1.0, 0.0001]))
    print(x.grad)
    printed(
        """
        tensor([  512., -1024.,   256.], grad_fn=<MulBackward0>)
        tensor([5.1200e+01, 5.1200e+02, 5.1200e-02])
        """
    )


def test_gradients_accumulate_and_are_zeroed(printed):
    inp = torch.eye(2, 3, requires_grad=True)
    out = (inp + 1).pow(2).t()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"First call\n{inp.grad}")
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"Second call\n{inp.grad}")
    inp.grad.zero_()
    out.backward(torch.ones_like(out), retain_graph=True)
    print(f"Call after zeroing gradients\n{inp.grad}")
    printed(
        """
        First call
        tensor([[4., 2., 2.],
                [2., 4., 2.]])
        Second call
        tensor([[8., 4., 4.],
                [4., 8., 4.]])
        Call after zeroing gradients
        tensor([[4., 2., 2.],
                [2., 4., 2.]])
        """
    )


def test_one_layer_network_by_hand(printed):
    x = torch.ones(5)
    y = torch.zeros(3)
    w = torch.full((5, 3), 0.5, requires_grad=True)
    b = torch.zeros(3, requires_grad=True)
    z = torch.matmul(x, w) + b
    loss = F.mse_loss(z, y)
    print(f"Gradient function for z = {z.grad_fn.name()}")
    print(f"Gradient function for loss = {loss.grad_fn.name()}")
    loss.backward()
    print(w.grad)
    print(b.grad)
    printed(
        """
        Gradient function for z = AddBackward0
        Gradient function for loss = MseLossBackward0
        tensor([[1.6667, 1.6667, 1.6667],
                [1.6667, 1.6667, 1.6667],
                [1.6667, 1.6667, 1.6667],
                [1.6667, 1.6667, 1.6667],
                [1.6667, 1.6667, 1.6667]])
        tensor([1.6667, 1.6667, 1.6667])
        """
    )


def test_switching_tracking_off(printed):
    x = torch.ones(2, requires_grad=True)
    print((x * 2).requires_grad)
    with torch.no_grad():
        print((x * 2).requires_grad)
    y = (x * 2).detach()
    print(y.requires_grad, y.eq(x * 2).all())
    printed(
        """
        True
        False
        False tensor(True)
        """
    )


def test_walking_the_history(printed):
    a = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    out = (2 * torch.sin(a) + 1).sum()
    node = out.grad_fn
    while node is not None:
        print(type(node).__name__ if not node.next_functions else node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    printed(
        """
        SumBackward0
        AddBackward0
        MulBackward0
        SinBackward0
        AccumulateGrad
        """
    )


def test_non_leaf_gradient_warns_and_retain_grad_helps(printed):
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="is being accessed. Its .grad attribute won't be popu"):
        print(y.grad)
    y.retain_grad()
    (y * 3).backward()
    print(y.grad)
    printed(
        """
        None
        tensor([3.])
        """
    )


def test_hooks_print_and_change_gradients(printed):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    handle = x.register_hook(lambda grad: print("gradient:", grad))
    (x * 2).sum().backward()
    handle.remove()
    x.register_hook(lambda grad: grad * 10)
    x.grad = None
    (x * 2).sum().backward()
    print(x.grad)
    printed(
        """
        gradient: tensor([2., 2.])
        tensor([20., 20.])
        """
    )


def test_in_place_on_a_leaf(printed):
    w = torch.tensor([1.0], requires_grad=True)
    try:
        w += 1
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    with torch.no_grad():
        w += 1
    print(w)
    printed(
        """
        a leaf Variable that requires grad is being used in an in-place operation.
        tensor([2.], requires_grad=True)
        """
    )


def test_reassigning_a_leaf_makes_it_a_non_leaf(printed):
    w = torch.tensor([1.0], requires_grad=True)
    (w * 2).backward()
    w = w - 0.1 * w.grad
    print(w, w.is_leaf)
    printed(
        """
        tensor([0.8000], grad_fn=<SubBackward0>) False
        """
    )


def test_version_counter(printed):
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 1
    print(y._version)
    z = y**2
    y += 1
    print(y._version)
    try:
        z.backward()
    except RuntimeError as error:
        print(str(error)[:84])
    printed(
        """
        0
        1
        one of the variables needed for gradient computation has been modified by an inplace
        """
    )


def test_backward_twice(printed):
    x = torch.tensor([1.0], requires_grad=True)
    y = x.exp()
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        print(str(error).split(" (")[0])
    printed(
        """
        Trying to backward through the graph a second time
        """
    )


def test_custom_function_in_the_place_of_an_op(printed):
    class LegendrePolynomial3(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return 0.5 * (5 * input**3 - 3 * input)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * input**2 - 1)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = LegendrePolynomial3.apply(x)
    print(y)
    y.sum().backward()
    print(x.grad)
    printed(
        """
        tensor([ 1., 17.], grad_fn=<LegendrePolynomial3Backward>)
        tensor([ 6.0000, 28.5000])
        """
    )


def test_fitting_a_polynomial_by_hand():
    x = torch.linspace(-math.pi, math.pi, 200, dtype=torch.float64)
    y = torch.sin(x)
    a, b, c, d = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(4))
    losses = []
    for _ in range(500):
        prediction = a + b * x + c * x**2 + d * x**3
        loss = (prediction - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for weight in (a, b, c, d):
                weight -= 1e-5 * weight.grad
                weight.grad = None
    assert losses[-1] < losses[0] / 5
    assert b.item() > 0 > d.item()


def test_higher_order(printed):
    x = torch.tensor([2.0], requires_grad=True)
    y = x**3
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    print(first, second, third, sep="\n")
    printed(
        """
        tensor([12.], grad_fn=<MulBackward0>)
        tensor([12.], grad_fn=<MulBackward0>)
        tensor([6.])
        """
    )


def test_ten_threads():
    x = torch.ones(5, 5, requires_grad=True)

    def train():
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()

    threads = [threading.Thread(target=train) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [[45.0] * 5] * 5


def test_freezing_part_of_a_model():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    for parameter in model[0].parameters():
        parameter.requires_grad = False
    model(torch.ones(1, 3)).sum().backward()
    assert [p.grad is None for p in model.parameters()] == [True, True, False, False]


def test_training_loop(printed):
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 32).unsqueeze(1)
    y = x * 2 + 1
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(100):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f} {model.weight.item():.3f} {model.bias.item():.3f}")
    printed(
        """
        0.0000 2.000 1.000
        """
    )


def test_truncated_backpropagation_through_time():
    w = torch.tensor(0.5, requires_grad=True)
    hidden = torch.tensor(1.0)
    for _ in range(3):
        hidden = hidden.detach()
        for _ in range(2):
            hidden = hidden * w
        hidden.backward()
    assert w.grad.item() == pytest.approx(sum(2 * 0.5 * 0.25**n for n in range(3)))


def test_total_loss_of_a_loop_keeps_its_graph_only_with_tensors(printed):
    x = torch.tensor([1.0], requires_grad=True)
    with_graph, without = 0, 0.0
    for _ in range(3):
        loss = (x * 2).sum()
        with_graph = with_graph + loss
        without += loss.item()
    print(with_graph, without)
    printed(
        """
        tensor(6., grad_fn=<AddBackward0>) 6.0
        """
    )


def test_gradient_of_where_is_picked(printed):
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    torch.where(x > 0, x * x, -x).sum().backward()
    print(x.grad)
    printed(
        """
        tensor([-1., -1.,  4.])
        """
    )


def test_gradient_of_relu_and_abs_at_zero_is_zero(printed):
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    (F.relu(x) + abs(x)).sum().backward()
    print(x.grad)
    printed(
        """
        tensor([-1.,  0.,  2.])
        """
    )


def test_input_optimization():
    target = torch.tensor([0.2, -0.4])
    x = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        ((x - target) ** 2).sum().backward()
        optimizer.step()
    assert x.tolist() == pytest.approx(target.tolist(), abs=1e-2)
