"""SciPy's optimizers on tensors and modules."""

import subprocess
import sys

import numpy as np
import pytest

import cygrad as torch
from cygrad.utils.scipy import minimize
from helpers import fails

optimize = pytest.importorskip("scipy.optimize")
F = torch.nn.functional

GRADIENT = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"]
CURVATURE = ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact"]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x):
    return ((x - torch.arange(3.0, dtype=torch.float64)) ** 2 * torch.tensor([1.0, 2.0, 3.0])).sum()


@pytest.mark.parametrize("method", [None, *GRADIENT, *CURVATURE])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_methods_with_gradients(method, dtype):
    x = torch.tensor([1.3, 0.7, 0.8], dtype=dtype)
    result = minimize(rosenbrock, x, method)
    assert result.success, result.message
    assert x.dtype is dtype and not x.requires_grad and x.grad is None
    np.testing.assert_allclose(x.numpy(), 1, atol=1e-3)
    np.testing.assert_allclose(result.x, x.numpy(), rtol=1e-6)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYLA", "COBYQA", "dogleg"])
def test_other_methods(method):
    if method == "COBYQA" and "cobyqa" not in optimize.minimize.__doc__.lower():
        pytest.skip("needs a newer SciPy")
    x = torch.tensor([1.3, 0.7, 0.8])
    assert minimize(bowl, x, method).success
    np.testing.assert_allclose(x.numpy(), [0, 1, 2], atol=1e-3)


@pytest.mark.parametrize("method", CURVATURE)
def test_the_curvature_is_exact(method):
    """As many iterations as with hand-written derivatives."""
    start = np.array([-1.2, 1.0, 0.5])
    by_hand = {"hess": optimize.rosen_hess} if method == "trust-exact" else {"hessp": optimize.rosen_hess_prod}
    expected = optimize.minimize(optimize.rosen, start, method=method, jac=optimize.rosen_der, **by_hand)
    found = minimize(rosenbrock, torch.from_numpy(start.copy()), method)
    assert found.nit == expected.nit
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)


def test_several_tensors():
    a, b = torch.zeros(2, 2), torch.nn.Parameter(torch.ones(()))
    target = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    result = minimize(lambda a, b: ((a * 2 - target) ** 2).sum() + (b - 3) ** 4, [a, b], "trust-ncg")
    np.testing.assert_allclose(a.numpy(), target.numpy() / 2, rtol=1e-6)
    assert abs(b.item() - 3) < 0.05 and b.requires_grad and b.is_leaf
    assert result.x.shape == (5,)


@pytest.mark.parametrize("method", ["L-BFGS-B", "Newton-CG", "trust-constr"])
def test_modules(method):
    torch.manual_seed(2)  # far enough from the minimum
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    model.eval()
    model[0].bias.requires_grad_(False)
    parameters = dict(model.named_parameters())
    fixed, addresses = model[0].bias.tolist(), {name: p.data_ptr() for name, p in parameters.items()}
    x = torch.rand(40, 2, dtype=torch.float64)
    y = (x[:, :1] * x[:, 1:]).sin()
    before = F.mse_loss(model(x.float()), y.float()).item()

    def loss(module):
        assert module is model
        return F.mse_loss(module(x), y)

    result = minimize(loss, model, method, options={"maxiter": 50})
    after = F.mse_loss(model(x.float()), y.float()).item()
    assert after < before / 50 and after == pytest.approx(result.fun, rel=1e-2)
    assert dict(model.named_parameters()).keys() == parameters.keys()
    for name, p in model.named_parameters():
        assert p is parameters[name] and p.dtype is torch.float32 and p.grad is None
        assert p.data_ptr() == addresses[name]
    assert model[2].running_mean.dtype is torch.float32
    assert model[0].bias.tolist() == fixed


def test_bounds():
    for bounds in ((0.5, 1.5), [(0.5, 1.5)] * 3, optimize.Bounds(0.5, 1.5), (0.5, None)):
        x = torch.ones(3)
        minimize(bowl, x, bounds=bounds)
        highest = 2 if bounds == (0.5, None) else 1.5
        np.testing.assert_allclose(x.numpy(), [0.5, 1, highest], atol=1e-4)


@pytest.mark.parametrize("method", [None, "SLSQP", "trust-constr"])
def test_constraints(method):
    circle = {"type": "eq", "fun": lambda x: (x**2).sum() - 1}
    if method == "trust-constr":
        circle = optimize.NonlinearConstraint(lambda x: (x**2).sum(), 1, 1)
    plane = optimize.LinearConstraint(np.eye(3)[:1], -1, 0)
    x = torch.tensor([0.1, 0.2, 0.3])
    result = minimize(bowl, x, method, constraints=[circle, plane])
    assert (x**2).sum().item() == pytest.approx(1, abs=1e-4) and x[0] <= 1e-6
    assert result.fun < bowl(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)).item()


def test_functions_of_little_curvature():
    x = torch.ones(2)
    assert minimize(lambda x: x.sum() * 2, x, "trust-ncg", options={"maxiter": 2}).nit == 2
    unused = torch.full((1,), 7.0)
    minimize(lambda a, b: (a**2).sum(), [torch.ones(2), unused], "Newton-CG")
    assert unused.item() == 7


def test_callbacks_and_options():
    seen = []
    x = torch.tensor([1.3, 0.7, 0.8])
    minimize(rosenbrock, x, "BFGS", callback=lambda xk: seen.append(xk.copy()), options={"maxiter": 4})
    assert len(seen) == 4
    np.testing.assert_allclose(seen[-1], x.numpy(), rtol=1e-6)


def test_in_no_grad_mode():
    x = torch.ones(3)
    with torch.no_grad():
        minimize(bowl, x)
    np.testing.assert_allclose(x.numpy(), [0, 1, 2], atol=1e-4)


def test_an_error_changes_nothing():
    model = torch.nn.Linear(2, 1)
    before = model.weight.tolist()
    calls = []

    def loss(module):
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError
        return (module.weight**2).sum()

    with pytest.raises(ZeroDivisionError):
        minimize(loss, model, "BFGS")
    assert model.weight.tolist() == before and model.weight.dtype is torch.float32


def test_wrong_arguments():
    line = "minimize needs a real floating-point tensor, a sequence of them, or a module that has them"
    for wrong in (torch.ones(2, dtype=torch.int64), [], torch.nn.ReLU(), torch.ones(2, dtype=torch.complex64), [3]):
        with fails(TypeError, line):
            minimize(rosenbrock, wrong)
    line = "fun must return a real tensor of one element, computed from its arguments, not "
    for wrong, found in ((lambda x: 3.0, "a float"), (lambda x: x, "a tensor of shape (3,)")):
        with fails(TypeError, line + found):
            minimize(wrong, torch.ones(3))


def test_without_scipy():
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import cygrad, cygrad.utils.scipy as s\n"
        "s.minimize(lambda x: x.sum(), cygrad.ones(1))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: cygrad.utils.scipy.minimize needs SciPy" in ended.stderr
