"""Results that are views, such as gradients of sums: what can be seen of them, and whether they may be changed."""

import pytest
from compile.replays import bits

import cygrad


def sums(x):
    return cygrad.autograd.grad((x * 2).sum() + x.mean(), x)[0]


def expanded(x):
    return cygrad.autograd.grad(x.sum(), x)[0]


def transposed(x):
    return cygrad.autograd.grad((x.t() * 3).sum(), x)[0]


def two_of_one(x):
    y = (x.detach() + 1).requires_grad_()
    return cygrad.autograd.grad(x.sum() + y.sum(), (x, y))


@cygrad.no_grad()
def reshaped(x):
    y = x.tanh() @ x.t()
    return y.view(-1), y.exp()[1:].t()


@cygrad.no_grad()
def two_parts(x):
    y = x.exp()
    return y[0], y[1:]


@cygrad.no_grad()
def part_of_part(x):
    return (x + 1).view(-1)[2:].view(-1, 2)


STEPS = [sums, expanded, transposed, two_of_one, reshaped, two_parts, part_of_part]


def seen(tensors):
    """What programs can see of tensors, and of which of them share memory."""
    found = []
    for t in tensors:
        base = t._base
        described = None if base is None else (bits(base), base.stride(), t.storage_offset(), base._version)
        found.append((bits(t), t.stride(), t.requires_grad, t._version, t._is_view(), described))
    addresses = [t.untyped_storage().data_ptr() for t in tensors]
    return found, [addresses.index(each) for each in addresses]


def error_of(change, *tensors):
    try:
        change(*tensors)
    except RuntimeError as error:
        return str(error)
    return None


def compiled_and_not(step):
    """A compiled function that replays, and a function that makes an argument for each call."""
    compiled = cygrad.compile(step)
    for _ in range(4):
        compiled(cygrad.randn(4, 4, requires_grad=True))
    assert compiled._cygrad_step.replays() > 0, compiled.explain()
    return compiled


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_views_are_replayed(step):
    compiled = compiled_and_not(step)
    before = compiled._cygrad_step.replays()
    for _ in range(3):
        x = cygrad.randn(4, 4, requires_grad=True)
        assert seen(as_tuple(compiled(x))) == seen(as_tuple(step(x)))
    assert compiled._cygrad_step.replays() == before + 3


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_changes_of_replayed_views_do_and_raise_the_same(step):
    compiled = compiled_and_not(step)
    w = cygrad.randn(1, requires_grad=True)

    def change(t):
        with cygrad.no_grad():
            t.add_(1)

    for act in (
        change,
        lambda t: t.mul_(w),
        lambda t: t.zero_(),
        lambda t: (t if t._base is None else t._base).add_(1),
    ):
        x = cygrad.randn(4, 4, requires_grad=True)
        found, expected = as_tuple(compiled(x)), as_tuple(step(x))
        texts = [error_of(act, found[0]), error_of(act, expected[0])]
        assert (texts[0] and texts[0].splitlines()[0]) == (texts[1] and texts[1].splitlines()[0])
        assert seen(found) == seen(expected)


def test_each_replay_has_memory_of_its_own():
    compiled = compiled_and_not(reshaped)
    x = cygrad.randn(4, 4)
    first = compiled(x)
    kept = [bits(t) for t in first]
    second = compiled(x * 2)
    assert [bits(t) for t in first] == kept
    with cygrad.no_grad():
        second[0].zero_()
    assert [bits(t) for t in first] == kept


def test_a_gradient_that_is_a_view_is_set_by_a_step():
    w = [cygrad.zeros(3, 3, requires_grad=True) for _ in range(2)]

    def step(i):
        w[i].grad = None
        w[i].sum().backward()
        return None

    compiled = cygrad.compile(lambda: step(0))
    for _ in range(6):
        compiled()
        step(1)
        assert seen([w[0].grad]) == seen([w[1].grad])


def test_a_view_and_what_it_lies_in_are_not_replayed():
    @cygrad.no_grad()
    def step(x):
        y = x + 1
        return y.view(-1), y

    compiled = cygrad.compile(step)
    for _ in range(5):
        found = compiled(cygrad.ones(2, 2))
    assert compiled._cygrad_step.replays() == 0
    assert found[0]._base is found[1]
