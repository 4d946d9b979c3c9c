"""What a replay leaves behind is what eager leaves: versions, gradients, kept tensors, errors, threads."""

import gc
import os
import signal
import sys
import threading
import weakref

import pytest
from compile.twins import Twins, World, state_of, states

import cygrad
from cygrad import nn

pytestmark = pytest.mark.interpreter

OPTIMIZERS = {
    "SGD": lambda p: cygrad.optim.SGD(p, lr=0.125),
    "momentum": lambda p: cygrad.optim.SGD(p, lr=0.125, momentum=0.5, nesterov=True),
    "weight decay": lambda p: cygrad.optim.SGD(p, lr=0.125, weight_decay=0.5),
    "Adam": lambda p: cygrad.optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: cygrad.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: cygrad.optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: cygrad.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: cygrad.optim.Adagrad(p, lr=0.01),
    "NAdam": lambda p: cygrad.optim.NAdam(p, lr=0.01),
    "LBFGS": None,
}


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if OPTIMIZERS[name]])
def test_optimizers(name):
    Twins(lambda: World(OPTIMIZERS[name])).run(12)


LAYERS = {
    "deep": lambda: (nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.Sigmoid(), nn.Linear(6, 3)),
    "batch norm": lambda: (nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)),
    "layer norm": lambda: (nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3)),
    "dropout": lambda: (nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3)),
    "shared": lambda: (layer := nn.Linear(4, 4), nn.Tanh(), layer, nn.Linear(4, 3)),
    "softmax": lambda: (nn.Linear(4, 3), nn.Softmax(1)),
    "no bias": lambda: (nn.Linear(4, 3, bias=False),),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    def make():
        return World(layers=LAYERS[name])

    state = cygrad.get_rng_state()
    eager = make()
    expected = []
    for _ in range(10):
        expected.append(state_of(eager.step(eager.x, eager.y)))
    after = cygrad.get_rng_state()
    cygrad.set_rng_state(state)
    other = make()
    step = cygrad.compile(other.step)
    for i in range(10):
        assert state_of(step(other.x, other.y)) == expected[i], step.explain()
    assert states(other) == states(eager)
    assert cygrad.equal(cygrad.get_rng_state(), after)


@pytest.mark.parametrize("clears", [True, False])
def test_kept_gradients_and_results_stay_as_they_were(clears):
    twins = Twins(lambda: World(clears=clears))
    kept = []
    for _ in range(10):
        twins.run(1)
        loss = twins.compiled(twins.other.x, twins.other.y)
        twins.eager.step(twins.eager.x, twins.eager.y)
        grads = [p.grad for p in twins.other.net.parameters()]
        kept.append((loss, state_of(loss), grads, [state_of(g) for g in grads]))
        if not clears:
            kept[-1] = (loss, state_of(loss), [], [])
    for loss, seen, grads, looks in kept:
        assert state_of(loss) == seen
        assert [state_of(g) for g in grads] == looks
    assert len({id(loss) for loss, *_ in kept}) == len(kept)
    assert twins.replays > 0


def test_versions_rise_and_errors_name_the_line():
    def make():
        world = World()

        def step(x, y):
            with cygrad.no_grad():
                world.net[0].weight.mul_(0.5)
            return x * 2

        world.step = step
        return world

    twins = Twins(make)
    twins.run(6)
    assert twins.replays > 0
    weight = twins.other.net[0].weight
    loss = (weight.exp() * weight).sum()
    twins.compiled(twins.other.x, twins.other.y)
    with pytest.raises(cygrad.errors.ChangedInPlaceError) as caught:
        loss.backward()
    assert caught.value.sites["changed"].file == __file__
    assert "world.net[0].weight.mul_(0.5)" in str(caught.value)


def test_a_used_up_graph_raises_as_eagerly():
    twins = Twins()
    twins.run(6)
    assert twins.replays > 0
    for loss in (twins.eager.step(twins.eager.x, twins.eager.y), twins.compiled(twins.other.x, twins.other.y)):
        assert loss.requires_grad and not loss.is_leaf
        with pytest.raises(cygrad.errors.FreedGraphError):
            loss.backward()


def test_results_can_be_changed_and_used():
    twins = Twins()
    twins.run(6)
    loss = twins.compiled(twins.other.x, twins.other.y)
    twins.eager.step(twins.eager.x, twins.eager.y)
    with cygrad.no_grad():
        loss.add_(100)
    twins.run(3)
    for p in twins.other.net.parameters():
        p.grad.mul_(50)
    for p in twins.eager.net.parameters():
        p.grad.mul_(50)
    twins.run(3)
    assert twins.replays >= 5


def test_what_leaves_the_step_is_freed():
    twins = Twins()
    twins.run(6)
    loss = twins.compiled(twins.other.x, twins.other.y)
    gone = weakref.ref(loss)
    del loss
    assert gone() is None
    gone = weakref.ref(twins.other.net)
    del twins
    gc.collect()
    assert gone() is None


def test_arguments_are_not_kept():
    step = cygrad.compile(lambda x: x * 2)
    for _ in range(5):
        x = cygrad.ones(3)
        gone = weakref.ref(x)
        step(x)
        del x
        assert gone() is None


def test_errors_in_the_middle():
    def make():
        world = World()

        def step(x, y, fails):
            world.optimizer.zero_grad()
            loss = ((world.net(x) - y) ** 2).sum()
            loss.backward()
            if fails:
                raise ValueError("in the middle")
            world.optimizer.step()
            return loss

        world.step = step
        return world

    twins = Twins(make)
    for _ in range(4):
        twins.run(2, of=lambda w: (w.x, w.y, False))
        for step, world in ((twins.eager.step, twins.eager), (twins.compiled, twins.other)):
            with pytest.raises(ValueError, match="in the middle"):
                step(world.x, world.y, True)
        assert states(twins.other) == states(twins.eager)
    twins.run(3, of=lambda w: (w.x, w.y, False))
    assert twins.replays > 0


def test_wrong_shapes_raise_as_eagerly():
    twins = Twins()
    twins.run(6)
    for _ in range(4):
        texts = []
        for step in (twins.eager.step, twins.compiled):
            with pytest.raises(RuntimeError) as caught:
                step(cygrad.ones(5, 7), twins.eager.y)
            texts.append(str(caught.value).splitlines()[0])
        assert texts[0] == texts[1]
        for world in (twins.eager, twins.other):
            world.optimizer.zero_grad()
    twins.run(3)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between processes")
def test_an_interrupt_leaves_a_state_that_can_be_used():
    twins = Twins(lambda: World(lambda p: cygrad.optim.SGD(p, lr=1e-6)))
    twins.run(6)
    hit = []

    def interrupt(number, frame):
        hit.append(1)
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.0007)
            try:
                for _ in range(400):
                    twins.compiled(twins.other.x, twins.other.y)
            except KeyboardInterrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert hit and twins.replays > 0
    twins.eager.net.load_state_dict(twins.other.net.state_dict())
    twins.both(lambda world: world.optimizer.zero_grad())
    for p, q in zip(twins.eager.net.parameters(), twins.other.net.parameters()):
        assert cygrad.equal(p, q)
    for _ in range(4):
        one = twins.eager.step(twins.eager.x, twins.eager.y)
        two = twins.compiled(twins.other.x, twins.other.y)
        assert cygrad.equal(one, two)
        assert all(map(cygrad.equal, twins.eager.net.parameters(), twins.other.net.parameters()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_replays_on():
    twins = Twins()
    twins.run(6)
    before = twins.replays
    child = os.fork()
    if child == 0:
        try:
            twins.run(5)
            os._exit(0 if twins.replays == before + 5 else 3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    twins.run(5)


def test_two_threads_in_one_function():
    weights = cygrad.full((64,), 2.0)

    @cygrad.compile
    def step(x):
        return (x * weights).exp() - x

    data = [cygrad.full((64,), float(i)) for i in range(4)]
    expected = [step.__wrapped__(x) for x in data]
    wrong = []

    def work(i):
        for _ in range(300):
            if not cygrad.equal(step(data[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and step._cygrad_step.replays() > 0


def test_checks_compare_with_eager():
    twins = Twins(options={"check": 2})
    twins.run(12)
    assert twins.replays > 0 and twins.compiled._cygrad_step.calls > 5


def test_a_step_that_returns_nothing_has_its_effects():
    def make():
        world = World()
        inner = world.step

        def step(x, y):
            inner(x, y)

        world.step = step
        return world

    twins = Twins(make)
    before = states(twins.other)
    twins.run(8)
    assert states(twins.other) != before and twins.replays > 0


def test_second_derivatives():
    a, v = cygrad.randn(6, 6), cygrad.randn(6)

    def product(x):
        y = cygrad.tanh(a @ x).pow(2).sum()
        (g,) = cygrad.autograd.grad(y, x, create_graph=True)
        return cygrad.autograd.grad((g * v).sum(), x)[0]

    step = cygrad.compile(product)
    for i in range(8):
        x = cygrad.full((6,), float(i)).requires_grad_()
        assert state_of(step(x)) == state_of(product(x))
    assert step._cygrad_step.replays() > 0
