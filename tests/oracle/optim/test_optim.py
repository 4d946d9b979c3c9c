"""Optimizers against PyTorch's: twenty steps, state dicts in both directions, options and their validation."""

import inspect

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

DECAY, MAX = {"weight_decay": 0.1}, {"maximize": True}
DECOUPLED = {"weight_decay": 0.1, "decoupled_weight_decay": True}
# The options tested for each optimizer, besides the defaults.
OPTIONS = {
    "RMSprop": [DECAY, MAX, {"momentum": 0.9}, {"centered": True, "alpha": 0.8}, {"centered": True, "momentum": 0.5}],
    "Adagrad": [DECAY, MAX, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.3}, {"fused": True, "eps": 1e-3}],
    "Adadelta": [DECAY, MAX, {"rho": 0.5, "lr": 0.3}, {"eps": 1e-2}],
    "Adamax": [DECAY, MAX, {"betas": (0.5, 0.8)}, {"eps": 1e-2, "lr": 0.1}],
    "NAdam": [DECAY, MAX, DECOUPLED, {"betas": (0.5, 0.8), "momentum_decay": 0.1}],
    "RAdam": [DECAY, MAX, DECOUPLED, {"betas": (0.5, 0.8)}, {"eps": 1e-2, "lr": 0.1}],
    "Rprop": [MAX, {"etas": (0.3, 1.5)}, {"step_sizes": (1e-2, 0.02)}],
    "ASGD": [DECAY, MAX, {"t0": 5.0}, {"lambd": 0.1, "alpha": 0.5, "t0": 0.0}],
    "Adafactor": [DECAY, MAX, {"beta2_decay": -0.5, "lr": 0.3}, {"eps": (1e-2, 0.1)}, {"d": 2.0}, {"foreach": True}],
    "SGD": [{"momentum": 0.9, **DECAY}],
    "AdamW": [{"amsgrad": True}],
}
CASES = [(name, options) for name, all_options in OPTIONS.items() for options in [{}, *all_options]]
IDS = [name + "".join(f"-{k}={v}" for k, v in options.items()) for name, options in CASES]


def weights(library, kind="float64"):
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape) for shape in [(5, 4), (4,), (4, 1), ()]]
    if kind == "complex128":
        arrays = [a + 1j * rng.standard_normal(a.shape) for a in arrays]
    return [library.tensor(a, requires_grad=True) for a in arrays]


def train(library, optimizer, params, steps=20, first=0):
    first_layer, bias, second_layer, shift = params
    for i in range(first, first + steps):
        x = library.tensor(np.random.default_rng(i).standard_normal((7, 5)))
        y = library.tensor(np.random.default_rng(100 + i).standard_normal((7, 1)))
        optimizer.zero_grad()
        out = (x.to(bias.dtype) @ first_layer + bias).tanh() @ second_layer + shift
        (out - y).abs().square().mean().backward()
        optimizer.step()
    return optimizer


def same(ours, theirs, tolerance=1e-10):
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


def same_state(ours, theirs):
    assert ours["param_groups"] == theirs["param_groups"]
    assert {k: list(v) for k, v in ours["state"].items()} == {k: list(v) for k, v in theirs["state"].items()}
    for number, state in theirs["state"].items():
        for name, value in state.items():
            other = ours["state"][number][name]
            assert str(other.dtype).split(".")[-1] == str(value.dtype).split(".")[-1], name
            np.testing.assert_allclose(other.detach().numpy(), value.detach().numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_twenty_steps(name, options):
    ours, theirs = weights(cygrad), weights(torch)
    a = train(cygrad, getattr(cygrad.optim, name)(ours, **options), ours)
    b = train(torch, getattr(torch.optim, name)(theirs, **options), theirs)
    same(ours, theirs)
    if name not in ("SGD", "AdamW"):  # their states are compared elsewhere
        same_state(a.state_dict(), b.state_dict())


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "Adafactor"])
def test_complex_parameters(name):
    ours, theirs = weights(cygrad, "complex128"), weights(torch, "complex128")
    train(cygrad, getattr(cygrad.optim, name)(ours), ours, 5)
    train(torch, getattr(torch.optim, name)(theirs), theirs, 5)
    same(ours, theirs)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_state_dicts_are_exchanged(name, options):
    """Five steps there, five here, five there equal fifteen in one library."""
    ours, theirs, reference = weights(cygrad), weights(torch), weights(torch)
    b = train(torch, getattr(torch.optim, name)(theirs, **options), theirs, 5)
    a = getattr(cygrad.optim, name)(ours)
    a.load_state_dict(b.state_dict())
    for mine, other in zip(ours, theirs):
        mine.data = cygrad.tensor(other.detach().numpy())
    train(cygrad, a, ours, 5, first=5)
    state = a.state_dict()
    for values in state["state"].values():
        values.update({k: torch.tensor(v.numpy()) for k, v in values.items()})
    b.load_state_dict(state)
    for mine, other in zip(ours, theirs):
        other.data = torch.tensor(mine.detach().numpy())
    train(torch, b, theirs, 5, first=10)
    train(torch, getattr(torch.optim, name)(reference, **options), reference, 15)
    same(theirs, reference, 1e-7 if name in ("NAdam", "ASGD") else 1e-10)  # float32 scalars in their states


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("SGD", "AdamW", "Rprop", "Adafactor")])
def test_differentiable(name):
    """The recorded step gives the same values, and gradients flow through two steps to the first gradient."""
    steps = 1 if name == "Adamax" else 2  # PyTorch cannot differentiate two
    results = []
    for library in (cygrad, torch):
        start = library.tensor([0.5, -1.5, 2.0], dtype=library.float64, requires_grad=True)
        param = start.clone()
        optimizer = getattr(library.optim, name)([param], lr=0.1, differentiable=True)
        for _ in range(steps):
            param.grad = param.detach().clone() * start
            optimizer.step()
        param.sum().backward()
        results.append((param, start.grad))
    same(results[0], results[1], 1e-7 if name == "NAdam" else 1e-10)  # PyTorch uses a float32 scalar


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    ours, theirs = (inspect.signature(getattr(library.optim, name)).parameters for library in (cygrad, torch))
    kinds = [[(p.name, p.default, p.kind) for p in ps.values()] for ps in (ours, theirs)]
    assert kinds[0] == kinds[1]


BAD = ["lr", "eps", "alpha", "momentum", "weight_decay", "rho", "lr_decay", "initial_accumulator_value"]
BAD_OPTIONS = [{name: -1.0} for name in [*BAD, "momentum_decay"]]
BAD_OPTIONS += [{"betas": (1.0, 0.9)}, {"betas": (0.9, -1)}, {"etas": (1.2, 0.5)}, {"rho": 2.0}]
BAD_OPTIONS += [{"beta2_decay": 1.0}, {"d": 0.5}, {"eps": (-1.0, 1.0)}, {"eps": (None, -1.0)}]
BAD_OPTIONS += [{"fused": True, "foreach": True}, {"fused": True, "differentiable": True}]


@pytest.mark.parametrize("name", OPTIONS)
def test_checks(name):
    for options in BAD_OPTIONS:
        errors = []
        for library in (cygrad, torch):
            try:
                getattr(library.optim, name)(weights(library), **options)
                errors.append(None)
            except (ValueError, RuntimeError) as error:
                errors.append((type(error), str(error).splitlines()[0]))
            except TypeError:
                errors.append("no such option")
        assert errors[0] == errors[1], options


def test_adafactor_takes_no_complex_parameters():
    for library in (cygrad, torch):
        (param, *_) = weights(library, "complex128")
        param.grad = param.detach()
        with pytest.raises(RuntimeError, match="^Adafactor does not support complex parameters"):
            library.optim.Adafactor([param]).step()


def test_adafactor_of_convolutions_and_half_precision():
    """Factors span the last two of four dimensions; the precision follows each parameter."""
    results = []
    for library in (cygrad, torch):
        rng = np.random.default_rng(0)
        params = [library.tensor(rng.standard_normal((3, 2, 5, 4)).astype(t), requires_grad=True) for t in ("f4", "f2")]
        for param in params:
            optimizer = library.optim.Adafactor([param], lr=library.tensor(0.1), weight_decay=0.1)
            for _ in range(20):
                param.grad = library.tensor(rng.standard_normal((3, 2, 5, 4)).astype(str(param.detach().numpy().dtype)))
                optimizer.step(lambda: None)
            results.append(param.detach().numpy())
    np.testing.assert_allclose(results[0], results[2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[1], results[3], rtol=1e-2, atol=1e-2)
