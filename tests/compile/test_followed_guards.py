"""Each thing that two backward passes are compared by is needed: taken out, a test gives something else than eager."""

import re
from pathlib import Path

import pytest
from compile.followed import SIZE, Twins, by_backward, chain, reads_gradient

import cygrad
from cygrad._core.replay import parts

FOLDER = Path(cygrad.__file__).parent / "_core" / "replay" / "calls"
SOURCES = [FOLDER / "schemes.pyx", FOLDER / "following.pyx"]


def leaf(values):
    return values.detach().clone().requires_grad_()


def double(world):
    world.u, world.w = leaf(world.u.double()), leaf(world.w.double())


def doubled(world):
    """Twice as many elements: those of before would be read."""
    world.u, world.w = leaf(cygrad.cat([world.u, world.u])), leaf(cygrad.cat([world.w, world.w]))


def hooked(world):
    world.u.register_hook(lambda grad: grad * 2)


class Case:
    """`step` until its pass is replayed; then once more after `change`, or with what it does if `world.changed`."""

    def __init__(self, step, change=lambda world: None):
        self.step, self.change = step, change


def by_change(before, after):
    def step(world):
        value = (after if getattr(world, "changed", False) else before)(world)
        value.backward()
        return value

    return Case(step)


def modified(world):
    a = world.u * world.w
    value = (a.tanh() * a).exp().sigmoid().sum()
    if getattr(world, "changed", False):
        with cygrad.no_grad():
            a.mul_(2)
    value.backward()
    return value


def asked(world):
    value = chain(world.u * world.w)
    other = getattr(world, "changed", False)
    return cygrad.autograd.grad(value, [world.u] if other else [world.w])[0]


def in_other_memory(world):
    a, b = world.u.detach() * 2, world.w.detach() * 3
    pair = (a, b) if getattr(world, "changed", False) else (a, a)
    value = ((world.u * pair[0]).tanh() * (world.w * pair[1]).exp()).sigmoid().sum()
    value.backward()
    return value


def in_another_order(world):
    """Three gradients meet at `u`; the engine adds them up in the order in which their nodes were made."""
    makers = {"a": lambda: world.u.tanh(), "b": lambda: world.u.exp(), "c": lambda: (world.u * world.w).sigmoid()}
    order = "cab" if getattr(world, "changed", False) else "abc"
    found = {name: makers[name]() for name in order}
    value = (found["a"] * found["b"] * found["c"]).sum()
    value.backward()
    return value


def beside_a_saved_part(world):
    """The gradient of a leaf is a part of a buffer of which the graph saves another part after the change."""
    flat, apart = cygrad.zeros(2 * SIZE), cygrad.zeros(SIZE)
    world.w.grad = flat[:SIZE]
    other = flat[SIZE:] if getattr(world, "changed", False) else apart
    value = (chain(world.u * other + world.u) * world.w).sum()
    value.backward()
    return value


def begun_with(first, other):
    """A pass that begins with another gradient after the change."""

    def step(world):
        values = (world.u * world.w).tanh().exp().sigmoid()
        values.backward((other if getattr(world, "changed", False) else first)(world.w.detach()))
        return values

    return Case(step)


CASES = {
    "other gradients are asked for": Case(asked),
    "a node has hooks": Case(by_backward, hooked),
    "a node is of another op": by_change(
        lambda world: (world.u.tanh() * world.w).sigmoid().sum(),
        lambda world: (world.u.sigmoid() * world.w).sigmoid().sum(),
    ),
    "a node leads elsewhere": by_change(
        lambda world: (world.u.tanh() * world.w.exp() * world.w).sum(),
        lambda world: (world.u.tanh() * world.w.exp() * world.u).sum(),
    ),
    "an op has other arguments": by_change(
        lambda world: (world.u.reshape(500, 200).softmax(-1) * world.w.reshape(500, 200)).sigmoid().sum(),
        lambda world: (world.u.reshape(500, 200).softmax(0) * world.w.reshape(500, 200)).sigmoid().sum(),
    ),
    "another number is saved": by_change(
        lambda world: ((world.u * 2).tanh() * world.w).sigmoid().sum(),
        lambda world: ((world.u * 3).tanh() * world.w).sigmoid().sum(),
    ),
    "a saved tensor was changed in place": Case(modified),
    "saved tensors share memory in another way": Case(in_other_memory),
    "the pass reads the gradient of a leaf": Case(reads_gradient),
    "the pass changes the version of a saved tensor": Case(beside_a_saved_part),
}


CASES |= {
    "nodes were made in another order": Case(in_another_order),
    "an argument has another dtype|a result has another shape or dtype": Case(by_backward, double),
    "an argument has another shape|a result has another shape or dtype|an op has other arguments": Case(
        by_backward, doubled
    ),
    "an argument has other strides": begun_with(lambda w: w.clone(), lambda w: cygrad.stack([w, -w], 1)[:, 0]),
}

# Reasons that nothing but memory errors, or another guard, stands behind.
NOT_TRIED: dict[str, str] = {}


def differs(case, taken_out):
    twins = Twins(case.step).learned()
    parts.pass_over(taken_out)
    try:
        for world in (twins.eager, twins.other):
            world.changed = True
            case.change(world)
        wanted = twins.outcome(twins.counted, twins.eager)
        return twins.outcome(twins.compiled, twins.other) != wanted
    finally:
        parts.pass_over(None)


@pytest.mark.parametrize("reason", CASES)
def test_without_a_guard(reason):
    assert not differs(CASES[reason], None)
    assert differs(CASES[reason], set(reason.split("|")))


@pytest.mark.skipif(not SOURCES[0].exists(), reason="the source is not installed")
def test_all_guards_are_tried():
    text = "".join([source.read_text(encoding="utf-8") for source in SOURCES])
    reasons = set(re.findall(r'matters\(b"(.*?)"\)', text))
    assert len(reasons) > 8
    assert reasons <= {reason for names in CASES for reason in names.split("|")} | NOT_TRIED.keys()
