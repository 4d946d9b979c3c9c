"""optim.swa_utils and optim.Muon against PyTorch's."""

import importlib
import inspect

import numpy as np
import pytest
from oracle.programs import compare, fill

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle


def swa(lib):
    return importlib.import_module(f"{lib.__name__}.optim.swa_utils")


def changed(model, scale):
    """Change the parameters of a model."""
    for p in fill(model).parameters():
        p.data = p.data * scale
    return model


def averages(lib):
    utils = swa(lib)
    return {
        "mean": {},
        "swa": {"avg_fn": utils.get_swa_avg_fn()},
        "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
        "multi swa": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        "multi ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
        "own": {"avg_fn": lambda average, current, n: average + current * n},
    }


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("name", ["mean", "swa", "ema", "multi swa", "multi ema", "own"])
def test_averaged_models(name, use_buffers):
    def program(lib, say):
        nn = lib.nn
        model = fill(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=not use_buffers)))
        model[0].register_buffer("scale", lib.ones(2))
        if (name, use_buffers) != ("multi swa", True):  # an error, after which either dtype may have been averaged
            model[0].register_buffer("counts", lib.tensor([1, 100, -100]))
        average = swa(lib).AveragedModel(model, use_buffers=use_buffers, **averages(lib)[name])
        say(average)
        say(dict(average.state_dict()))
        for scale in (1.0, -2.0, 5.0):
            changed(model, scale)
            for buffer in model[0].buffers():
                buffer.add_(7)
            model(lib.arange(12.0).reshape(4, 3))
            say(lambda: average.update_parameters(model))
            say(dict(average.state_dict()))
        say(average.eval().module[0](lib.ones(2, 3)))
        say(lambda: average.load_state_dict(average.state_dict()))

    compare(program)


def test_the_mean_of_integers_in_a_list():
    def program(lib, say):
        update, mean = swa(lib).get_swa_multi_avg_fn(), lib.tensor([1, 5])
        say(lambda: update([mean], [lib.tensor([2, 9])], lib.tensor(1)))
        say(mean)

    compare(program)


def test_functions_of_averaging():
    def program(lib, say):
        utils, one, two = swa(lib), lib.tensor([1.0]), lib.tensor([2.0])
        say(lambda: utils.AveragedModel(lib.nn.Linear(1, 1), avg_fn=lambda *a: 0, multi_avg_fn=lambda *a: 0))
        for decay in (1.5, -1.0):
            say(lambda: utils.get_ema_avg_fn(decay))
            say(lambda: utils.get_ema_multi_avg_fn(decay))
        for n in (1, lib.tensor(3)):
            say(utils.get_ema_avg_fn()(one, two, n))
            say(utils.get_swa_avg_fn()(one, two, n))
        x = lib.nn.Parameter(lib.ones(1))
        utils.get_ema_multi_avg_fn(0.5)([x], [two], 1)
        say(x)

    compare(program)


def test_update_bn():
    def program(lib, say):
        utils, nn, x = swa(lib), lib.nn, lib.arange(6.0).reshape(3, 2)
        model = fill(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, momentum=0.3), nn.BatchNorm1d(2))).eval()
        say(lambda: utils.update_bn([x, (x * 2, x), [x * 3]], model, device="cpu"))
        say([dict(model.state_dict()), model.training, model[1].training, model[1].momentum, model[2].momentum])
        say(lambda: utils.update_bn([x], nn.Linear(5, 5)))

    compare(program)


@pytest.mark.parametrize(
    ("swa_lr", "options"),
    [
        (0.05, {}),
        (0.05, {"anneal_strategy": "linear", "anneal_epochs": 3}),
        ([0.05, 0.1], {"anneal_epochs": 2}),
        (0.05, {"anneal_epochs": 0}),
        (0.05, {"anneal_epochs": -1}),
        (0.05, {"anneal_epochs": 2.5}),
        (0.05, {"anneal_strategy": "x"}),
        ([0.1], {}),
    ],
    ids=str,
)
def test_swalr(swa_lr, options):
    def program(lib, say):
        params = [lib.nn.Parameter(lib.ones(1)) for _ in range(2)]
        optimizer = lib.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=1.0)
        made = []
        say(lambda: made.append(swa(lib).SWALR(optimizer, swa_lr, **options)))
        if not made:
            return
        for step in range(8):
            say([group["lr"] for group in optimizer.param_groups])
            say({key: value for key, value in made[0].state_dict().items() if key != "_initial_step"})
            optimizer.step()
            made[0].step()
            if step == 3:
                again = swa(lib).SWALR(optimizer, swa_lr, **options)
                again.load_state_dict(made[0].state_dict())
                made[0] = again
        say(lambda: made[0].get_lr())

    compare(program)


# ------------------------------------------------------------------ Muon


def muon(lib, shape, steps, options, state=None):
    """A parameter and its optimizer after some steps."""
    rng = np.random.default_rng(0)
    start, grads = rng.standard_normal(shape), rng.standard_normal((10, *shape))
    param = lib.nn.Parameter(lib.tensor(start))
    optimizer = lib.optim.Muon([param], **options)
    first = 0
    if state is not None:
        param.data, saved, first = lib.tensor(state[0]), state[1], state[2]
        optimizer.load_state_dict(saved)
    for i in range(first, first + steps):
        param.grad = lib.tensor(grads[i])
        optimizer.step()
    return param, optimizer


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (5, 5), (2, 30)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nesterov": False, "momentum": 0.5},
        {"adjust_lr_fn": "match_rms_adamw"},
        {"adjust_lr_fn": "original", "weight_decay": 0.0},
    ],
    ids=str,
)
def test_muon(shape, options):
    """Both iterate in the precision of bfloat16, so that they take the same steps."""
    options = {"lr": 0.01, **options}
    (ours, a), (theirs, b) = (muon(lib, shape, 5, options) for lib in (cygrad, torch))
    start, _ = muon(torch, shape, 0, options)
    way = (theirs - start).abs().max().item()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), atol=1e-5 * way)
    assert a.state_dict()["param_groups"] == b.state_dict()["param_groups"]
    (mine,), (other,) = (list(o.state_dict()["state"].values()) for o in (a, b))
    assert list(mine) == list(other)
    np.testing.assert_allclose(mine["momentum_buffer"].numpy(), other["momentum_buffer"].numpy(), rtol=1e-10)

    saved = b.state_dict()
    again, _ = muon(cygrad, shape, 5, options, (theirs.detach().numpy(), saved, 5))
    reference, _ = muon(torch, shape, 10, options)
    np.testing.assert_allclose(again.detach().numpy(), reference.detach().numpy(), atol=1e-5 * way)
    back = a.state_dict()
    for values in back["state"].values():
        values.update({k: torch.tensor(v.numpy()) for k, v in values.items()})
    there, _ = muon(torch, shape, 5, options, (ours.detach().numpy(), back, 5))
    np.testing.assert_allclose(there.detach().numpy(), reference.detach().numpy(), atol=1e-5 * way)


def test_checks_and_arguments_of_muon():
    def program(lib, say):
        def make(*shape, dtype=lib.float32, **options):
            return lib.optim.Muon([lib.nn.Parameter(lib.ones(shape, dtype=dtype))], **options)

        say(make(2, 2))
        say(lambda: make(3))
        say(lambda: make(3, 3, 3))
        for bad in ({"lr": -1.0}, {"momentum": -1.0}, {"weight_decay": -1.0}, {"adjust_lr_fn": "x"}):
            say(lambda: make(2, 2, **bad))
        say(lambda: make(2, 2, lr=lib.ones(2)))
        for dtype, options in [
            (lib.float32, {"ns_steps": 100}),
            (lib.float32, {"ns_coefficients": (1, 2)}),
            (lib.complex64, {}),
        ]:
            optimizer = make(2, 2, dtype=dtype, **options)
            optimizer.param_groups[0]["params"][0].grad = lib.ones(2, 2, dtype=dtype)
            say(lambda: optimizer.step())
        zero = make(2, 2, weight_decay=0.0)
        zero.param_groups[0]["params"][0].grad = lib.zeros(2, 2)
        say(lambda: zero.step(lambda: lib.tensor(3.0)))
        say(zero.param_groups[0]["params"][0])

    compare(program)


@pytest.mark.parametrize("name", ["optim.Muon", "optim.swa_utils.AveragedModel", "optim.swa_utils.SWALR"])
def test_arguments(name):
    kinds = []
    for value in (cygrad, torch):
        for part in name.split("."):
            value = getattr(value, part)
        kinds.append([(p.name, p.default, p.kind) for p in inspect.signature(value).parameters.values()])
    assert kinds[0] == kinds[1]
