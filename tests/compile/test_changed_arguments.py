"""Steps that change their arguments in place: replayed, with the bits, versions and errors of eager steps."""

import numpy as np
import pytest
from compile.twins import state_of

import cygrad
from cygrad import nn

F = nn.functional


def scaled(x, y):
    x.mul_(2).add_(y)
    return x


def filled(x, y):
    x.zero_()
    x[1:] = 7
    y.fill_(3)
    return x + y


def moved(x, y):
    """Two tensors that are carried along: places and speeds."""
    y -= 0.1 * x.sin()
    x += 0.1 * y


def cached(x, y):
    """A row of a table is replaced, by a kernel in Python, and the table read."""
    with cygrad.no_grad():
        x.index_copy_(0, cygrad.tensor([1]), y.sum().view(1))
        return x.sort().values


def statistics(x, y):
    found = F.batch_norm(y.view(3, 1) @ cygrad.ones(1, 3), x, y, training=True, momentum=0.1)
    return found.sum()


def counted(x, y):
    x.add_(1)
    return y.sum().item()


STEPS = [scaled, filled, moved, cached, statistics, counted]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("kept", [True, False], ids=["the same tensors", "others"])
def test_changed_arguments(step, kept):
    compiled = cygrad.compile(step)
    pairs = cygrad.randn(3), cygrad.randn(3)
    one, two = tuple(t.clone() for t in pairs), tuple(t.clone() for t in pairs)
    for _ in range(8):
        if not kept:
            pairs = cygrad.randn(3), cygrad.randn(3)
            one, two = tuple(t.clone() for t in pairs), tuple(t.clone() for t in pairs)
        assert state_of(compiled(*one)) == state_of(step(*two))
        assert [state_of(t) for t in one] == [state_of(t) for t in two]
    assert compiled.explain().replays >= 4, compiled.explain()


def test_views_as_arguments():
    compiled = cygrad.compile(scaled)
    one, two = cygrad.zeros(3, 4), cygrad.zeros(3, 4)
    for i in range(8):
        y = cygrad.randn(3)
        compiled(one[:, i % 4], y)
        scaled(two[:, i % 4], y)
        assert state_of(one) == state_of(two)
    assert compiled.explain().replays >= 4


def test_weights_as_arguments():
    def step(x, weights):
        loss = (x @ weights[0] + weights[1]).tanh().pow(2).mean()
        slopes = cygrad.autograd.grad(loss, weights)
        with cygrad.no_grad():
            for weight, slope in zip(weights, slopes):
                weight -= 0.1 * slope
        return loss

    compiled = cygrad.compile(step)
    one = [cygrad.randn(4, 3, requires_grad=True), cygrad.zeros(3, requires_grad=True)]
    two = [w.detach().clone().requires_grad_() for w in one]
    for _ in range(8):
        x = cygrad.randn(5, 4)
        assert state_of(compiled(x, one)) == state_of(step(x, two))
        assert [w.tolist() for w in one] == [w.tolist() for w in two]
    assert compiled.explain().replays >= 4


def test_the_error_names_the_line_of_the_change():
    def step(x):
        x.add_(1)

    compiled, weight = cygrad.compile(step), cygrad.ones(3, requires_grad=True)
    for _ in range(6):
        x = cygrad.randn(3)
        loss = (x * weight).sum()
        compiled(x)
        with pytest.raises(cygrad.errors.ChangedInPlaceError, match=r"changed by add_ at .*`x.add_\(1\)`"):
            loss.backward()
    assert compiled.explain().replays >= 2


def outcome(function, *args):
    """The values of the arguments after a call, and its error."""
    try:
        function(*args)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return [t.tolist() for t in args]


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
def test_memory_that_is_shared_or_read_only():
    def doubled(x, y):
        x.mul_(2)
        return x + y

    def frozen():
        numbers = np.arange(3.0, dtype=np.float32)
        numbers.flags.writeable = False
        return cygrad.from_numpy(numbers), cygrad.ones(3)

    def overlapping():
        memory = cygrad.arange(5.0)
        return memory[:3], memory[2:]

    for draw in (frozen, overlapping):
        compiled = cygrad.compile(doubled)
        for _ in range(5):
            compiled(cygrad.randn(3), cygrad.randn(3))
        before = compiled.explain().replays
        assert before >= 2
        assert outcome(compiled, *draw()) == outcome(doubled, *draw())
        assert compiled.explain().replays == before


def test_a_failing_kernel_leaves_arguments_as_they_were():
    def step(x, places):
        x.add_(1)
        return x[places]

    compiled = cygrad.compile(step)
    for _ in range(6):
        compiled(cygrad.randn(3), cygrad.tensor([0, 2]))
    assert compiled.explain().replays >= 2
    x = cygrad.zeros(3)
    with pytest.raises(IndexError):
        compiled(x, cygrad.tensor([0, 3]))
    assert x.tolist() == [1, 1, 1]  # as in the eager step, which adds once


def test_backward_passes_that_come_later_are_eager():
    weight = cygrad.ones(3, requires_grad=True)

    def step(x):
        found = (x * weight).sum()
        x.add_(1)
        return found

    compiled = cygrad.compile(step)
    for _ in range(5):
        with pytest.raises(cygrad.errors.ChangedInPlaceError):
            compiled(cygrad.randn(3)).backward()
    assert compiled.explain().replays == 0
