"""Whole training steps, replayed beside eager ones: results, gradients, states and versions agree in all bits."""

import copy
import gc
import warnings
import weakref

import numpy as np
import pytest
from compile.replays import bits, tensors_in

import cygrad
from cygrad import nn
from cygrad._core.replay.capture import capture
from cygrad._core.replay.parts import Refusal
from cygrad._core.replay.program import MISS

F = nn.functional
STEPS = 20


def tanh_network():
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))


def classifier():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def regression(network, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = ((network(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda i: [cygrad.randn(4, 2), cygrad.randn(4, 1)]


def classification(network, optimizer):
    def step(x, y):
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), loss

    return step, lambda i: [cygrad.randn(32, 784), cygrad.randint(0, 10, (32,))]


def accumulation(network, optimizer):
    """Two backward passes add up, and gradients are zeroed in place."""

    def step(x, y):
        for part in (x, y):
            F.silu(network(part)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return step, lambda i: [cygrad.randn(3, 2), cygrad.randn(3, 2)]


OPTIMIZERS = {
    "SGD": lambda p: cygrad.optim.SGD(p, lr=0.01),
    "momentum": lambda p: cygrad.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": cygrad.optim.Adam,
    "AdamW": lambda p: cygrad.optim.AdamW(p, amsgrad=True),
}


class Replayed:
    """A step that is captured in its second call, checked in the third, and replayed from the fourth on."""

    def __init__(self, step):
        self.step, self.calls, self.program = step, 0, None

    def __call__(self, *args):
        self.calls += 1
        arguments = list(args)
        if self.calls == 1:
            return self.step(*args)
        if self.calls == 2:
            value, self.program = capture(lambda: self.step(*args), arguments, tensors_in)
            assert not isinstance(self.program, Refusal), self.program
            return value
        if self.calls == 3:
            value, difference = self.program.check(lambda: self.step(*args), arguments, tensors_in)
            assert difference is None
            return value
        found = self.program.replay(arguments)
        assert found is not MISS, self.program.why_missed()
        return found


def everything(network, optimizer):
    """Bits of all parameters, gradients and states, and all versions."""
    found = []
    for p in network.parameters():
        state = optimizer.state[p]
        tensors = [p, p.grad, *(state[key] for key in sorted(state))]
        found.append([None if t is None else (bits(t), t._version, t.requires_grad) for t in tensors])
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("build", "setup"), [(tanh_network, regression), (classifier, classification), (tanh_network, accumulation)]
)
def test_training_steps(build, setup, optimizer, threads):
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(threads)
    try:
        network, twin = build(), build()
        for each in (network, twin):
            each.load_state_dict(copy.deepcopy(network.state_dict()))
        pairs = []
        for each in (network, twin):
            made = OPTIMIZERS[optimizer](each.parameters())
            pairs.append((each, made, *setup(each, made)))
        eager, replayed = pairs[0][2], Replayed(pairs[1][2])
        for i in range(STEPS):
            args = pairs[0][3](i)
            want, found = eager(*args), replayed(*args)
            for a, b in zip(tensors_in(want), tensors_in(found), strict=True):
                assert bits(a) == bits(b)
                assert (a.requires_grad, type(a.grad_fn)) == (b.requires_grad, type(b.grad_fn))
            assert everything(*pairs[0][:2]) == everything(*pairs[1][:2])
    finally:
        cygrad.set_num_threads(former)


def hessian_vector_product(n):
    a, x = cygrad.randn(n, n), cygrad.randn(n, requires_grad=True)

    def step(v):
        y = cygrad.tanh(a @ x).pow(2).sum()
        (g,) = cygrad.autograd.grad(y, x, create_graph=True)
        return cygrad.autograd.grad((g * v).sum(), x)[0]

    return step, lambda: [cygrad.randn(n)]


def chain(n):
    def step(u):
        u = u.detach().requires_grad_()
        y = (cygrad.tanh(u) * u + cygrad.exp(u) * cygrad.sigmoid(u)).sum()
        return y.detach(), cygrad.autograd.grad(y, u)[0]

    return step, lambda: [cygrad.randn(n)]


def mixed(n):
    """Broadcasting, reductions, views, changes in place, and several uses of each."""
    w = cygrad.randn(n, requires_grad=True)

    def step(x, y):
        z = x * w + y.sum(0)
        z = (z.t() - z.mean()) * 2
        z.mul_(1.5)
        loss = (z.exp() / (1 + z.abs()).sqrt()).softmax(1).sum(1)
        return loss.detach(), cygrad.autograd.grad(loss.sum(), w)[0], z.detach().clone()

    return step, lambda: [cygrad.randn(5, n), cygrad.randn(3, n)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("build", "n"),
    [(hessian_vector_product, 64), (chain, 100), (chain, 5000), (chain, 100_003), (mixed, 7), (mixed, 9000)],
)
def test_functions(build, n, threads):
    former = cygrad.get_num_threads()
    cygrad.set_num_threads(threads)
    try:
        step, draw = build(n)
        replayed = Replayed(step)
        for _ in range(6):
            args = draw()
            want, found = step(*args), replayed(*args)
            assert [bits(t) for t in tensors_in(want)] == [bits(t) for t in tensors_in(found)]
    finally:
        cygrad.set_num_threads(former)


# -- what must not be replayed, or not then


def captured(step, *args):
    step(*args)
    value, program = capture(lambda: step(*args), list(args), tensors_in)
    return program


def reason(step, *args):
    program = captured(step, *args)
    assert isinstance(program, Refusal), program
    return str(program)


def test_refusals_name_op_and_line():
    x = cygrad.randn(3)

    def step(x):
        return x * 2 if x.sum().item() > 100 else x

    text = reason(step, x)
    assert text.startswith("`item` reads a value, at ")
    assert text.endswith(f"test_steps.py:{step.__code__.co_firstlineno + 1}")


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x + x.numpy(),
        lambda x: x.tolist() and x * 2,
        lambda x: x * cygrad.binomial(x, x / 2),
        lambda x: x * cygrad.tensor(x.numpy()),
        lambda x: x * cygrad.tensor([x[0], x[1], x[2]]),
        lambda x: x.masked_fill(x > 0, 1.0) if x.sum().item() > 0 else x * 1,
        lambda x: x.detach().requires_grad_(),
        lambda x: str(x) and x * 2,
    ],
)
def test_what_cannot_be_replayed_is_refused(step):
    assert reason(step, cygrad.rand(3) + 0.5)


def test_a_tensor_that_is_kept_elsewhere_is_refused():
    kept = []
    assert "outlives" in reason(lambda x: kept.append(x * 2) or x + 1, cygrad.randn(3))


def test_a_change_behind_the_back_of_the_tape_fails_the_check():
    x, hidden = cygrad.randn(3), cygrad.zeros(3)
    memory = hidden.numpy()

    def step(x):
        memory[:] += 1
        return x + hidden

    program = captured(step, x)
    _, difference = program.check(lambda: step(x), [x], tensors_in)
    assert difference == "result 0 differs"


def guarded():
    w = cygrad.randn(3, requires_grad=True)

    def step(x):
        w.grad = None
        loss = (x * w).sum()
        loss.backward()
        return loss.detach()

    x = cygrad.randn(2, 3)
    return w, x, captured(step, x)


def test_it_replays():
    _, x, program = guarded()
    assert program.replay([x]) is not MISS


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.double(),
        lambda x: x[:1],
        lambda x: x.t().contiguous().t(),
        lambda x: x.clone().requires_grad_(),
        lambda x: x.as_subclass(type("Mine", (cygrad.Tensor,), {})),
        lambda x: cygrad.cat([x, x])[::2],
        lambda x: 3,
    ],
)
def test_arguments_must_be_alike(change):
    w, x, program = guarded()
    before = bits(w), w._version, w.grad
    assert program.replay([change(x)]) is MISS
    assert program.why_missed()
    assert (bits(w), w._version, w.grad) == before


def test_arguments_must_lie_apart():
    x, y = cygrad.randn(3), cygrad.randn(3)
    program = captured(lambda x, y: x + y, x, y)
    assert program.replay([x, y]) is not MISS
    assert program.replay([x, x.detach()]) is MISS
    w, x, program = guarded()
    assert program.replay([w.detach().expand(2, 3).contiguous()]) is not MISS


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.requires_grad_(False),
        lambda w: setattr(w, "data", cygrad.randn(3)),
        lambda w: setattr(w, "grad", None),
        lambda w: w.register_hook(lambda g: g),
        lambda w: w.register_post_accumulate_grad_hook(lambda t: None),
    ],
)
def test_tensors_outside_must_be_as_they_were(change):
    w, x, program = guarded()
    change(w)
    assert program.replay([x]) is MISS


def test_modes_must_be_as_they_were():
    _, x, program = guarded()
    with cygrad.no_grad():
        assert program.replay([x]) is MISS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anomaly = cygrad.autograd.detect_anomaly()
    with anomaly:
        assert program.replay([x]) is MISS
    with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert program.replay([x]) is MISS
    with cygrad.autocast("cpu", dtype=cygrad.bfloat16):
        assert program.replay([x]) is MISS
    assert program.replay([x]) is not MISS


def test_classes_out_of_bounds_are_left_to_eager():
    x, y = cygrad.randn(4, 3), cygrad.tensor([0, 1, 2, 1])
    program = captured(lambda x, y: F.cross_entropy(x, y), x, y)
    assert program.replay([x, y]) is not MISS
    assert program.replay([x, cygrad.tensor([0, 1, 3, 1])]) is MISS


def test_kept_gradients_and_results_are_never_overwritten():
    w, x, program = guarded()
    first = program.replay([x])[0]
    kept, array = w.grad, w.grad.numpy()
    before = bits(kept), bits(first)
    program.replay([x * 3])
    assert (bits(kept), bits(first)) == before
    assert w.grad is not kept
    del kept, array
    place = w.grad.data_ptr()
    program.replay([x])
    assert w.grad.data_ptr() == place  # nobody else had it
    alias = weakref.ref(w.grad)
    program.replay([x])
    assert alias() is not w.grad


def test_changes_in_place_are_counted_with_their_line():
    w = cygrad.ones(3)

    def step(x):
        w.mul_(x)

    x = cygrad.randn(3)
    program = captured(step, x)
    leaf = cygrad.randn(3, requires_grad=True)
    y = leaf * w
    program.replay([x])
    with pytest.raises(RuntimeError, match=rf"test_steps.py:{step.__code__.co_firstlineno + 1}"):
        y.sum().backward()


def test_a_result_has_a_used_up_graph_as_in_eager():
    w = cygrad.randn(3, requires_grad=True)

    def step():
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        return loss

    program = captured(step)
    (loss,) = program.replay([])
    assert loss.requires_grad
    assert type(loss.grad_fn).__name__ == "SumBackward0"
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_memory_of_a_program_is_that_of_what_lives_at_once():
    def step(x):
        for _ in range(50):
            x = (x + 1).view(100, 100).t() * 2
        return x

    program = captured(step, cygrad.randn(10_000))
    assert program.memory <= 4 * 40_000
    arena = weakref.ref(program.externals[0]) if program.externals else None
    del program
    gc.collect()
    assert arena is None or arena() is None


def test_captures_do_not_nest():
    x = cygrad.randn(3)
    inner = []

    def step():
        inner.append(capture(lambda: x + 1, [], tensors_in)[1])
        return None

    capture(step, [], tensors_in)
    assert str(inner[0]) == "another capture is open"


def test_an_exception_in_a_captured_step_closes_the_tape():
    def step():
        raise KeyError("in the step")

    with pytest.raises(KeyError):
        capture(step, [], tensors_in)
    assert isinstance(captured(lambda x: x + 1, cygrad.randn(3)), object)
    np.testing.assert_array_equal((cygrad.ones(2) + 1).numpy(), [2, 2])


def test_the_collector_rests_while_a_call_is_watched():
    """What it finalizes then is no part of the step, but would be seen, and delay the replays."""
    seen = []

    @cygrad.compile
    def step(x):
        seen.append(gc.isenabled())
        return x * 2

    step(cygrad.ones(3))
    assert seen == [False]
    assert gc.isenabled()
