"""The first steps of the optimizers against their formulas."""

import numpy as np
import pytest

import cygrad as torch

G = np.array([0.5, -2.0, 0.0])  # the gradient in each step
MU1, MU2, MU3 = (0.9 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in (1, 2, 3))
# The decrements of the parameter in the first two steps, with lr=0.1 and a constant gradient.
STEPS = {
    "RMSprop": [0.1 * G / (np.sqrt(v * G * G) + 1e-8) for v in (0.01, 0.0199)],
    "Adagrad": [0.1 * G / (np.sqrt(n * G * G) + 1e-10) for n in (1, 2)],
    "Adamax": [0.1 * G / (np.abs(G) + 1e-8)] * 2,
    "NAdam": [
        0.1 * G / (np.abs(G) + 1e-8) * (0.1 * MU2 / (1 - MU1 * MU2) + 1),
        0.1 * G / (np.abs(G) + 1e-8) * (0.19 * MU3 / (1 - MU1 * MU2 * MU3) + (1 - MU2) / (1 - MU1 * MU2)),
    ],
    "RAdam": [0.1 * G] * 2,
    "Rprop": [0.1 * np.sign(G), 0.12 * np.sign(G)],
}


def two_steps(name, **options):
    start = np.array([1.0, 2.0, 3.0])
    w = torch.tensor(start, requires_grad=True)
    if options:  # a recorded step cannot modify a leaf
        w = w.clone()
    optimizer = getattr(torch.optim, name)([w], lr=0.1, **options)
    places = [start]
    for _ in range(2):
        w.grad = torch.tensor(G)
        optimizer.step()
        places.append(w.detach().numpy().copy())
    return places


@pytest.mark.parametrize("options", [{}, {"differentiable": True}], ids=["arrays", "recorded"])
@pytest.mark.parametrize("name", STEPS)
def test_first_two_steps(name, options):
    a, b, c = two_steps(name, **options)
    np.testing.assert_allclose([a - b, b - c], STEPS[name], rtol=1e-6, atol=1e-12)


def test_adadelta():
    a, b, _ = two_steps("Adadelta")
    np.testing.assert_allclose(a - b, 0.1 * np.sqrt(1e-6) / np.sqrt(0.1 * G * G + 1e-6) * G)


def test_asgd_averages():
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    places = []
    for _ in range(4):
        w.grad = torch.tensor(G)
        optimizer.step()
        places.append(w.detach().numpy().copy())
    np.testing.assert_allclose(w.detach().numpy(), np.array([1.0, 2.0, 3.0]) - 2 * G)
    # t0 = 0: the weights of the steps are 1, 1, 1/2 and 1/3
    mean = places[1]
    for step, weight in ((2, 1 / 2), (3, 1 / 3)):
        mean = mean + weight * (places[step] - mean)
    np.testing.assert_allclose(optimizer.state[w]["ax"].numpy(), mean, rtol=1e-6)


def test_a_step_counts_as_a_change():
    w = torch.tensor([1.0], requires_grad=True)
    square = w * w
    w.grad = torch.ones(1)
    torch.optim.Rprop([w]).step()
    with pytest.raises(RuntimeError, match="modified"):
        square.backward()


def test_rprop_has_no_recorded_complex_step():
    w = torch.tensor([1.0 + 1j], requires_grad=True).clone()
    optimizer = torch.optim.Rprop([w], differentiable=True)
    w.grad = torch.ones(1, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="differentiable is False"):
        optimizer.step()


@pytest.mark.parametrize("name", [*STEPS, "Adadelta", "ASGD"])
def test_states_with_numbers_for_counters(name):
    def made():
        w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        w.grad = torch.tensor([0.5, -2.0], dtype=torch.float64)
        return w, getattr(torch.optim, name)([w])

    (a, saved), (b, loaded) = made(), made()
    saved.step()
    state = saved.state_dict()
    values = {k: v.item() if v.ndim == 0 else v.clone() for k, v in state["state"][0].items()}
    b.data = a.data.clone()
    loaded.load_state_dict({**state, "state": {0: values}})
    saved.step()
    loaded.step()
    assert loaded.state[b]["step"].item() == 2.0
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", [*STEPS, "Adadelta", "ASGD"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
def test_shapes_layouts_and_dtypes(name, dtype):
    """Strided, empty and 0-dim parameters are updated like dense ones, in place and in their dtype."""
    base = torch.tensor(np.linspace(1, 2, 12).reshape(3, 4)).to(dtype)
    dense = base.t().contiguous().requires_grad_()
    others = [base.t().requires_grad_(), torch.zeros(0, 3, dtype=dtype, requires_grad=True)]
    others.append(torch.tensor(1.0, dtype=dtype, requires_grad=True))  # equals dense[0, 0]
    optimizer = getattr(torch.optim, name)([dense, *others])
    for _ in range(3):
        for param in optimizer.param_groups[0]["params"]:
            param.grad = torch.full_like(param.detach(), 0.5)
        optimizer.step()
    assert {p.dtype for p in [dense, *others]} == {dtype}
    np.testing.assert_allclose(dense.detach().numpy(), others[0].detach().numpy(), rtol=3e-7)
    np.testing.assert_allclose(others[2].item(), dense[0, 0].item(), rtol=2e-3 if dtype is torch.float16 else 1e-6)
    assert dense[0, 0].item() != 1.0


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_solves_a_quadratic(search):
    matrix = torch.tensor([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]], dtype=torch.float64)
    right = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=30, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        loss = 0.5 * w @ (matrix @ w) - right @ w
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
    np.testing.assert_allclose(w.detach().numpy(), np.linalg.solve(matrix.numpy(), right.numpy()), atol=1e-5)


def test_lbfgs_searches_where_the_loss_is_defined():
    """The first trial step of each search reaches logarithms of negative numbers; NaN must count as too long a step."""
    w = torch.tensor([5.0, 8.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=20.0, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (w - w.log()).sum()
        loss.backward()
        return loss

    for _ in range(8):
        optimizer.step(closure)
    np.testing.assert_allclose(w.detach().numpy(), [1.0, 1.0], rtol=1e-5)


def test_lbfgs_knows_one_line_search():
    w = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        torch.optim.LBFGS([w], line_search_fn="armijo").step(lambda: 1.0)


def test_radam_where_the_rectification_never_begins():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    torch.optim.RAdam([p], lr=0.1, betas=(0.9, 0.6)).step()  # 2 / (1 - 0.6) - 1 is 4
    np.testing.assert_allclose(p.detach().numpy(), [0.9, 0.9], 1e-6)
