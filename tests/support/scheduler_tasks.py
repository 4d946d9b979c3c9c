"""What workers of Ray and Dask run in the tests: a module that they can import, by this name."""

import warnings

import cygrad as torch


def trained(pair, x, steps=3):
    """Train a model and its optimizer for some steps; returns both."""
    model, optimizer = pair
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return model, optimizer


class Run:
    """A model and its optimizer in one object; Dask takes tuples apart."""

    def __init__(self, pair):
        self.model, self.optimizer = pair

    def go_on(self, x):
        trained((self.model, self.optimizer), x)
        return self


def warned(model, optimizer, x):
    """What a step of an optimizer that has come apart from its model warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        trained((model, optimizer), x, 2)
    return [str(each.message) for each in found]


def lacks_a_gradient():
    torch.ones(2).sum().backward()


def changes_what_is_needed():
    w = torch.ones(2, requires_grad=True)
    h = w * 2
    loss = (h**2).sum()
    h += 1
    loss.backward()


def drawn(generator):
    return torch.randn(3, generator=generator), generator


class Learner:
    """An actor: a model that stays in its process."""

    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), [p.grad for p in self.model.parameters()]

    def state(self):
        return self.model.state_dict()

    def fail(self):
        changes_what_is_needed()
