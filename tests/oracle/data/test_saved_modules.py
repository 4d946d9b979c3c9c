"""Whole modules, optimizers and schedulers pass between the libraries by `save` and `load(weights_only=False)`."""

import inspect
import io
import sys

import numpy as np
import pytest

import cygrad
from cygrad.serialization._names import find, of_torch

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

NAMED = {
    "AdaptiveLogSoftmaxWithLoss": (8, 10, [4]),
    "Bilinear": (2, 3, 4),
    "ChannelShuffle": (2,),
    "Embedding": (3, 2),
    "EmbeddingBag": (3, 2),
    "Fold": (4, 2),
    "GRU": (2, 3),
    "GRUCell": (2, 3),
    "GroupNorm": (1, 2),
    "LSTM": (2, 3, 2, True, False, 0.0, True),
    "LSTMCell": (2, 3),
    "Linear": (2, 3),
    "MultiheadAttention": (4, 2),
    "RNN": (2, 3),
    "RNNCell": (2, 3),
    "Threshold": (1.0, 2.0),
    "Transformer": (4, 2, 1, 1, 8),
    "TransformerDecoderLayer": (4, 2),
    "TransformerEncoderLayer": (4, 2),
    "Unflatten": (1, (2, 1)),
}
BY_PREFIX = {"Conv": (2, 4, 3), "ConstantPad": (1, 0.5), "LPPool": (2, 2), "MaxUnpool": (2,)}
WITHOUT = ("Lazy", "CrossMap", "DataParallel", "FractionalMaxPool", "LinearCross", "RNNBase", "RNNCellBase")


def arguments(name):
    if name in NAMED:
        return NAMED[name]
    for prefix, given in BY_PREFIX.items():
        if name.startswith(prefix):
            return given
    one = ("Norm", "Pool", "Pad", "Pixel", "Unfold", "Softmax")
    return (2,) if any(part in name for part in one) and "Softmax2d" not in name else ()


def layers():
    for name, kind in vars(torch.nn).items():
        if not inspect.isclass(kind) or not issubclass(kind, torch.nn.Module) or not hasattr(cygrad.nn, name):
            continue
        if name.startswith(WITHOUT) or name in ("TransformerEncoder", "TransformerDecoder", "Container"):
            continue
        yield name


def exchanged(value, source, target, **options):
    stream = io.BytesIO()
    source.save(value, stream, **options)
    stream.seek(0)
    return target.load(stream, weights_only=False)


def attributes(module):
    """What a module consists of, as plain values."""
    found = {}
    for name, value in vars(module).items():
        if name in ("_parameters", "_buffers"):
            found[name] = {
                key: None if value is None else value.detach().float().numpy().tolist() for key, value in value.items()
            }
        elif name == "_modules":
            found[name] = {key: None if part is None else attributes(part) for key, part in value.items()}
        elif name not in ("_flat_weights", "_flat_weight_refs") and "hook" not in name:
            found[name] = getattr(value, "__name__", str(value))
    return found


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", list(layers()))
def test_layers(name):
    theirs = getattr(torch.nn, name)(*arguments(name))
    ours = exchanged(theirs, torch, cygrad)
    assert type(ours) is getattr(cygrad.nn, name) and repr(ours) == repr(theirs)
    back = exchanged(ours, cygrad, torch)
    assert type(back) is type(theirs)
    assert attributes(back) == attributes(theirs)
    if name == "LSTM":
        assert all(a is b for a, b in zip(back._flat_weights, back.parameters(), strict=True))


def test_a_model_computes_the_same():
    torch.manual_seed(0)
    nn = torch.nn
    theirs = nn.Sequential(
        nn.Conv1d(3, 4, 3, padding="same", padding_mode="circular"), nn.BatchNorm1d(4), nn.GELU(), nn.Flatten()
    )
    theirs.append(nn.Linear(20, 2)).eval()
    x = np.linspace(-1, 1, 30, dtype=np.float32).reshape(2, 3, 5)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    ours = exchanged(theirs, torch, cygrad)
    np.testing.assert_allclose(ours(cygrad.from_numpy(x)).detach().numpy(), expected, 1e-5, 1e-6)
    back = exchanged(ours.train(), cygrad, torch)
    assert back.training and back[1].training
    np.testing.assert_allclose(back.eval()(torch.from_numpy(x)).detach().numpy(), expected, 1e-5, 1e-6)


def test_recurrent_layers_compute_the_same():
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 2, 2)
    for name in ("LSTM", "GRU"):
        theirs = getattr(torch.nn, name)(2, 3)
        ours = exchanged(theirs, torch, cygrad)
        back = exchanged(ours, cygrad, torch)
        expected = theirs(torch.from_numpy(x))[0].detach().numpy()
        np.testing.assert_allclose(ours(cygrad.from_numpy(x))[0].detach().numpy(), expected, 1e-5, 1e-6)
        np.testing.assert_allclose(back(torch.from_numpy(x))[0].detach().numpy(), expected, 1e-5, 1e-6)


@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch)])
def test_the_old_format(source, target):
    layer = source.nn.Sequential(source.nn.Linear(2, 3), source.nn.ReLU())
    found = exchanged(layer, source, target, _use_new_zipfile_serialization=False)
    assert type(found[0]) is target.nn.Linear
    np.testing.assert_array_equal(found[0].weight.detach().numpy(), layer[0].weight.detach().numpy())


def doubled(module, args, kwargs, output):
    return output * 2


def before(module, args):
    return (args[0] + 1,)


def renamed(module, state_dict, prefix, *rest):
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")


@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch)])
def test_hooks_come_along(source, target):
    layer = source.nn.Linear(1, 1, bias=False)
    with source.no_grad():
        layer.weight.fill_(3)
    layer.register_forward_hook(doubled, with_kwargs=True, always_call=True)
    layer.register_forward_pre_hook(before)
    layer.register_load_state_dict_pre_hook(renamed)
    found = exchanged(layer, source, target)
    assert found(target.ones(1, 1)).item() == 12
    found.load_state_dict({"w": target.ones(1, 1)})
    assert found(target.ones(1, 1)).item() == 4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch), (cygrad, cygrad)])
def test_lazy_layers_take_their_shape_in_the_other_library(source, target):
    layer = source.nn.Sequential(source.nn.LazyLinear(2), source.nn.LazyBatchNorm1d())
    found = exchanged(layer, source, target)
    assert found(target.ones(3, 4)).shape == (3, 2)
    assert type(found[0]) is target.nn.Linear and found[1].num_features == 2
    assert not found[0]._forward_pre_hooks and not found[0]._load_state_dict_pre_hooks
    found = exchanged(layer, source, target)
    found.load_state_dict({name: target.ones(2, 5) for name in ("0.weight",)}, strict=False)
    assert found[0].weight.shape == (2, 5)


def shared(library):
    model = library.nn.ModuleDict({"a": library.nn.Linear(2, 2, bias=False), "b": library.nn.Linear(2, 2, bias=False)})
    model["b"].weight = model["a"].weight
    return model


@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch), (cygrad, cygrad)])
def test_tied_weights_stay_tied(source, target):
    found = exchanged(shared(source), source, target)
    assert found["a"].weight is found["b"].weight


OPTIMIZERS = "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD".split()


def trained(library, name):
    model = library.nn.Linear(2, 1)
    with library.no_grad():
        model.weight.copy_(library.tensor([[0.5, -0.25]]))
        model.bias.zero_()
    optimizer = getattr(library.optim, name)(model.parameters(), lr=0.1)
    steps(library, model, optimizer, 2)
    return model, optimizer


def steps(library, model, optimizer, count):
    x = library.tensor([[1.0, 2.0], [3.0, -1.0]])

    def closure():
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(count):
        optimizer.step(closure)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch)])
def test_optimizers_go_on_with_their_model(name, source, target):
    model, optimizer = trained(source, name)
    found, stepper = exchanged((model, optimizer), source, target)
    assert type(stepper) is getattr(target.optim, name)
    assert stepper.param_groups[0]["params"][0] is found.weight
    steps(source, model, optimizer, 2)
    steps(target, found, stepper, 2)
    np.testing.assert_allclose(found.weight.detach().numpy(), model.weight.detach().numpy(), 1e-4, 1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("StepLR", {"step_size": 2}),
        ("MultiStepLR", {"milestones": [2, 3]}),
        ("ExponentialLR", {"gamma": 0.5}),
        ("CosineAnnealingLR", {"T_max": 5}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3}),
        ("LinearLR", {}),
        ("ConstantLR", {}),
        ("PolynomialLR", {}),
        ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}),
        ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5}),
    ],
)
@pytest.mark.parametrize(("source", "target"), [(torch, cygrad), (cygrad, torch)])
def test_schedulers(name, options, source, target):
    def make(library):
        optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1, momentum=0.9)
        schedule = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        return optimizer, schedule

    def go_on(optimizer, schedule):
        rates = []
        for _ in range(4):
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
        return rates

    made = make(source)
    go_on(*made)
    optimizer, schedule = exchanged(made, source, target)
    assert schedule.optimizer is optimizer
    assert go_on(optimizer, schedule) == pytest.approx(go_on(*made))


# --- Names -----------------------------------------------------------------------------------------------

PACKAGES = (
    "nn optim optim.lr_scheduler optim.swa_utils distributions distributions.transforms utils.data nn.utils.rnn "
    "nn.utils.prune nn.utils.parametrizations amp nn.parameter"
).split()


def public_classes():
    for package in PACKAGES:
        __import__(f"torch.{package}"), __import__(f"cygrad.{package}")
        theirs, ours = sys.modules[f"torch.{package}"], sys.modules[f"cygrad.{package}"]
        for name, kind in vars(theirs).items():
            own = getattr(ours, name, None)
            if inspect.isclass(kind) and kind.__module__.startswith("torch") and inspect.isclass(own):
                yield pytest.param(kind, own, id=f"{package}.{name}")


@pytest.mark.parametrize(("theirs", "ours"), list(public_classes()))
def test_classes_have_the_names_of_torch(theirs, ours):
    assert of_torch(ours) == (theirs.__module__, theirs.__qualname__)
    assert find(theirs.__module__, theirs.__qualname__) is ours
