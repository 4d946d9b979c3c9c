"""Learning rate schedules against PyTorch's: fifty steps, state dicts, warnings, options and checks."""

import inspect
import warnings

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")

pytestmark = pytest.mark.oracle

# Each schedule as a function of the library's module and an optimizer.
SCHEDULES = {
    "LambdaLR": lambda m, o: m.LambdaLR(o, [lambda n: 0.95**n, lambda n: 1 / (n + 1)]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda n: 1 - 1 / (n + 2)),
    "StepLR": lambda m, o: m.StepLR(o, 7, 0.3),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [3, 20, 20, 41], gamma=0.5),
    "ConstantLR": lambda m, o: m.ConstantLR(o),
    "LinearLR": lambda m, o: m.LinearLR(o, total_iters=12),
    "LinearLR to 0": lambda m, o: m.LinearLR(o, 1.0, 0.0, total_iters=12),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.9),
    "ExponentialLR 0": lambda m, o: m.ExponentialLR(o, 0.0),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, 33, 1.7),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 11, 0.01),
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 7),
    "CosineAnnealingWarmRestarts x2": lambda m, o: m.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 7),
    "CyclicLR 2": lambda m, o: m.CyclicLR(o, [0.01, 0.02], 0.2, 7, 4, mode="triangular2"),
    "CyclicLR exp": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 7, mode="exp_range", gamma=0.95, cycle_momentum=False),
    "CyclicLR function": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 7, scale_fn=lambda x: 1 / x),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, 0.5, 60),
    "OneCycleLR linear": lambda m, o: m.OneCycleLR(
        o, [0.5, 1.0], epochs=6, steps_per_epoch=10, anneal_strategy="linear"
    ),
    "OneCycleLR three": lambda m, o: m.OneCycleLR(o, 0.5, 60, three_phase=True, pct_start=0.4),
    "ReduceLROnPlateau": lambda m, o: m.ReduceLROnPlateau(o, patience=2, factor=0.7, cooldown=1),
    "ReduceLROnPlateau max": lambda m, o: m.ReduceLROnPlateau(o, "max", 0.5, 3, 0.2, "abs", min_lr=[0.01, 0.001]),
    "SequentialLR": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, total_iters=8), m.CosineAnnealingLR(o, 20), m.ExponentialLR(o, 0.9)], [8, 30]
    ),
    "SequentialLR restarts": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1, 8), m.CosineAnnealingWarmRestarts(o, 9)], [8]
    ),
    "ChainedScheduler": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 8), m.StepLR(o, 5), m.LinearLR(o)]),
    "Sequential of chained": lambda m, o: m.SequentialLR(
        o, [m.ChainedScheduler([m.ConstantLR(o, 0.1, 8), m.ExponentialLR(o, 0.9)]), m.StepLR(o, 4)], [6]
    ),
}
NAMES = sorted({name.split()[0] for name in SCHEDULES} - {"Sequential"})
LIBRARIES = (cygrad, torch)


def optimizer_of(library, kind="SGD", lr=0.1):
    a, b = (library.zeros(2, requires_grad=True) for _ in range(2))
    options = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
    return getattr(library.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.03}], lr=lr, **options)


def advance(optimizer, scheduler, steps, first=0):
    """Return the rates and momentums of that many steps."""
    rows = []
    for i in range(first, first + steps):
        optimizer.step()
        metric = [np.sin(i * i)] if "Plateau" in type(scheduler).__name__ else []
        scheduler.step(*metric)
        momentum = [group.get("momentum", group.get("betas", [0])) for group in optimizer.param_groups]
        rows.append([*map(float, scheduler.get_last_lr()), *np.ravel(momentum)])
        assert [float(group["lr"]) for group in optimizer.param_groups] == rows[-1][:2]
    return rows


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:Detected call")  # chained schedulers in a sequence, in PyTorch too
def test_fifty_steps(name, kind):
    results = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library, kind)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        start = scheduler.get_last_lr()
        results.append([start, *advance(optimizer, scheduler, 50)])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1:], results[1][1:], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:Detected call")  # chained schedulers in a sequence, in PyTorch too
def test_state_dicts_are_exchanged(name):
    """A state saved by PyTorch's schedule after 13 steps continues here, and vice versa."""
    for source, target in (LIBRARIES, LIBRARIES[::-1]):
        rows = []
        saved = optimizer_of(source)
        scheduler = SCHEDULES[name](source.optim.lr_scheduler, saved)
        advance(saved, scheduler, 13)
        state = scheduler.state_dict()
        other = optimizer_of(target)
        resumed = SCHEDULES[name](target.optim.lr_scheduler, other)
        assert set(state) == set(resumed.state_dict())
        resumed.load_state_dict(state)
        other.load_state_dict(saved.state_dict())
        rows = [advance(saved, scheduler, 20, 13), advance(other, resumed, 20, 13)]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if not n.startswith(("Sequential", "Chained", "Reduce"))])
@pytest.mark.filterwarnings("ignore")
def test_given_epochs(name):
    results = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        rows = []
        for epoch in (3, 4, 20, 0, 12, 13):
            scheduler.step(epoch)
            rows.append(scheduler.get_last_lr())
        results.append(rows)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["StepLR", "CosineAnnealingLR", "ReduceLROnPlateau", "LinearLR"])
def test_rates_that_are_tensors(name):
    results = []
    for library in LIBRARIES:
        rate = library.tensor(0.1, dtype=library.float64)
        optimizer = optimizer_of(library, lr=rate)
        scheduler = SCHEDULES[name](library.optim.lr_scheduler, optimizer)
        results.append(advance(optimizer, scheduler, 20))
        assert optimizer.param_groups[0]["lr"] is rate
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10, atol=1e-14)


RESUMED = {
    "StepLR": (4, 0.5), "MultiStepLR": ([4, 6], 0.5), "ExponentialLR": (0.9,), "CosineAnnealingLR": (11,),
    "PolynomialLR": (20,), "LinearLR": (0.5, 1.0, 8), "ConstantLR": (0.5, 6),
}  # fmt: skip


@pytest.mark.parametrize("name", RESUMED)
def test_resumed_by_last_epoch(name):
    results = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library)
        for group in optimizer.param_groups:
            group["initial_lr"] = 0.2
        scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, *RESUMED[name], last_epoch=3)
        results.append([scheduler.get_last_lr(), *[row[:2] for row in advance(optimizer, scheduler, 15)]])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10, atol=1e-14)


def warned(library, action):
    optimizer = optimizer_of(library)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action(optimizer, scheduler)
    assert all(warning.filename == __file__ for warning in caught)
    return [(warning.category, str(warning.message)) for warning in caught]


def override(optimizer, scheduler):
    optimizer.step = lambda: None
    scheduler.step()


ACTIONS = {
    "in order": lambda o, s: (o.step(), s.step(), s.step()),
    "scheduler first": lambda o, s: (s.step(), o.step()),
    "epoch": lambda o, s: (o.step(), s.step(3)),
    "overridden": override,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_warnings(action):
    ours, theirs = (warned(library, ACTIONS[action]) for library in LIBRARIES)
    assert ours == theirs
    assert bool(ours) == (action != "in order")


def test_get_lr_warns():
    for library in LIBRARIES:
        scheduler = library.optim.lr_scheduler.StepLR(optimizer_of(library), 3)
        with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
            scheduler.get_lr()


@pytest.mark.parametrize("name", [*NAMES, "LRScheduler"])
def test_options(name):
    ours, theirs = (
        inspect.signature(getattr(library.optim.lr_scheduler, name)).parameters.values() for library in LIBRARIES
    )
    assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs]


BAD = [
    lambda m, o: m.StepLR("no optimizer", 3),
    lambda m, o: m.ReduceLROnPlateau(3),
    lambda m, o: m.ReduceLROnPlateau(o, factor=1.0),
    lambda m, o: m.ReduceLROnPlateau(o, "least"),
    lambda m, o: m.ReduceLROnPlateau(o, threshold_mode="least"),
    lambda m, o: m.ReduceLROnPlateau(o, min_lr=[1.0]),
    lambda m, o: m.LambdaLR(o, [abs]),
    lambda m, o: m.MultiplicativeLR(o, 0.5),
    lambda m, o: m.ConstantLR(o, 1.5),
    lambda m, o: m.LinearLR(o, 0.0),
    lambda m, o: m.LinearLR(o, 1.0, 2.0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 1, 0),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 2, eta_min="low"),
    lambda m, o: m.CosineAnnealingWarmRestarts(o, 2).step(-1),
    lambda m, o: m.CyclicLR(o, 0.1, 0.2, mode="round"),
    lambda m, o: m.CyclicLR(o, [0.1], 0.2),
    lambda m, o: m.OneCycleLR(o, 0.1),
    lambda m, o: m.OneCycleLR(o, 0.1, 0),
    lambda m, o: m.OneCycleLR(o, 0.1, epochs=-1, steps_per_epoch=1),
    lambda m, o: m.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    lambda m, o: m.OneCycleLR(o, 0.1, 10, anneal_strategy="round"),
    lambda m, o: [s.step() for s in [m.OneCycleLR(o, 0.1, 10)] for _ in range(20)],
    lambda m, o: m.SequentialLR(o, [], []),
    lambda m, o: m.SequentialLR(o, [m.StepLR(o, 3)], [4]),
    lambda m, o: m.SequentialLR(o, [m.ReduceLROnPlateau(o)], []),
    lambda m, o: m.SequentialLR(o, [3], []),
    lambda m, o: m.ChainedScheduler([]),
    lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]),
    lambda m, o: m.StepLR(o, 3, last_epoch=2),
]


@pytest.mark.parametrize("number", range(len(BAD)))
@pytest.mark.filterwarnings("ignore")
def test_checks(number):
    raised = []
    for library in LIBRARIES:
        with pytest.raises((TypeError, ValueError, KeyError)) as error:
            BAD[number](library.optim.lr_scheduler, optimizer_of(library))
        raised.append((error.type, str(error.value.args[0]).splitlines()[0]))
    assert raised[0] == raised[1]


def test_no_momentum_to_cycle():
    for library in LIBRARIES:
        optimizer = optimizer_of(library, "RMSprop")
        del optimizer.defaults["momentum"]
        for name, options in (("CyclicLR", (0.1, 0.2)), ("OneCycleLR", (0.1, 10))):
            with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
                getattr(library.optim.lr_scheduler, name)(optimizer, *options)


def test_all_schedules_are_there():
    assert set(torch.optim.lr_scheduler.__all__) == set(cygrad.optim.lr_scheduler.__all__)


ROUNDED = {
    "linear": lambda lr, o: lr.LinearLR(o, 0.3, 0.9, 7),
    "thirds": lambda lr, o: lr.LinearLR(o, 1 / 3, 1.0, 13),
    "polynomial": lambda lr, o: lr.PolynomialLR(o, 7, 1.7),
    "cyclic": lambda lr, o: lr.CyclicLR(o, 0.01, 0.13, 4, 5),
    "triangular2": lambda lr, o: lr.CyclicLR(o, 0.01, 0.1, 3, mode="triangular2"),
    "exp_range": lambda lr, o: lr.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.97),
    "cosine": lambda lr, o: lr.CosineAnnealingLR(o, 7, 0.003),
    "restarts": lambda lr, o: lr.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "one cycle": lambda lr, o: lr.OneCycleLR(o, 0.3, total_steps=20),
    "sequential": lambda lr, o: lr.SequentialLR(o, [lr.LinearLR(o, 0.1, 1, 3), lr.CosineAnnealingLR(o, 9)], [3]),
    "chained": lambda lr, o: lr.ChainedScheduler([lr.LinearLR(o, 0.3, total_iters=4), lr.ExponentialLR(o, 0.9)], o),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("rate", [0.1, 1 / 3])
def test_last_bits(name, rate):
    def rates(library):
        o = library.optim.SGD([library.nn.Parameter(library.ones(2))], lr=rate, momentum=0.9)
        scheduler, found = ROUNDED[name](library.optim.lr_scheduler, o), []
        for _ in range(18):
            found.append((scheduler.get_last_lr(), o.param_groups[0]["lr"], o.param_groups[0]["momentum"]))
            o.step()
            scheduler.step()
        return found

    assert rates(cygrad) == rates(torch)
