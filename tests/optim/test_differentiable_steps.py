"""Steps recorded with `differentiable=True` have the gradients that differences of their results give."""

import numpy as np
import pytest

import cygrad as torch

PARAMETER = [0.6, -0.4, 1.5]
GRADIENT = [0.3, 0.8, -0.7]
# The state before the first step; its entries are as distinct as they are in training.
STATES = {
    "Adadelta": {"square_avg": [0.5, 0.9, 0.7], "acc_delta": [0.2, 0.3, 0.4]},
    "Adagrad": {"sum": [0.5, 0.9, 0.7]},
    "Adam": {"exp_avg": [0.2, -0.1, 0.4], "exp_avg_sq": [0.5, 0.9, 0.7]},
    "AdamW": {"exp_avg": [0.2, -0.1, 0.4], "exp_avg_sq": [0.5, 0.9, 0.7]},
    "Adamax": {"exp_avg": [0.2, -0.1, 0.4], "exp_inf": [0.1, 0.2, 1.7]},
    "ASGD": {"ax": [0.5, -0.3, 1.2], "eta": 0.01, "mu": 0.5},
    "NAdam": {"exp_avg": [0.2, -0.1, 0.4], "exp_avg_sq": [0.5, 0.9, 0.7], "mu_product": 0.9},
    "RAdam": {"exp_avg": [0.2, -0.1, 0.4], "exp_avg_sq": [0.5, 0.9, 0.7]},
    "RMSprop": {"square_avg": [0.5, 0.9, 0.7]},
    "Rprop": {"prev": [0.1, 0.2, -0.1], "step_size": [0.1, 0.2, 0.3]},
    "SGD": {"momentum_buffer": [0.2, -0.1, 0.4]},
}
# Options whose gradients are checked: recorded formulas take tensors for them.
OPTIONS = {
    "Adadelta": {"lr": 0.3, "rho": 0.8, "weight_decay": 0.1},
    "Adagrad": {"lr": 0.3, "weight_decay": 0.1},
    "Adam": {"lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "AdamW": {"lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "Adamax": {"lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "ASGD": {"lr": 0.3, "weight_decay": 0.1},
    "NAdam": {"lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "RAdam": {"lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "RMSprop": {"lr": 0.3, "alpha": 0.8, "weight_decay": 0.1},
    "Rprop": {},
    "SGD": {"lr": 0.3, "momentum": 0.9, "weight_decay": 0.1},
}
MORE = [
    ("Adam", {"amsgrad": True, "maximize": True}, {"max_exp_avg_sq": [0.1, 1.3, 0.2]}),
    ("NAdam", {"decoupled_weight_decay": True}, {}),
    ("RAdam", {"decoupled_weight_decay": True}, {}),
    ("RMSprop", {"centered": True, "momentum": 0.9}, {"grad_avg": [0.1, 0.2, 0.1], "momentum_buffer": [0.1, 0.3, 0.2]}),
    ("SGD", {"nesterov": True}, {}),
]


def arguments_of(name, more_state):
    """Return the names and numbers of everything that a step depends on."""
    found = {"parameter": PARAMETER, "gradient": GRADIENT, **STATES[name], **more_state}
    for key, value in OPTIONS[name].items():
        found.update({f"{key}{i}": v for i, v in enumerate(value)} if isinstance(value, tuple) else {key: value})
    return {key: np.asarray(value, float) for key, value in found.items()}


def total_after_steps(name, fixed, values, state_names):
    """Return a weighted sum of the parameter and the state after two steps with the same gradient."""
    options = {
        key: tuple(values[f"{key}{i}"] for i in range(len(value))) if isinstance(value, tuple) else values[key]
        for key, value in OPTIONS[name].items()
    }
    parameter = values["parameter"].clone()
    parameter.grad = values["gradient"]
    optimizer = getattr(torch.optim, name)([parameter], differentiable=True, **options, **fixed)
    state = optimizer.state[parameter]
    if name != "SGD":
        state["step"] = torch.tensor(10.0)
    state.update({key: values[key].clone() for key in state_names})
    for _ in range(2):
        optimizer.step()
    results = [parameter, *(state[key] for key in state_names)]
    return sum((r * torch.arange(1.0, r.numel() + 1, dtype=torch.float64).view(r.shape)).sum() for r in results)


@pytest.mark.parametrize(
    "name, fixed, more_state", [*((name, {}, {}) for name in STATES), *MORE], ids=[*STATES, *(m[0] + "+" for m in MORE)]
)
def test_gradients_of_two_steps(name, fixed, more_state):
    numbers = arguments_of(name, more_state)
    state_names = [*STATES[name], *more_state]
    values = {key: torch.tensor(value, requires_grad=True) for key, value in numbers.items()}
    total = total_after_steps(name, fixed, values, state_names)
    found = dict(zip(values, torch.autograd.grad(total, list(values.values()), allow_unused=True), strict=True))

    def result(key, index, change):
        moved = {k: v.copy() for k, v in numbers.items()}
        moved[key][index] += change
        return total_after_steps(name, fixed, {k: torch.tensor(v) for k, v in moved.items()}, state_names).item()

    for key, value in numbers.items():
        expected = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            expected[index] = (result(key, index, 1e-6) - result(key, index, -1e-6)) / 2e-6
        gradient = np.zeros(value.shape) if found[key] is None else found[key].numpy()
        np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize(
    "name, options", [*((n, {"differentiable": d}) for n in STATES for d in (False, True)), ("Adafactor", {})]
)
def test_numbers_in_a_loaded_state_become_tensors(name, options):
    recorded = options.get("differentiable")

    def made():
        leaf = torch.tensor([[0.5, -1.0], [2.0, 3.0]], requires_grad=True)
        parameter = leaf * 1 if recorded else leaf
        return parameter, getattr(torch.optim, name)([parameter], lr=0.1, **options)

    def step(parameter, optimizer):
        parameter.grad = torch.tensor([[0.5, 1.0], [-1.0, 0.25]])
        optimizer.step()

    parameter, optimizer = made()
    for _ in range(3):
        step(parameter, optimizer)
    saved = optimizer.state_dict()
    old = {"param_groups": saved["param_groups"], "state": {}}
    for number, state in saved["state"].items():  # as PyTorch 1.11 wrote it
        old["state"][number] = {
            key: int(value) if key == "step" else value.item() if value.dim() == 0 else value
            for key, value in state.items()
        }
    results = []
    for state_dict in (saved, old):
        parameter, optimizer = made()
        optimizer.load_state_dict(state_dict)
        assert all(isinstance(value, torch.Tensor) for value in optimizer.state[parameter].values())
        step(parameter, optimizer)
        results.append(parameter.tolist())
    assert results[0] == results[1]


def test_numbers_in_the_state_of_other_optimizers_stay():
    class Counting(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

    parameter = torch.ones(2, requires_grad=True)
    optimizer = Counting([parameter])
    optimizer.state[parameter]["step"] = 3
    loaded = Counting([parameter])
    loaded.load_state_dict(optimizer.state_dict())
    assert loaded.state[parameter] == {"step": 3} and type(loaded.state[parameter]["step"]) is int
