"""Steps of every optimizer, replayed while schedules change what is in their groups: eager's bits, and one plan."""

import functools

import pytest
from compile.twins import Twins, World

import cygrad
from cygrad import nn
from cygrad.compiler import _state, _step, _watching

optim = cygrad.optim

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.05),
    "SGD, momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.25, weight_decay=0.1),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, maximize=True),
    "Adam": lambda p: optim.Adam(p, lr=0.05, weight_decay=0.1),
    "Adam, AMSGrad": lambda p: optim.Adam(p, lr=0.05, amsgrad=True, maximize=True),
    "Adam, capturable": lambda p: optim.Adam(p, lr=0.05, capturable=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.05),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.05, weight_decay=0.1),
    "RMSprop, momentum": lambda p: optim.RMSprop(p, lr=0.05, momentum=0.9),
    "RMSprop, centered": lambda p: optim.RMSprop(p, lr=0.05, momentum=0.9, centered=True, maximize=True),
    "RMSprop, centered alone": lambda p: optim.RMSprop(p, lr=0.05, centered=True, capturable=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.05, weight_decay=0.1),
    "NAdam, decoupled": lambda p: optim.NAdam(p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda p: optim.RAdam(p, lr=0.05),
    "RAdam, decoupled": lambda p: optim.RAdam(p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "Adamax": lambda p: optim.Adamax(p, lr=0.05, weight_decay=0.1, maximize=True),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.5, weight_decay=0.1),
    "ASGD": lambda p: optim.ASGD(p, lr=0.05, t0=3, weight_decay=0.1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.05),
}


def scheduled(twins, times=14, change=None):
    """Do steps whose rate changes each time."""
    schedules = twins.both(lambda world: optim.lr_scheduler.ExponentialLR(world.optimizer, 0.9))
    for i in range(times):
        twins.run(1)
        for schedule in schedules:
            schedule.step()
        if change is not None:
            twins.both(functools.partial(change, i=i))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_rate_that_is_scheduled(name):
    twins = Twins(lambda: World(OPTIMIZERS[name]))
    scheduled(twins)
    assert twins.replays >= 9, twins.compiled.explain()
    assert len(twins.compiled._cygrad_step.plans) == 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_double_precision_and_threads(name):
    def world():
        made = World(layers=lambda: (nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 3)))
        made.net.double()
        made.optimizer = OPTIMIZERS[name](made.net.parameters())
        made.x, made.y = cygrad.randn(5, 300, dtype=cygrad.float64), cygrad.randn(5, 3, dtype=cygrad.float64)
        return made

    former = cygrad.get_num_threads()
    cygrad.set_num_threads(2)
    try:
        twins = Twins(world)
        scheduled(twins, 8)
        assert twins.replays >= 3, twins.compiled.explain()
    finally:
        cygrad.set_num_threads(former)


def test_rates_that_begin_at_zero():
    twins = Twins(lambda: World(lambda p: optim.AdamW(p, lr=0.1)))
    schedules = twins.both(lambda world: optim.lr_scheduler.LambdaLR(world.optimizer, lambda epoch: epoch / 10))
    for _ in range(12):
        twins.run(1)
        for schedule in schedules:
            schedule.step()
    assert twins.replays >= 7 and len(twins.compiled._cygrad_step.plans) == 1


def test_momentum_that_is_scheduled():
    def change(world, i):
        for group in world.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (0.8 + i / 100, 0.99 + i / 10_000)
            else:
                group["momentum"] = 0.8 + i / 100
            group["weight_decay"] = 0.1 + i

    for name in ("SGD, momentum", "AdamW", "RMSprop, centered", "NAdam"):
        twins = Twins(lambda name=name: World(OPTIMIZERS[name]))
        scheduled(twins, change=change)
        assert len(twins.compiled._cygrad_step.plans) <= 2 and twins.replays >= 5, twins.compiled.explain()


def test_a_number_that_becomes_zero():
    twins = Twins(lambda: World(OPTIMIZERS["SGD, momentum"]))
    twins.run(6)
    assert twins.replays >= 1
    for momentum in (0.5, 0, 0.9, 0, 0.25):
        twins.both(lambda world, value=momentum: world.optimizer.param_groups[0].update(momentum=value))
        twins.run(3)


def test_a_rate_in_a_tensor():
    twins = Twins(lambda: World(lambda p: optim.Adam(p, lr=cygrad.tensor(0.1))))
    scheduled(twins)
    assert twins.replays >= 9 and len(twins.compiled._cygrad_step.plans) == 1
    twins.both(lambda world: world.optimizer.param_groups[0].update(lr=cygrad.tensor(0.5)))
    twins.run(5)
    twins.both(lambda world: world.optimizer.param_groups[0].update(lr=0.25))
    twins.run(5)


def test_several_groups():
    def made(parameters):
        first, *others = parameters
        return optim.SGD([{"params": [first], "lr": 0.5}, {"params": others, "momentum": 0.9}], lr=0.01)

    twins = Twins(lambda: World(made))
    scheduled(twins, change=lambda world, i: world.optimizer.param_groups[1].update(weight_decay=1 / (i + 1)))
    assert twins.replays >= 8


def stepping(optimizer, read):
    def step(w, x):
        w.grad = None
        (w * x).sum().backward()
        optimizer.step()
        return w.grad * read(optimizer)

    return step


READS = {
    "attribute": lambda optimizer: optimizer.param_groups[0]["lr"],
    "getattr": lambda optimizer: getattr(optimizer, "param_" + "groups")[0]["lr"],
    "dictionary": lambda optimizer: vars(optimizer)["param_groups"][0]["lr"],
    "state": lambda optimizer: optimizer.state_dict()["param_groups"][0]["lr"],
    "text": lambda optimizer: float(repr(optimizer).partition("lr: ")[2].split()[0]),
}


def is_read_anew(read):
    """Whether a compiled step returns the present rate, which `read` reads of the optimizer in the step."""
    w, x = cygrad.ones(3, requires_grad=True), cygrad.ones(3)
    optimizer = optim.SGD([w], lr=0.5)
    known = {**READS, "another way": functools.partial(group_rate, optimizer.param_groups[0])}
    step = cygrad.compile(stepping(optimizer, known[read]))
    found = []
    for i in range(24):
        rate = optimizer.param_groups[0]["lr"] = 0.5 if i < 8 else 0.25 if i < 16 else 1.0 / i
        found.append(step(w, x).tolist() == cygrad.full((3,), rate).tolist())
    return all(found)


def group_rate(group, optimizer):
    return group["lr"]


@pytest.mark.filterwarnings("ignore:compiled function")
@pytest.mark.parametrize("way", [*READS, "another way"])
def test_a_rate_that_the_step_reads_itself(way):
    assert is_read_anew(way)


def test_without_a_look_at_who_reads_rates(monkeypatch):
    monkeypatch.setattr(_watching.Watch, "reads_groups", False)
    assert not is_read_anew("attribute")


def test_without_a_look_at_other_ways_to_a_group(monkeypatch):
    class Once(_state.Survey):
        def release(self, values):
            self.reached_twice.clear()
            super().release(values)

    monkeypatch.setattr(_step, "Survey", Once)
    assert not is_read_anew("another way")
