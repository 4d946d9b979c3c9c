"""Learning rate schedules against their formulas."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import cygrad as torch
from cygrad.optim import lr_scheduler as schedules

N = np.arange(31)
UP = np.minimum(N, 10) / 10
CYCLE = 1 - np.abs(N % 10 - 5) / 5
# Each schedule with initial rate 0.5, and its rates in epochs 0 to 30.
CASES = [
    (lambda o: schedules.LambdaLR(o, lambda n: 0.9**n), 0.5 * 0.9**N),
    (lambda o: schedules.MultiplicativeLR(o, lambda n: 0.9), 0.5 * 0.9**N),
    (lambda o: schedules.StepLR(o, 7, 0.3), 0.5 * 0.3 ** (N // 7)),
    (lambda o: schedules.MultiStepLR(o, [4, 9, 9], 0.3), 0.5 * 0.3 ** ((N >= 4) + 2.0 * (N >= 9))),
    (lambda o: schedules.ConstantLR(o, 0.2, 6), np.where(N < 6, 0.1, 0.5)),
    (lambda o: schedules.LinearLR(o, 0.2, 0.8, 10), 0.5 * (0.2 + 0.6 * UP)),
    (lambda o: schedules.ExponentialLR(o, 0.9), 0.5 * 0.9**N),
    (lambda o: schedules.PolynomialLR(o, 10, 2.0), 0.5 * (1 - UP) ** 2),
    (lambda o: schedules.CosineAnnealingLR(o, 9, 0.1), 0.1 + 0.2 * (1 + np.cos(np.pi * N / 9))),
    (lambda o: schedules.CosineAnnealingWarmRestarts(o, 9, 1, 0.1), 0.1 + 0.2 * (1 + np.cos(np.pi * (N % 9) / 9))),
    (lambda o: schedules.CyclicLR(o, 0.1, 0.4, 5), 0.1 + 0.3 * CYCLE),
    (lambda o: schedules.CyclicLR(o, 0.1, 0.4, 5, mode="triangular2"), 0.1 + 0.3 * CYCLE * 0.5 ** (N // 10)),
    (
        lambda o: schedules.OneCycleLR(o, 1.0, 41, pct_start=11 / 41, anneal_strategy="linear"),
        np.where(N <= 10, 0.04 + 0.096 * N, 1 - (1 - 4e-6) * (N - 10) / 30),
    ),
    (
        lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.2, 99), schedules.ExponentialLR(o, 0.9)], [8]),
        np.where(N < 8, 0.1, 0.5 * 0.9 ** (N - 8.0)),
    ),
    (
        lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 7, 0.3), schedules.ExponentialLR(o, 0.9)]),
        0.5 * 0.3 ** (N // 7) * 0.9**N,
    ),
]


def optimizer_of(lr=0.5):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr, momentum=0.9)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_formula(number):
    make, expected = CASES[number]
    optimizer = optimizer_of()
    scheduler = make(optimizer)
    rates = [scheduler.get_last_lr()[0]]
    for _ in N[1:]:
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, expected, rtol=1e-9, atol=1e-15)


def test_plateau():
    scheduler = schedules.ReduceLROnPlateau(optimizer_of(), factor=0.5, patience=1, cooldown=2, min_lr=0.2)
    rates = []
    for loss in [3, 2, 2, 2, 2, 2, 2, 2, 1, 1]:
        scheduler.step(torch.tensor(float(loss)))
        rates += scheduler.get_last_lr()
    # two epochs without progress halve the rate, followed by two epochs of cooldown
    assert rates == [0.5] * 3 + [0.25] * 4 + [0.2] * 3


def test_cyclic_momentum():
    optimizer = optimizer_of()
    scheduler = schedules.CyclicLR(optimizer, 0.1, 0.4, 2)
    momentum = []
    for _ in range(4):
        momentum.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        scheduler.step()
    np.testing.assert_allclose(momentum, [0.9, 0.85, 0.8, 0.85])


def test_a_callable_object_is_saved():
    class Power:
        def __init__(self, base):
            self.base = base

        def __call__(self, n):
            return self.base**n

    state = schedules.LambdaLR(optimizer_of(), Power(0.5)).state_dict()
    function = Power(0.1)
    schedules.LambdaLR(optimizer_of(), function).load_state_dict(state)
    assert function.base == 0.5
    assert state["lr_lambdas"] == [{"base": 0.5}]


def test_one_cycle_takes_the_function_of_old_files():
    scheduler = schedules.OneCycleLR(optimizer_of(), 1.0, 41)
    old = {name: value for name, value in scheduler.state_dict().items() if name != "_anneal_func_type"}
    del scheduler._anneal_func_type
    scheduler.load_state_dict({**old, "anneal_func": lambda start, end, pct: start + end + pct})
    scheduler.optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [pytest.approx(0.04 + 1 + 1 / 11.3)]


def test_optimizers_with_schedules_are_copied_and_freed():
    optimizer = optimizer_of()
    scheduler = schedules.StepLR(optimizer, 1)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert other.param_groups[0]["initial_lr"] == 0.5
        other.step()
    assert not hasattr(optimizer, "_has_stepped")
    weak = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert weak() is None  # freed without the cycle collector
    finally:
        gc.enable()


def test_order_is_watched():
    scheduler = schedules.StepLR(optimizer_of(), 1)
    with pytest.warns(UserWarning, match=r"lr_scheduler.step\(\)` before `optimizer.step\(\)"):
        scheduler.step()


def test_import_is_lazy():
    code = "import sys, cygrad; assert 'cygrad.optim' not in sys.modules; cygrad.optim.lr_scheduler.StepLR"
    subprocess.run([sys.executable, "-c", code], check=True)
