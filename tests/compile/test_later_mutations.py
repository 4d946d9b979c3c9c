"""Each guard of later backward passes is needed: without it, a compiled function would differ from an eager one."""

from compile.replays import bits
from compile.test_later_backward import Pair, parameters_of, step_of, train

import cygrad
from cygrad import nn
from cygrad.compiler import _watching


class Counting(nn.Module):
    """Returns what depends on a buffer that it changes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("scale", cygrad.ones(3))

    def forward(self, x):
        out = self.linear(x) + self.scale
        with cygrad.no_grad():
            self.scale.mul_(1.125)
        return out.tanh()


def misses_a_change(mutate):
    """Whether a changed weight goes unnoticed."""
    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))
    mutate(pair.past)
    loss = pair.compiled(pair.x).pow(2).mean()
    with cygrad.no_grad():
        parameters_of(pair.compiled)[2].add_(1)
    try:
        loss.backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return False
    return True


def test_without_a_look_at_versions():
    assert not misses_a_change(lambda past: None)
    assert misses_a_change(lambda past: past.watched.clear())


def second_gradients(mutate):
    """Whether double backward has eager's bits."""
    pair = Pair(Counting)
    for i in range(5):
        if i == 4:
            mutate(pair.past)
        found = []
        for model in (pair.compiled, pair.eager):
            x = pair.x.clone().requires_grad_()
            (slope,) = cygrad.autograd.grad(model(x).sum(), x, create_graph=True)
            found.append((bits(slope), bits(cygrad.autograd.grad(slope.pow(2).sum(), x)[0])))
    assert pair.replays > 0
    return found[0] == found[1]


def test_without_the_former_state():
    def forget(past):
        past.keeps_former = False

    assert second_gradients(lambda past: None)
    assert not second_gradients(forget)


def test_without_a_look_at_functions_that_read_grads(monkeypatch):
    def is_stale():
        weight = cygrad.ones(3, requires_grad=True)
        step = cygrad.compile(lambda x: x * weight * (2 if weight.grad is None else 3))
        x = cygrad.ones(3)
        for _ in range(5):
            step(x)
        assert step._cygrad_step.replays() > 0
        weight.grad = cygrad.ones(3)
        return step(x).tolist() != [3, 3, 3]

    assert not is_stale()
    monkeypatch.setattr(_watching.Watch, "sees_grads", False)
    assert is_stale()


def test_without_the_function_there_is_an_error_and_no_wrong_gradient():
    pair = Pair()
    for _ in range(5):
        pair.both(train(pair.x, pair.y))
    out = pair.compiled(pair.x)
    pair.other.eval()  # the function would be another one
    try:
        cygrad.autograd.grad(out.sum(), parameters_of(pair.compiled), create_graph=True)
    except RuntimeError as error:
        assert "training was True and is False" in str(error)
    else:
        raise AssertionError
    assert step_of(pair.compiled).replays() > 0
