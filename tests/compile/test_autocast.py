"""Compiled functions called within blocks of autocast: replayed, with the bits and the casts of eager calls."""

import contextlib

import pytest
from compile.twins import state_of

import cygrad
from cygrad import nn

pytest.importorskip("ml_dtypes")

F = nn.functional


def casting(dtype=cygrad.bfloat16, **options):
    return cygrad.autocast("cpu", dtype=dtype, **options)


class Run:
    """A small network that is trained by one of the functions below; `wrap` compiles the network."""

    def __init__(self, wrap):
        cygrad.manual_seed(2)
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.LayerNorm(6), nn.Linear(6, 3))
        self.optimizer = cygrad.optim.SGD(self.net.parameters(), 0.05, momentum=0.9)
        self.compiled = wrap(self.net)
        self.x, self.y = cygrad.randn(5, 4), cygrad.randint(0, 3, (5,))

    def loss(self, x):
        return F.cross_entropy(self.compiled(x), self.y)

    def update(self, loss):
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


def outside(run, x):
    with casting():
        loss = run.loss(x)
    return run.update(loss)


def in_float16(run, x):
    with casting(cygrad.float16):
        loss = run.loss(x)
    return run.update(loss)


def without_cache(run, x):
    with casting(cache_enabled=False):
        loss = run.loss(x) + run.loss(x * 2)
    return run.update(loss)


def backward_within(run, x):
    with casting():
        return run.update(run.loss(x))


def used_outside_too(run, x):
    """The casts that the call has made are used by what follows, so that gradients are summed in half precision."""
    with casting():
        loss = run.loss(x) + F.linear(x, run.net[0].weight).sigmoid().mean()
    return run.update(loss)


def called_twice(run, x):
    with casting():
        loss = run.loss(x) + run.loss(x * 2)
    return run.update(loss)


def two_passes(run, x):
    """The second pass goes through casts whose graph has been used up by the first, which eager ones can do."""
    with casting():
        run.loss(x).backward()
        loss = run.loss(x * 2)
    return run.update(loss)


def recorded_gradients(run, x):
    with casting():
        loss = run.loss(x)
    gradients = cygrad.autograd.grad(loss, list(run.net.parameters()), create_graph=True)
    return run.update(loss + sum(g.pow(2).sum() for g in gradients))


def without_grad(run, x):
    with cygrad.no_grad(), casting():
        return run.compiled(x)


def disabled_and_enabled(run, x):
    with casting():
        loss = run.loss(x)
    with casting(enabled=False):
        loss = loss + run.loss(x)
    return run.update(loss)


WAYS = {
    way.__name__: way for way in (outside, in_float16, without_cache, backward_within, used_outside_too, called_twice)
}
WAYS |= {way.__name__: way for way in (two_passes, recorded_gradients, without_grad, disabled_and_enabled)}


@pytest.mark.parametrize("way", WAYS)
def test_within_autocast(way):
    eager, other = Run(lambda net: net), Run(cygrad.compile)
    for _ in range(10):
        x = cygrad.randn(5, 4)
        assert state_of(WAYS[way](other, x)) == state_of(WAYS[way](eager, x)), other.compiled.explain()
        for p, q in zip(other.net.parameters(), eager.net.parameters()):
            assert state_of(p) == state_of(q)
    assert other.compiled.explain().replays >= 3, other.compiled.explain()


def test_whole_steps():
    eager, other = Run(lambda net: net), Run(lambda net: net)
    step = cygrad.compile(lambda x: other.update(other.loss(x)))
    for _ in range(8):
        x = cygrad.randn(5, 4)
        with casting():
            assert state_of(step(x)) == state_of(eager.update(eager.loss(x)))
    assert step.explain().replays >= 3


def test_a_plan_is_for_its_settings():
    layer = nn.Linear(4, 3)
    compiled, x = cygrad.compile(layer), cygrad.randn(2, 4)
    modes = [contextlib.nullcontext, casting, lambda: casting(cygrad.float16), lambda: casting(enabled=False)]
    for _ in range(6):
        for mode in modes:
            with mode():
                assert state_of(compiled(x).detach()) == state_of(layer(x).detach())
    assert compiled.explain().replays >= 9


def test_parameters_that_were_cast_before():
    """Where a parameter was cast before in the block, the call uses that cast, as it is written."""
    layer = nn.Linear(4, 3)
    compiled, x = cygrad.compile(layer), cygrad.randn(2, 4)
    for _ in range(5):
        with casting():
            compiled(x)
    before = compiled.explain().replays
    with casting():
        layer(x)
        assert type(compiled(x).grad_fn).__name__ != "CompiledFunctionBackward"
    assert compiled.explain().replays == before
    with casting():
        compiled(x)
    assert compiled.explain().replays == before + 1


def test_products_of_half_precision_and_numbers():
    step = cygrad.compile(lambda x: (x * 0.3, 1.7 / x, x / 3, 2.1 * x.t(), F.layer_norm(x, (4,))))
    for dtype in (cygrad.bfloat16, cygrad.float16):
        for _ in range(6):
            x = cygrad.randn(5, 4).to(dtype)
            assert [state_of(t) for t in step(x)] == [state_of(t) for t in step.__wrapped__(x)]
    assert step.explain().replays >= 6
