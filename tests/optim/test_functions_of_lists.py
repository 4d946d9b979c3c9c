"""Optimizers as functions of lists: they do what the classes do, and keep the state in the lists."""

import inspect

import pytest

import cygrad as torch
from cygrad.optim import _functional
from helpers import fails

BETAS = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
# Each function, its class, the entries of the state in its lists and options of the function.
CASES = [
    ("adam", "Adam", "exp_avg exp_avg_sq - step", {**BETAS, "amsgrad": False, "maximize": False, "weight_decay": 0.1}),
    (
        "adam",
        "Adam",
        "exp_avg exp_avg_sq max_exp_avg_sq step",
        {**BETAS, "amsgrad": True, "maximize": True, "weight_decay": 0.0},
    ),
    (
        "adamw",
        "AdamW",
        "exp_avg exp_avg_sq - step",
        {**BETAS, "amsgrad": False, "maximize": False, "weight_decay": 0.1},
    ),
    (
        "adadelta",
        "Adadelta",
        "square_avg acc_delta step",
        {"rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False},
    ),
    ("adagrad", "Adagrad", "sum step", {"lr_decay": 0.1, "eps": 1e-8, "weight_decay": 0.1, "maximize": False}),
    ("adamax", "Adamax", "exp_avg exp_inf step", {**BETAS, "weight_decay": 0.1}),
    ("asgd", "ASGD", "ax mu eta step", {"lambd": 1e-4, "t0": 1.0, "alpha": 0.7, "weight_decay": 0.1}),
    ("nadam", "NAdam", "exp_avg exp_avg_sq mu_product step", {**BETAS, "weight_decay": 0.1, "momentum_decay": 0.004}),
    ("radam", "RAdam", "exp_avg exp_avg_sq step", {**BETAS, "weight_decay": 0.1}),
    (
        "rmsprop",
        "RMSprop",
        "square_avg grad_avg momentum_buffer step",
        {"alpha": 0.9, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.9, "centered": True},
    ),
    (
        "rprop",
        "Rprop",
        "prev step_size step",
        {"step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2},
    ),
    (
        "sgd",
        "SGD",
        "momentum_buffer",
        {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": True, "maximize": False},
    ),
]
PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}


def of_class(options):
    """Return the options of the class for those of a function."""
    found = dict(options)
    for name, pair in PAIRS.items():
        if pair[0] in found:
            found[name] = tuple(found.pop(each) for each in pair)
    return found


def parameters():
    return [torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[0.5]])]


@pytest.mark.parametrize(("name", "kind", "entries", "options"), CASES)
def test_steps_are_those_of_the_class(name, kind, entries, options):
    options = options if name == "rprop" else {**options, "lr": 0.1}
    grads = [torch.tensor([0.1, -0.2, 0.3]), torch.tensor([[-2.0]])]
    expected = parameters()
    optimizer = getattr(torch.optim, kind)(expected, **{"lr": 0.1, **of_class(options)})
    for param, grad in zip(expected, grads):
        param.grad = grad
    optimizer.step()
    params = [param.clone() for param in expected]
    states = [optimizer.state[param] for param in expected]
    lists = [[] if entry == "-" else [state[entry].clone() for state in states] for entry in entries.split()]
    for _ in range(2):
        optimizer.step()
        assert getattr(_functional, name)(params, grads, *lists, **options) is None
    assert all(torch.equal(a, b) and a.grad is None for a, b in zip(params, expected))
    for entry, found in zip(entries.split(), lists):
        assert entry == "-" or all(torch.equal(a, state[entry]) for a, state in zip(found, states)), entry


def test_the_first_step_fills_the_list_of_buffers():
    buffers = [None, None]
    params = parameters()
    options = {"weight_decay": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False}
    _functional.sgd(params, [torch.ones(3), torch.ones(1, 1)], buffers, momentum=0.9, **options)
    assert [buffer.shape for buffer in buffers] == [(3,), (1, 1)] and params[1].item() == pytest.approx(0.4)


def test_steps_of_lists_are_recorded():
    w = torch.ones(2, requires_grad=True)
    param, steps, sums = w * 1, [torch.tensor(0.0)], [torch.zeros(2)]
    options = {"lr": 0.1, "weight_decay": 0.0, "lr_decay": 0.0, "eps": 1e-8, "maximize": False, "differentiable": True}
    _functional.adagrad([param], [param * 2], sums, steps, **options)
    assert steps[0] == 1 and sums[0].tolist() == [4, 4]
    assert torch.autograd.grad(param.sum(), w)[0].tolist() == pytest.approx([1, 1])


def test_signatures_and_wrong_arguments():
    assert str(inspect.signature(torch.optim.adadelta.adadelta)) == (
        "(params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None, differentiable=False, "
        "has_complex=False, *, lr, rho, eps, weight_decay, maximize) -> None"
    )
    one = [torch.ones(1)]
    options = {**BETAS, "lr": 0.1, "amsgrad": False, "maximize": False, "weight_decay": 0.0}
    with fails(RuntimeError, "API has changed, `state_steps` argument must contain a list of singleton tensors"):
        _functional.adam(one, one, one, one, [], [1], **options)
    with fails(TypeError, "missing a required ...argument: 'lr'"):
        _functional.adagrad(one, one, one, one, weight_decay=0.0, lr_decay=0.0, eps=0.1, maximize=False)


@pytest.mark.parametrize("is_infinite", [False, True])
def test_scaled_gradients(is_infinite):
    def arguments():
        params, grads = [torch.ones(2), torch.full((3,), 2.0)], [torch.full((2,), 4.0), torch.full((3,), 8.0)]
        zeros = [[torch.zeros_like(each) for each in params] for _ in range(2)]
        return params, grads, *zeros, [], [torch.tensor(0.0), torch.tensor(0.0)]

    options = {**BETAS, "amsgrad": False, "maximize": False, "weight_decay": 0.1, "lr": 0.1}
    found, expected = arguments(), arguments()
    torch.optim.adam.adam(*found, grad_scale=torch.tensor(4.0), found_inf=torch.tensor(float(is_infinite)), **options)
    if not is_infinite:
        for grad in expected[1]:
            grad.div_(4)
        torch.optim.adam.adam(*expected, **options)
    assert str(found) == str(expected)
