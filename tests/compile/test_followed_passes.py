"""Backward passes of compiled functions that cannot be replayed: replayed by themselves, bit for bit as eager ones."""

import random
import threading
import weakref

import pytest
from compile.followed import SIZE, Twins, World, by_backward, chain, reads_gradient
from compile.replays import bits

import cygrad
from cygrad._core.types.device import defaults


def by_grad(world):
    value = chain(world.u)
    return value.detach(), cygrad.autograd.grad(value, world.u)[0]


def with_item(world):
    value = chain(world.u * world.w)
    value.backward()
    return value.item()


def printing(world):
    value = chain(world.u)
    print(value.shape)
    value.backward()
    return value


def functional(world):
    values = [(world.u * world.w).tanh() * world.u, world.w.exp().sigmoid()]
    cygrad.autograd.backward(values, [cygrad.ones_like(world.u), world.w.detach() * 2])
    return values


def shared(world):
    a = world.u * world.w
    b = a.sigmoid()
    value = (b * a + b.tanh() * b + a.exp() * b).sum()
    value.backward()
    return value


def passed_on(world):
    """One gradient goes to both leaves."""
    value = ((world.u + world.w).tanh().exp() * 0.5).sigmoid().sum()
    value.backward()
    return value


def of_a_part(world):
    value = chain(world.u * world.w)
    return cygrad.autograd.grad(value, [world.w])


def of_the_middle(world):
    middle = world.u.tanh().exp()
    value = chain(middle * world.w)
    return cygrad.autograd.grad(value, [middle, world.u, middle])


def some_inputs(world):
    value = chain(world.u * world.w)
    value.backward(inputs=[world.w])
    return value


def retained(world):
    value = chain(world.u * world.w)
    value.backward(retain_graph=True)
    value.backward(retain_graph=True)
    value.backward()
    return value


def freed(world):
    value = chain(world.u * world.w)
    value.backward()
    try:
        value.backward()
    except RuntimeError as error:
        return str(error)


def through_views(world):
    u = world.u.reshape(100, -1)
    value = (u[:50].tanh() * u[50:].exp() * u[:50]).t().sigmoid().sum()
    value.backward()
    return value


def in_place(world):
    a = world.u * world.w
    a.mul_(2)
    b = a.tanh() * a
    b += a
    value = (b.exp() * a).sigmoid_().sum()
    value.backward()
    return value


def in_place_through_a_view(world):
    a = world.u * world.w
    a[:50] *= 2
    value = chain(a)
    value.backward()
    return value


def rows(world):
    x = world.u.reshape(-1, 100)
    value = (cygrad.softmax(x, -1) * world.w.reshape(-1, 100)).tanh().mean()
    value.backward()
    return value


def picked(world):
    index = cygrad.arange(0, SIZE, 2) if world.calls % 2 else cygrad.arange(1, SIZE, 2)
    value = (world.u[index].tanh() * world.w[index].exp()).sigmoid().sum()
    value.backward()
    return value


STEPS = [
    *(by_grad, by_backward, with_item, printing, functional, shared, passed_on, of_a_part, of_the_middle, some_inputs),
    *(retained, freed, through_views, in_place, in_place_through_a_view, rows, picked),
]
NOT_REPLAYED = {in_place_through_a_view, picked}  # CopySlices is no built-in op; little of the other's work joins


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steps(step):
    twins = Twins(step)
    replays = sum([twins.both() for _ in range(8)])
    replays += sum([twins.both(World.fresh) for _ in range(4)])
    if step in NOT_REPLAYED:
        assert replays == 0
    else:
        assert replays >= 4, [*(kind.reason for kind in twins.follower.kinds), twins.follower.missed]


def test_explain():
    twins = Twins(with_item).learned()
    twins.both()
    text = str(twins.compiled.explain())
    assert "not replayed:" in text
    assert "2 backward passes of these calls were replayed" in text
    assert twins.compiled.explain().passes == 2
    assert "little of its work" in str(learnt_nothing().explain())


def learnt_nothing():
    twins = Twins(picked)
    for _ in range(8):
        twins.both()
    return twins.compiled


def test_reset():
    twins = Twins(by_grad).learned()
    twins.compiled._cygrad_step.reset()
    assert twins.follower.replays == 0
    twins.learned()


def test_every_second_pass_is_compared():
    world = World()

    def step():
        world.calls += 1
        return by_grad(world)[1]

    compiled = cygrad.compile(step, options={"check": 2})
    wanted = bits(by_grad(world)[1])
    assert all(bits(compiled()) == wanted for _ in range(20))
    assert compiled._cygrad_step.plans.follower.replays in range(6, 12)


def test_gradients_that_are_kept():
    """What an earlier call has made is never overwritten."""

    def step(world):
        value = by_backward(world)
        world.kept.append(world.u.grad)
        world.u.grad = None
        return value

    twins = Twins(step)
    for _ in range(9):
        twins.both()
    assert twins.follower.replays >= 4
    assert len({array.data_ptr() for array in twins.other.kept}) == 9


def test_other_shapes():
    twins = Twins(by_backward).learned(World.fresh)

    def shorter(world):
        world.u = world.u.detach()[:80_000].clone().requires_grad_()
        world.w = world.w.detach()[:80_000].clone().requires_grad_()

    assert not twins.both(shorter)
    twins.learned(World.fresh)


def test_small_passes_are_left_alone():
    twins = Twins(by_backward, lambda: World(50))
    for _ in range(40):
        assert not twins.both(World.fresh)
    assert not twins.follower.kinds


def test_other_values_in_python():
    """A number that changes in each call."""

    def step(world):
        value = chain(world.u * world.calls)
        value.backward()
        return value

    twins = Twins(step)
    for _ in range(30):
        assert not twins.both()


def test_errors_in_the_middle():
    def step(world):
        value = chain(world.u * world.w)
        if world.calls % 3 == 0:
            raise ZeroDivisionError("in the middle")
        value.backward()
        return value

    twins = Twins(step).learned()
    for _ in range(6):
        twins.both()
    assert twins.follower.replays >= 4


def test_a_change_between_forward_and_backward():
    def step(world):
        a = world.u * world.w
        b = a.tanh()
        value = (b * a).exp().sigmoid().sum()
        if world.calls > 8:
            a.add_(1)
        value.backward()
        return value

    twins = Twins(step)
    assert [twins.both() for _ in range(10)][-3:] == [True, False, False]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        twins.compiled(twins.other)


def test_hooks_that_come_later():
    found = []

    def step(world):
        a = world.u * world.w
        if world.calls > 8:
            a.register_hook(lambda grad: found.append(grad.sum().item()) or grad * 2)
        value = chain(a)
        value.backward()
        return value

    twins = Twins(step)
    assert [twins.both() for _ in range(11)][-4:] == [True, False, False, False]
    assert len(found) == 6 and found[0] == found[1]


@pytest.mark.parametrize("kind", ["leaf", "node", "accumulated", "retain"])
def test_other_hooks(kind):
    def step(world):
        a = world.u * world.w
        value = chain(a)
        if world.calls > 8:
            if kind == "leaf":
                world.u.register_hook(lambda grad: grad * 2)
            elif kind == "node":
                value.grad_fn.register_hook(lambda grads, outer: (grads[0] * 3,))
            elif kind == "accumulated":
                world.u.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(2))
            else:
                a.retain_grad()
        value.backward()
        return [value, a.grad] if kind == "retain" and world.calls > 8 else value

    twins = Twins(step)
    assert [twins.both() for _ in range(10)][-3:] == [True, False, False]


def test_custom_functions_are_left_alone():
    class Double(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def step(world):
        value = chain(Double.apply(world.u))
        value.backward()
        return value

    twins = Twins(step)
    for _ in range(6):
        assert not twins.both()
    assert "no built-in op" in twins.follower.missed


def test_recorded_passes_are_left_alone():
    def step(world):
        value = chain(world.u)
        (grad,) = cygrad.autograd.grad(value, world.u, create_graph=True)
        return grad

    twins = Twins(step)
    for _ in range(6):
        assert not twins.both()


@pytest.mark.parametrize(
    "mode",
    [
        lambda: cygrad.autograd.detect_anomaly(),
        lambda: cygrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        lambda: cygrad.autograd.profiler.profile(),
        lambda: cygrad.autocast("cpu"),
        lambda: cygrad.device("meta"),
    ],
    ids=["anomaly", "saved", "profiler", "autocast", "default device"],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_modes(mode):
    def step(world):
        if world.calls <= 8:
            return by_backward(world)
        with mode():
            return by_backward(world)

    twins = Twins(step)
    assert [twins.both() for _ in range(10)][-3:] == [True, False, False]


def test_a_default_device_that_was_used_before(monkeypatch):
    monkeypatch.setattr(defaults, "in_use", True)
    twins = Twins(by_backward)
    assert [twins.both() for _ in range(8)][-1]


def test_a_leaf_whose_gradient_the_pass_reads():
    """The engine raises, since it adds to what it reads later."""

    def step(world):
        world.changed = True
        return reads_gradient(world)

    twins = Twins(step)
    for _ in range(8):
        assert not twins.both()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        twins.compiled(twins.other)


def test_a_gradient_of_a_leaf_as_the_first_one():
    def step(world):
        if world.u.grad is None:
            world.u.grad = cygrad.ones_like(world.u)
        value = world.u + (world.u * world.w).tanh().exp().sigmoid()
        value.backward(world.u.grad)
        return value

    twins = Twins(step)
    for _ in range(8):
        assert not twins.both()


def test_a_gradient_in_two_leaves():
    def step(world):
        world.u.grad = world.w.grad = cygrad.ones_like(world.u)
        return by_backward(world)

    twins = Twins(step).learned()
    for _ in range(3):
        assert twins.both(World.fresh)


def test_two_threads():
    twins = Twins(by_grad).learned()
    failures = []

    def work():
        world = World()
        for _ in range(20):
            world.fresh()
            value, grad = twins.compiled(world)
            wanted = cygrad.autograd.grad(chain(world.u), world.u)[0]
            if bits(grad) != bits(wanted):
                failures.append(world.calls)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_passes_of_other_threads_within_the_function():
    def step(world):
        value = chain(world.u)
        thread = threading.Thread(target=value.backward)
        thread.start()
        thread.join()
        return value

    twins = Twins(step)
    for _ in range(6):
        assert not twins.both()


UNARY = [cygrad.tanh, cygrad.exp, cygrad.sigmoid, cygrad.sin, cygrad.relu, cygrad.Tensor.neg, cygrad.Tensor.square]
BINARY = [cygrad.add, cygrad.mul, cygrad.sub, cygrad.maximum]


def random_graph(seed):
    """A step with a random graph."""

    def step(world):
        draw = random.Random(seed)
        u, w = world.u.reshape(1000, 100), world.w.reshape(1000, 100)
        values = [u, w, w[:1], u[:, :1]]
        for _ in range(draw.randrange(5, 25)):
            a = draw.choice(values)
            kind = draw.random()
            if kind < 0.4:
                found = draw.choice(UNARY)(a * 0.5)
            elif kind < 0.8:
                found = draw.choice(BINARY)(a, draw.choice(values))
            elif kind < 0.87:
                found = (a * 1.0).mul_(draw.choice([0.5, 2, 3])).add_(u)
            elif kind < 0.94:
                found = a.sum(draw.randrange(2), keepdim=True) * 0.01
            else:
                found = cygrad.softmax(a, -1)
            values.append(found)
        value = sum([(each * each.detach().cos()).mean() for each in values[-4:]])
        if draw.random() < 0.5:
            value.backward(retain_graph=draw.random() < 0.3)
            return value
        return cygrad.autograd.grad(value, [draw.choice([world.u, world.w])], allow_unused=True)

    return step


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed):
    twins = Twins(random_graph(seed))
    for _ in range(7):
        twins.both()
    for _ in range(3):
        twins.both(World.fresh)


def test_most_random_graphs_are_replayed():
    def is_replayed(seed):
        twins = Twins(random_graph(seed))
        return sum([twins.both() for _ in range(9)]) > 0

    assert sum(map(is_replayed, range(8))) >= 4


def test_what_ends_with_the_graph_sees_the_modes_of_the_engine():
    def step(world):
        saved = world.u * world.w
        weakref.finalize(saved, lambda: world.kept.append(cygrad.is_grad_enabled()))
        value = (saved.tanh() * saved).exp().sigmoid().sum()
        del saved
        value.backward()
        return value

    twins = Twins(step)
    assert sum([twins.both() for _ in range(8)]) >= 3
    assert twins.other.kept == twins.eager.kept


def test_passes_with_errors_are_no_kind_of_their_own():
    def step(world):
        a = world.u * world.w
        value = (a.tanh() * a).exp().sigmoid().sum()
        if world.calls % 2 and world.calls > 8:
            with cygrad.no_grad():
                a.mul_(2)
        value.backward()
        return value

    twins = Twins(step)
    for _ in range(8):
        twins.both()
    before = twins.follower.replays
    for _ in range(12):
        twins.both()
    assert len(twins.follower.kinds) == 1
    assert twins.follower.replays == before + 6


def test_more_kinds_of_passes_than_are_kept():
    """The kind that was used least recently gives way; passes are right all the time."""
    calls = []

    def step(u, depth):
        calls.append(depth)
        value = u.tanh()
        for _ in range(depth):
            value = value * value.sigmoid() + u.exp()
        return cygrad.autograd.grad(value.sum(), u)[0]

    compiled = cygrad.compile(step)
    u = cygrad.randn(SIZE, requires_grad=True)
    for depth in (*[3] * 12, 4, 5, 6, 7, 8, *[4] * 9, *[8] * 9, 3, 7, 5, 6, 9, 3):
        assert bits(compiled(u, depth)) == bits(step(u, depth))
    assert compiled._cygrad_step.plans.follower.replays > 0
