"""Steps that read numbers from tensors only to return them are replayed; those that use them otherwise are not."""

import pytest

import cygrad
from cygrad import nn
from cygrad._core.replay.returns.flows import ways_out

F = nn.functional


def alone(x):
    return x.sum().item()


def several(x):
    total, positive = x.sum().item(), (x > 0).sum().item()
    return positive, total


def entries(x):
    return {"loss": x.mean().item(), "more": [len(x), float(x.max()), int((x > 0.5).sum())]}


def lists(x):
    return x.tolist(), (x > 0).tolist()


def half(x):
    return x.bfloat16().sum().item(), x.half().tolist()


def changed_afterwards(x):
    y = x * 2
    first = y[0].item()
    y.zero_()
    return first, y[0].item()


@cygrad.no_grad()
def decorated(x):
    return (x * 2).sum().item()


def within_a_block(x):
    with cygrad.no_grad():
        return (x * 2).sum().item(), x * 3


def by_a_condition(x):
    total = x.sum().item()
    if len(x) > 2:
        return total
    return -1.0


RETURNING = [alone, several, entries, lists, half, changed_afterwards, decorated, within_a_block, by_a_condition]


def equal(one, other):
    if isinstance(one, cygrad.Tensor):
        return cygrad.equal(one, other)
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(equal, one.values(), other.values()))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("function", RETURNING, ids=lambda function: function.__name__)
def test_returned_numbers(function):
    if function is half:
        pytest.importorskip("ml_dtypes")
    compiled = cygrad.compile(function)
    for _ in range(8):
        x = cygrad.randn(5)
        assert equal(compiled(x), function(x))
    assert compiled.explain().replays >= 4, compiled.explain()


def test_a_training_step():
    def trained(wrap):
        cygrad.manual_seed(0)
        net = nn.Linear(4, 3)
        optimizer = cygrad.optim.Adam(net.parameters())

        @wrap
        def step(x, y):
            optimizer.zero_grad()
            found = net(x)
            loss = F.cross_entropy(found, y)
            loss.backward()
            optimizer.step()
            return loss.item(), (found.argmax(1) == y).sum().item()

        found = [step(cygrad.randn(6, 4), cygrad.randint(0, 3, (6,))) for _ in range(10)]
        return step, found

    step, found = trained(cygrad.compile)
    assert found == trained(lambda step: step)[1]
    assert step.explain().replays >= 6


SEEN = []


def compared(x):
    total = x.sum().item()
    return -total if total < 0 else total


def rounded(x):
    return round(x.sum().item(), 1)


def kept(x):
    total = x.sum().item()
    SEEN.append(total)
    return total


def formatted(x):
    return f"{x.sum().item():.2f}"


def sorted_by(x):
    return sorted(x.unbind(), key=cygrad.Tensor.item)


def mapped(x):
    return max(map(float, x.unbind()))


def in_a_closure(x):
    total = x.sum().item()
    return [total for _ in range(2) if total > 0]


def in_two_places(x):
    values = x.tolist()
    return values, values


@pytest.mark.parametrize(
    "function", [compared, rounded, kept, formatted, sorted_by, mapped, in_a_closure, in_two_places]
)
def test_numbers_that_are_used(function):
    compiled = cygrad.compile(function)
    for i in range(8):
        x = cygrad.randn(5) * (-1) ** i
        assert equal(compiled(x), function(x))
    assert compiled.explain().replays == 0


def test_equal_integers_are_not_mistaken_for_each_other():
    def step(x, first):
        count = (x > 0).sum().item()
        return (3, count) if first else (count, 3)

    def overwritten(x):
        count = 3
        for row in x:
            count = (row > 0).sum().item()
        return 3, count

    def by_the_way(x):
        count = (x > 0).sum().item()
        found = (3, count) if len(x) > 1 else (5, 3)
        return found

    x = cygrad.tensor([[1.0, 1.0, 1.0, -1.0]])
    for function, more in ((step, (True,)), (step, (False,)), (overwritten, ()), (by_the_way, ())):
        compiled = cygrad.compile(function)
        for sign in (1,) * 6 + (-1, 1):
            assert compiled(x * sign, *more) == function(x * sign, *more)


def test_numbers_before_double_backward():
    weight = cygrad.randn(4, requires_grad=True)

    def step(x):
        y = (x * weight).tanh()
        return y, y.sum().item()

    compiled = cygrad.compile(step)
    for _ in range(8):
        x = cygrad.randn(4)
        found = []
        for function in (compiled, step):
            y, total = function(x)
            (slope,) = cygrad.autograd.grad(y.sum(), weight, create_graph=True)
            found.append((total, cygrad.autograd.grad(slope.pow(2).sum(), weight)[0].tolist()))
        assert found[0] == found[1]
    assert compiled.explain().replays >= 4


def test_reading_the_instructions_takes_no_call_for_granted():
    def reading(x):
        return float(x), list(map(float, [x]))

    calls = [0]
    # no offset of the function is that of a call of `item`
    for offset in range(0, len(reading.__code__.co_code), 2):
        calls[0] += ways_out(reading.__code__, offset, "item", True) is not None
    assert calls == [0]
    found = {
        ways_out(reading.__code__, offset, "float", False) for offset in range(0, len(reading.__code__.co_code), 2)
    }
    assert found == {None, frozenset([(0,)])}
