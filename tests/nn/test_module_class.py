"""Modules whose class is changed, and hooks that see members as they are registered."""

import copy
import pickle

import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn.modules import module as modules
from helpers import fails


class Counting:
    """Comes first among the bases of a module's new class."""

    calls = 0

    def forward(self, *args):
        self.calls += 1
        return super().forward(*args)


class CountingLinear(Counting, nn.Linear):
    """The same as a class of its own."""


@pytest.mark.parametrize("bases", [lambda cls: (Counting, cls), lambda cls: (cls,), lambda cls: (nn.Identity, cls)])
def test_class_of_a_module_can_change(bases):
    module = nn.Linear(2, 3)
    was = type(module)
    module.__class__ = type("Changed", bases(was), {})
    found = module(torch.ones(1, 2))
    assert found.shape == ((1, 2) if isinstance(module, nn.Identity) else (1, 3))
    assert getattr(module, "calls", 1) == 1
    module.__class__ = was
    assert module(torch.ones(1, 2)).shape == (1, 3)


def test_mixins_before_modules_are_copied_and_pickled():
    module = CountingLinear(2, 3)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert other(torch.ones(1, 2)).equal(module(torch.ones(1, 2))) and other.calls == 1
        module.calls = 0


def test_calls_that_a_class_defines_come_first():
    class Own(nn.Linear):
        def __call__(self, *args, **kwargs):
            return "own", super().__call__(*args, **kwargs).shape

    class Heir(Own):
        pass

    assert Own(2, 3)(torch.ones(1, 2)) == Heir(2, 3)(torch.ones(1, 2)) == ("own", (1, 3))
    Own.__call__ = nn.Module.__call__
    assert Heir(2, 3)(torch.ones(1, 2)).shape == (1, 3)
    del Own.__call__
    assert Heir(2, 3)(torch.ones(1, 2)).shape == (1, 3)


def test_arguments_of_calls():
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            kwargs.pop("gone", None)
            return args, kwargs

    echo, given = Echo(), {"a": 1, "gone": 2}
    assert echo() == ((), {}) and echo(1, b=2) == ((1,), {"b": 2}) and echo(**given) == ((), {"a": 1})
    echo.register_forward_pre_hook(lambda module, args, kwargs: kwargs.clear(), with_kwargs=True)
    assert echo(**given) == ((), {}) and given == {"a": 1, "gone": 2}
    assert nn.Module.__call__(echo, 1) == ((1,), {})
    with fails(TypeError, "descriptor '__call__' requires a 'Hooked' object but received a 'int'"):
        nn.Module.__call__(1)


# --- registration hooks ------------------------------------------------------------------------


@pytest.fixture
def registered():
    seen, kinds = [], ("parameter", "buffer", "module")
    handles = [
        getattr(modules, f"register_module_{kind}_registration_hook")(
            lambda module, name, value, kind=kind: seen.append((kind, name, value is None))
        )
        for kind in kinds
    ]
    assert all(len(getattr(modules, f"_global_{kind}_registration_hooks")) == 1 for kind in kinds)
    yield seen
    for handle in handles:
        handle.remove()
    assert not any(getattr(modules, f"_global_{kind}_registration_hooks") for kind in kinds)


def test_members_are_seen(registered):
    net = nn.Sequential(nn.BatchNorm1d(2))
    names = ["weight", "bias"], ["running_mean", "running_var", "num_batches_tracked"]
    assert registered == [
        *[("parameter", name, False) for name in names[0]],
        *[("buffer", name, False) for name in names[1]],
        ("module", "0", False),
    ]
    registered.clear()
    net[0].weight = nn.Parameter(torch.ones(2))
    net[0].bias = None
    net.register_buffer("b", None)
    net.b = torch.ones(1)
    net.one = nn.ReLU()
    net.one = None
    net.add_module("two", None)
    assert registered == [
        ("parameter", "weight", False),
        ("buffer", "b", True),
        ("buffer", "b", False),
        ("module", "one", False),
        ("module", "one", True),
        ("module", "two", True),
    ]


def test_members_are_replaced():
    handle = modules.register_module_module_registration_hook(lambda module, name, value: nn.Tanh())
    net = nn.Sequential(nn.ReLU())
    handle.remove()
    assert type(net[0]) is nn.Tanh
    handle = modules.register_module_parameter_registration_hook(lambda m, n, p: nn.Parameter(torch.full_like(p, 7.0)))
    layer = nn.Linear(1, 1)
    handle.remove()
    assert layer.weight.shape == (1, 1) and isinstance(layer.weight, nn.Parameter)
