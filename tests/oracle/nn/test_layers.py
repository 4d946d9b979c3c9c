"""nn and optim against PyTorch: outputs, gradients, state dicts in both directions, twenty steps."""

import inspect

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def mlp(library):
    nn = library.nn
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4))


def same_weights(ours, theirs):
    """Copy the weights of PyTorch's module to ours."""
    ours.load_state_dict(theirs.state_dict())
    return ours


def arrays(tensors):
    return [tensor.detach().numpy() for tensor in tensors]


def close(ours, theirs, rtol=1e-5, atol=1e-6):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# ------------------------------------------------------------------ layers and losses

LAYERS = [
    ("Linear", (6, 3), {}),
    ("Linear", (6, 3), {"bias": False}),
    ("Identity", (), {}),
    ("ReLU", (), {}),
    ("Tanh", (), {}),
    ("Sigmoid", (), {}),
    ("Softmax", (), {"dim": 1}),
    ("LogSoftmax", (), {"dim": -1}),
    ("Flatten", (), {}),
    ("Dropout", (0.0,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), LAYERS, ids=lambda v: str(v))
def test_layers(name, args, kwargs):
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    ours = same_weights(getattr(cygrad.nn, name)(*args, **kwargs), theirs)
    assert repr(ours) == repr(theirs)
    results = []
    for library, module in ((cygrad, ours), (torch, theirs)):
        x = library.from_numpy(numbers(2, 5, 6)).requires_grad_()
        y = module(x)
        y.backward(library.from_numpy(numbers(*y.shape, seed=1)))
        results.append(arrays([y, x.grad, *(p.grad for p in module.parameters())]))
    close(*results)


LOSSES = [
    ("MSELoss", {}, lambda: numbers(5, 4, seed=1)),
    ("MSELoss", {"reduction": "none"}, lambda: numbers(5, 4, seed=1)),
    *(
        (name, options, lambda: np.array([0, 3, 1, 2, 2]))
        for name in ("NLLLoss", "CrossEntropyLoss")
        for options in (
            {},
            {"reduction": "sum"},
            {"reduction": "none", "ignore_index": 2},
            {"weight": np.array([0.5, 1, 2, 4], dtype=np.float32), "ignore_index": 3},
        )
    ),
    ("CrossEntropyLoss", {"label_smoothing": 0.2}, lambda: np.array([0, 3, 1, 2, 2])),
    ("CrossEntropyLoss", {}, lambda: np.abs(numbers(5, 4, seed=1))),
    (
        "CrossEntropyLoss",
        {"label_smoothing": 0.1, "weight": np.array([0.5, 1, 2, 4], dtype=np.float32)},
        lambda: np.abs(numbers(5, 4, seed=1)),
    ),
]


@pytest.mark.parametrize(("name", "options", "target"), LOSSES)
def test_losses(name, options, target):
    results = []
    for library in (cygrad, torch):
        own = {
            key: library.from_numpy(value) if isinstance(value, np.ndarray) else value for key, value in options.items()
        }
        x = library.from_numpy(numbers(5, 4)).requires_grad_()
        loss = getattr(library.nn, name)(**own)(x, library.from_numpy(target()))
        loss.sum().backward()
        results.append(arrays([loss, x.grad]))
    close(*results)


# ------------------------------------------------------------------ whole networks


def test_network_outputs_gradients_and_second_gradients():
    theirs = mlp(torch)
    ours = same_weights(mlp(cygrad), theirs)
    results = []
    for library, model in ((cygrad, ours), (torch, theirs)):
        x = library.from_numpy(numbers(9, 6)).requires_grad_()
        y = model(x)
        (slope,) = library.autograd.grad(y.sum(), x, create_graph=True)
        (y * y).mean().backward(retain_graph=True)
        (slope * slope).sum().backward()
        results.append(arrays([y, slope, x.grad, *(p.grad for p in model.parameters())]))
    close(*results)


def test_state_dicts_move_both_ways():
    theirs, ours = mlp(torch), mlp(cygrad)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata
    ours.load_state_dict(theirs.state_dict())
    x = numbers(3, 6)
    close([ours(cygrad.from_numpy(x)).detach().numpy()], [theirs(torch.from_numpy(x)).detach()])

    fresh = mlp(torch)
    fresh.load_state_dict({name: torch.from_numpy(t.numpy()) for name, t in ours.state_dict().items()})
    close(arrays(fresh.parameters()), arrays(theirs.parameters()))


@pytest.mark.parametrize(
    "bad",
    [
        lambda lib: {},
        lambda lib: {"weight": lib.ones(3, 3), "extra": lib.ones(1), "sub.key": lib.ones(1)},
        lambda lib: {"weight": lib.ones(3, 3), "bias": 3},
        lambda lib: {"weight": lib.ones(3, 2), "bias": lib.ones(3), "_extra_state": 1},
    ],
)
def test_mismatching_state_dicts_are_told_in_the_same_words(bad):
    texts = []
    for library in (cygrad, torch):
        with pytest.raises(RuntimeError) as caught:
            library.nn.Linear(2, 3).load_state_dict(bad(library))
        texts.append(str(caught.value).replace("cygrad.", "torch."))
    assert texts[0].startswith(texts[1])


# ------------------------------------------------------------------ optimizers

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "maximize": True}),
]


def train(library, model, optimizer, steps, first=0):
    for step in range(first, first + steps):
        x = library.from_numpy(numbers(8, 6, seed=step))
        target = library.from_numpy(np.arange(8) % 4)
        optimizer.zero_grad()
        library.nn.CrossEntropyLoss()(model(x), target).backward()
        optimizer.step()


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_twenty_steps(name, options):
    theirs = mlp(torch)
    ours = same_weights(mlp(cygrad), theirs)
    runs = [
        (library, model, getattr(library.optim, name)(model.parameters(), **options))
        for library, model in ((cygrad, ours), (torch, theirs))
    ]
    for library, model, optimizer in runs:
        train(library, model, optimizer, 20)
    close(arrays(ours.parameters()), arrays(theirs.parameters()), rtol=2e-4, atol=2e-5)
    (_, _, our_steps), (_, _, their_steps) = runs
    assert repr(our_steps) == repr(their_steps)
    a, b = our_steps.state_dict(), their_steps.state_dict()
    assert a["param_groups"] == b["param_groups"]
    assert {k: list(v) for k, v in a["state"].items()} == {k: list(v) for k, v in b["state"].items()}


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
@pytest.mark.parametrize("direction", ["from PyTorch", "to PyTorch"])
def test_training_goes_on_in_the_other_library(name, options, direction):
    source, target = (torch, cygrad) if direction == "from PyTorch" else (cygrad, torch)
    model = mlp(source)
    optimizer = getattr(source.optim, name)(model.parameters(), **options)
    train(source, model, optimizer, 5)

    other = mlp(target)
    other_optimizer = getattr(target.optim, name)(other.parameters(), **options)
    weights, state = model.state_dict(), optimizer.state_dict()
    if target is torch:
        weights, state = to_torch(weights), to_torch(state)
    other.load_state_dict(weights)
    other_optimizer.load_state_dict(state)
    train(source, model, optimizer, 5, first=5)
    train(target, other, other_optimizer, 5, first=5)
    close(arrays(other.parameters()), arrays(model.parameters()), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_complex_parameters(name, options):
    start, grads = (numbers(5, 3, seed=s) + 1j * numbers(5, 3, seed=s + 1) for s in (0, 2))
    results = []
    for library in (cygrad, torch):
        param = library.from_numpy(start.copy()).requires_grad_()
        optimizer = getattr(library.optim, name)([param], **options)
        for step in range(5):
            param.grad = library.from_numpy(grads * (step - 2.5))
            optimizer.step()
        results.append([param.detach().numpy()])
    close(*results)


def to_torch(value):
    """The same nested value with PyTorch tensors, which do not share memory with ours."""
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    if isinstance(value, cygrad.Tensor):
        return torch.from_numpy(value.numpy().copy())
    return value


# ------------------------------------------------------------------ signatures


def inspectable(name):
    """Whether a signature is informative: some of PyTorch's functions are compiled or pass on arbitrary arguments."""
    function = getattr(torch.nn.functional, name)
    return inspect.isfunction(function) and "args" not in inspect.signature(function).parameters


NAMES = [
    *("nn." + name for name in cygrad.nn.modules.__all__),
    *("nn.init." + name for name in cygrad.nn.init.__all__ if name.endswith("_")),
    *("nn.functional." + name for name in cygrad.nn.functional.__all__ if inspectable(name)),
    *("optim." + name for name in ("SGD", "Adam", "AdamW")),
]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_defaults_are_the_same(name):
    ours, theirs = (parameters_of(library, name) for library in (cygrad, torch))
    assert ours == theirs


def plain(default):
    """A dtype by its name; other values as they are."""
    return str(default) if isinstance(default, (cygrad.dtype, torch.dtype)) else default


def parameters_of(library, name):
    value = library
    for part in name.split("."):
        value = getattr(value, part)
    # PyTorch's Module passes *args on to other base classes; ours accept `out` in more places.
    hidden = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        (p.name, p.default.__name__ if inspect.isroutine(p.default) else plain(p.default))
        for p in inspect.signature(value).parameters.values()
        if p.kind not in hidden and p.name not in ("_stacklevel", "out")
    ]
