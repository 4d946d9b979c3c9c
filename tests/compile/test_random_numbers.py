"""Steps that draw random numbers: replays draw those of eager, and leave the generators where eager does."""

import pytest
from compile.twins import Twins, World

import cygrad
from cygrad import nn
from cygrad._core.replay import capture
from cygrad._ops.random import generator as generators

F = nn.functional


def noisy(draw):
    def step(x):
        return x * draw(x)

    return step


DRAWS = {
    "rand": lambda x: cygrad.rand(5, 7),
    "rand, double": lambda x: cygrad.rand(5, 7, dtype=cygrad.float64),
    "randn": lambda x: cygrad.randn(5, 7),
    "few randn": lambda x: cygrad.randn(7),
    "randn, double": lambda x: cygrad.randn(5, 7, dtype=cygrad.float64),
    "rand_like": lambda x: cygrad.rand_like(x),
    "randn_like": lambda x: cygrad.randn_like(x),
    "randint": lambda x: cygrad.randint(0, 9, (5, 7)),
    "normal_": lambda x: cygrad.empty(5, 7).normal_(1, 2),
    "uniform_": lambda x: cygrad.empty(5, 7).uniform_(-1, 2),
    "exponential_": lambda x: cygrad.empty(5, 7).exponential_(2.0),
    "bernoulli_": lambda x: cygrad.empty(5, 7).bernoulli_(0.25),
    "cauchy_": lambda x: cygrad.empty(5, 7).cauchy_(),
    "log_normal_": lambda x: cygrad.empty(5, 7).log_normal_(),
    "dropout": lambda x: F.dropout(x, 0.25),
    "dropout, double": lambda x: F.dropout(x.double(), 0.25),
    "dropout of channels": lambda x: F.dropout2d(x.view(1, 5, 7, 1), 0.5).view(5, 7),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.25, training=True),
    "several": lambda x: F.dropout(cygrad.randn(5, 7), 0.5) + cygrad.rand(5, 7),
}


def state():
    current = generators.current_generator()
    return current.get_state().tolist(), current.draws


def beside_eager(step, times=9):
    """Call a function compiled and as it is written, from the same states; return how often it was replayed."""
    compiled = cygrad.compile(step)
    for i in range(times):
        x = cygrad.randn(5, 7)
        before, draws = cygrad.get_rng_state(), generators.current_generator().draws
        expected = step(x)
        after = state()
        cygrad.set_rng_state(before)
        generators.current_generator().draws = draws
        found = compiled(x)
        assert cygrad.equal(found, expected) and found.dtype == expected.dtype, i
        assert state() == after, i
    return compiled._cygrad_step.replays(), compiled


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers(name):
    replays, compiled = beside_eager(noisy(DRAWS[name]))
    assert replays >= 5, compiled.explain()


@pytest.mark.parametrize("name", DRAWS)
def test_that_nobody_reads(name):
    """They are drawn all the same: the next numbers depend on them."""

    def step(x):
        DRAWS[name](x)
        return x * 2

    replays, compiled = beside_eager(step)
    assert replays >= 5, compiled.explain()


@pytest.mark.parametrize("name", ["rand", "randn", "exponential_", "several"])
def test_of_many(name):
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(2)
    try:
        large = {"rand": lambda x: cygrad.rand(300, 400), "randn": lambda x: cygrad.randn(300, 400),
                 "exponential_": lambda x: cygrad.empty(300, 400).exponential_(),
                 "several": lambda x: F.dropout(cygrad.randn(300, 400)) * cygrad.rand(300, 400)}[name]  # fmt: skip
        replays, compiled = beside_eager(lambda x: large(x).sum(1) * x.sum())
        assert replays >= 5, compiled.explain()
    finally:
        cygrad.set_num_threads(former)


@pytest.mark.parametrize("name", ["rand", "randn", "exponential_", "dropout"])
def test_philox(name):
    streams = [cygrad.Generator(algorithm="philox").manual_seed(3) for _ in range(2)]
    step = noisy(DRAWS[name])
    compiled = cygrad.compile(step)
    for _ in range(9):
        x = cygrad.randn(5, 7)
        with cygrad.random.drawing_from(streams[0]):
            expected = step(x)
        with cygrad.random.drawing_from(streams[1]):
            assert cygrad.equal(compiled(x), expected)
        assert streams[0].get_state().tolist() == streams[1].get_state().tolist()
    assert name == "dropout" or compiled._cygrad_step.replays() >= 5, compiled.explain()


def test_a_generator_that_is_named():
    own = cygrad.Generator().manual_seed(5)
    step = cygrad.compile(lambda x: x + cygrad.rand(5, 7, generator=own))
    found = [step(cygrad.zeros(5, 7)) for _ in range(8)]
    own.manual_seed(5)
    assert all(cygrad.equal(a, cygrad.rand(5, 7, generator=own)) for a in found)
    assert step._cygrad_step.replays() >= 4, step.explain()
    own.set_state(cygrad.Generator(algorithm="philox").manual_seed(3).get_state())
    other = cygrad.Generator(algorithm="philox").manual_seed(3)
    for _ in range(5):
        assert cygrad.equal(step(cygrad.zeros(5, 7)), cygrad.rand(5, 7, generator=other))


def test_a_seed_that_is_read():
    own = cygrad.Generator()
    step = cygrad.compile(lambda x: x + own.initial_seed() + cygrad.rand(1, generator=own) * 0)
    for i in range(12):
        own.manual_seed(i // 6)
        assert step(cygrad.zeros(1)).item() == i // 6


def test_a_thread_that_draws_from_elsewhere():
    step = cygrad.compile(lambda x: x + cygrad.rand(3))
    for _ in range(6):
        step(cygrad.zeros(3))
    for seed in range(3):
        with cygrad.random.drawing_from(cygrad.Generator().manual_seed(seed)):
            found = step(cygrad.zeros(3))
        assert cygrad.equal(found, cygrad.rand(3, generator=cygrad.Generator().manual_seed(seed)))
        cygrad.manual_seed(seed)
        found = step(cygrad.zeros(3))
        cygrad.manual_seed(seed)
        assert cygrad.equal(found, cygrad.rand(3))


def test_training_with_dropout():
    def world():
        return World(layers=lambda: (nn.Linear(4, 8), nn.Dropout(0.25), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3)))

    twins = Twins(world)
    streams = [cygrad.Generator().manual_seed(1) for _ in range(2)]
    for _ in range(12):
        with cygrad.random.drawing_from(streams[0]):
            expected = twins.eager.step(twins.eager.x, twins.eager.y)
        with cygrad.random.drawing_from(streams[1]):
            found = twins.compiled(twins.other.x, twins.other.y)
        assert cygrad.equal(expected, found)
        assert streams[0].get_state().tolist() == streams[1].get_state().tolist()
    assert twins.replays >= 6, twins.compiled.explain()
    twins.both(lambda world: world.net.eval())
    twins.run(5)


def test_checks_of_replays_draw_nothing():
    step = cygrad.compile(lambda x: x + cygrad.rand(3), options={"check": 2})
    cygrad.manual_seed(1)
    found = [step(cygrad.zeros(3)) for _ in range(12)]
    cygrad.manual_seed(1)
    assert all(cygrad.equal(a, cygrad.rand(3)) for a in found)
    assert step._cygrad_step.replays() >= 4


def test_without_following_streams(monkeypatch):
    step = cygrad.compile(lambda x: x + cygrad.rand(3))
    monkeypatch.setattr(capture.numbers, "end", list)
    for _ in range(6):
        step(cygrad.zeros(3))
    assert step._cygrad_step.replays() == 0 and "unknown generator" in str(step.explain())
