"""Twin worlds whose step cannot be replayed, so that only its backward passes are: for `test_followed_...`."""

from __future__ import annotations

import re

from compile.replays import bits

import cygrad

SIZE = 100_000


class World:
    """Leaves, and a counter that keeps each step from being replayed as a whole."""

    def __init__(self, size=SIZE):
        cygrad.manual_seed(3)
        self.u = cygrad.randn(size, requires_grad=True)
        self.w = cygrad.randn(size, requires_grad=True)
        self.calls, self.kept = 0, []

    def fresh(self):
        """Other leaves with other values."""
        self.u = (self.u.detach() * 0.75 + 0.1).requires_grad_()
        self.w = (self.w.detach() * 0.5 - 0.1).requires_grad_()


def chain(u):
    return (cygrad.tanh(u) * u + cygrad.exp(u) * cygrad.sigmoid(u)).sum()


def seen(value):
    """All that can be seen of what a step returns."""
    if isinstance(value, cygrad.Tensor):
        return (
            *(bits(value.detach()), value.stride(), value.requires_grad, value.is_leaf, value._version),
            *(type(value.grad_fn).__name__, seen(value.grad) if value.is_leaf else None),
        )
    if isinstance(value, (list, tuple)):
        return [seen(each) for each in value]
    return value


class Twins:
    """An eager and a compiled world that do the same step."""

    def __init__(self, step, make=World):
        self.eager, self.other, self.step = make(), make(), step

        def counted(world):
            world.calls += 1
            return step(world)

        self.counted, self.compiled = counted, cygrad.compile(counted)

    @property
    def follower(self):
        return self.compiled._cygrad_step.plans.follower

    def outcome(self, call, world):
        try:
            value = seen(call(world))
        except (LookupError, RuntimeError, ValueError, ZeroDivisionError) as error:
            value = type(error), re.sub("0x[0-9a-f]+", "", str(error))
        return value, seen([world.u, world.w, *world.kept])

    def both(self, change=None):
        """Do a step in both worlds, after a change, and compare; return whether a pass was replayed."""
        before = self.follower.replays
        for world in (self.eager, self.other):
            if change is not None:
                change(world)
        wanted = self.outcome(self.counted, self.eager)
        assert self.outcome(self.compiled, self.other) == wanted, self.compiled.explain()
        return self.follower.replays > before

    def learned(self, change=None, times=12):
        """Do steps until passes are replayed."""
        for _ in range(times):
            if self.both(change):
                return self
        raise AssertionError([*(kind.reason for kind in self.follower.kinds), self.follower.missed])


def by_backward(world):
    value = chain(world.u * world.w)
    value.backward()
    return value


def reads_gradient(world):
    """Adds to the gradient of `w` before it reads that as a factor of `u`."""
    first = world.w.detach().clone()
    value = ((world.u * first).tanh().exp() * world.w).sum()
    world.w.grad = first if getattr(world, "changed", False) else cygrad.zeros_like(first)
    value.backward()
    return value
