"""Two equal worlds, one stepped by a compiled function and one as it is written, and the comparison of their bits."""

from __future__ import annotations

import cygrad
from cygrad import nn


class World:
    """A model with its optimizer; `step(x, y)` trains it once and returns the loss."""

    def __init__(self, optimizer=None, layers=None, clears=True):
        cygrad.manual_seed(3)
        self.net = nn.Sequential(*(layers() if layers else (nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))))
        make = optimizer or (lambda parameters: cygrad.optim.SGD(parameters, lr=0.125))
        self.optimizer = make(self.net.parameters())
        self.x, self.y = cygrad.randn(5, 4), cygrad.randn(5, 3)
        self.scale, self.clears = 1.0, clears
        self.kept = []

    def step(self, x, y):
        if self.clears:
            self.optimizer.zero_grad()
        loss = ((self.net(x) - y) ** 2).sum() * self.scale
        loss.backward()
        self.optimizer.step()
        return loss


def state_of(value):
    """All that can be seen of a tensor: bytes, layout, version, gradient."""
    if not isinstance(value, cygrad.Tensor):
        return value
    array = value.detach().cpu().numpy()
    return (
        *(type(value), value.dtype, tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf),
        *(
            value._version,
            array.tobytes(),
            type(value.grad_fn).__name__,
            state_of(value.grad) if value.is_leaf else None,
        ),
    )


def states(world):
    """Parameters, buffers and the optimizer's state."""
    found = [state_of(t) for t in (*world.net.parameters(), *world.net.buffers())]
    for state in world.optimizer.state.values():
        found += [(name, state_of(value)) for name, value in state.items()]
    return found


class Twins:
    """A compiled and an eager world that do the same."""

    def __init__(self, make=World, **options):
        self.eager, self.other = make(), make()
        self.compiled = cygrad.compile(self.other.step, **options)

    def both(self, change):
        """Do something to both worlds."""
        return change(self.eager), change(self.other)

    def run(self, times=5, *arguments, of=None):
        """Do steps, and compare all results and all state after each."""
        for _ in range(times):
            one = arguments or (of(self.eager) if of else (self.eager.x, self.eager.y))
            two = arguments or (of(self.other) if of else (self.other.x, self.other.y))
            expected, found = self.eager.step(*one), self.compiled(*two)
            assert state_of(found) == state_of(expected), self.compiled.explain()
            assert states(self.other) == states(self.eager), self.compiled.explain()

    @property
    def replays(self):
        return self.compiled._cygrad_step.replays()
