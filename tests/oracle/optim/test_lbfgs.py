"""LBFGS against PyTorch's."""

import inspect

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:Converting a tensor")]


def minimised(library, start, steps=3, **options):
    """Minimize Rosenbrock's function (of absolute values, for complex numbers) for some steps."""
    w = library.tensor(np.array(start), requires_grad=True)
    optimizer = library.optim.LBFGS([w], **options)

    def closure():
        optimizer.zero_grad()
        x, y = w[0], w[1]
        loss = (1 - x).abs() ** 2 + 10 * (y - x * x).abs() ** 2
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return w.detach().numpy(), losses, optimizer.state_dict()


OPTIONS = [{}, {"max_iter": 5}, {"history_size": 2}, {"max_eval": 4}, {"tolerance_grad": 1.0}, {"lr": 0.5}]


@pytest.mark.parametrize("start", [[0.8, 0.5], [0.8 + 0.1j, 0.5 - 0.1j]], ids=["real", "complex"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_steps(start, options):
    options = {"lr": 0.1, "max_iter": 7, **options}
    ours, theirs = (minimised(library, start, **options) for library in (cygrad, torch))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-7, atol=1e-14)
    for key in ("func_evals", "n_iter"):
        assert ours[2]["state"][0][key] == theirs[2]["state"][0][key]
    assert set(ours[2]["state"][0]) == set(theirs[2]["state"][0])
    assert ours[2]["param_groups"] == theirs[2]["param_groups"]


@pytest.mark.parametrize("start", [[-1.2, 1.0], [3.0, -4.0], [0.0, 0.0], [0.5, 2.0]], ids=str)
@pytest.mark.parametrize("options", [*OPTIONS, {"max_eval": 1}, {"lr": 20.0}, {"lr": 1e-3}], ids=str)
def test_line_search(start, options):
    """The same sequence of trials, up to the point where losses differ by rounding only."""
    options = {"max_iter": 6, "line_search_fn": "strong_wolfe", **options}
    ours, theirs = (minimised(library, start, **options) for library in (cygrad, torch))
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5, atol=1e-9)
    if theirs[1][-1] > 1e-9:
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
        assert ours[2]["state"][0]["func_evals"] == theirs[2]["state"][0]["func_evals"]


def test_line_search_of_a_network():
    found = []
    for library in (cygrad, torch):
        nn, cube = library.nn, library.linspace(-1, 1, 60, dtype=library.float64)
        model = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 3)).double()
        with library.no_grad():
            for i, parameter in enumerate(model.parameters()):
                numbers = np.sin(np.arange(parameter.numel()) * (i + 1.0)).reshape(tuple(parameter.shape))
                parameter.copy_(library.from_numpy(numbers))
        x, y = (cube * 40).sin().reshape(10, 6), library.arange(10) % 3
        optimizer = library.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

        def closure(optimizer=optimizer, nn=nn, model=model, x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        found.append([optimizer.step(closure).item() for _ in range(5)])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_options_and_checks():
    ours, theirs = (inspect.signature(library.optim.LBFGS).parameters.values() for library in (cygrad, torch))
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]
    for library in (cygrad, torch):
        a, b = (library.zeros(1, requires_grad=True) for _ in range(2))
        with pytest.raises(ValueError, match="doesn't support per-parameter options"):
            library.optim.LBFGS([{"params": [a]}, {"params": [b]}])
        with pytest.raises(ValueError, match="Invalid learning rate: -1"):
            library.optim.LBFGS([a], lr=-1)
