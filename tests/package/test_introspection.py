"""Tools ask classes and functions for their signatures and types: editors, dataclasses, configuration libraries."""

import importlib
import inspect
import pickle
import pkgutil
import typing

import pytest

import cygrad
from cygrad import nn


def public_modules():
    names = [info.name for info in pkgutil.walk_packages(cygrad.__path__, "cygrad.")]
    return [name for name in names if "._" not in name and ".as_torch" not in name]


def members(module):
    """The classes and functions that a module defines, and the methods of the classes."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__ and (
            inspect.isclass(value) or inspect.isroutine(value)
        ):
            yield value
            if inspect.isclass(value):
                yield from filter(inspect.isfunction, vars(value).values())


def failing(ask, chosen=lambda member: True):
    """The public functions, classes and methods for which a function raises, with its errors."""
    found = []
    for name in public_modules():
        for member in filter(chosen, members(importlib.import_module(name))):
            try:
                ask(member)
            except (NameError, TypeError, ValueError, AttributeError) as error:
                found.append((name, member, error))
    return found


def test_annotations_resolve():
    assert failing(typing.get_type_hints) == []


def test_signatures():
    # Classes that take what a built-in class takes have no signature in Python.
    def has_one(member):
        return not (inspect.isclass(member) and member.__new__ is not object.__new__ and "__new__" not in vars(member))

    assert failing(inspect.signature, has_one) == []


def test_types_of_members():
    hints = typing.get_type_hints(nn.Linear)
    assert hints["weight"] is cygrad.Tensor and hints["bias"] == cygrad.Tensor | None and hints["training"] is bool
    assert typing.get_type_hints(nn.Module.add_module)["module"] == nn.Module | None


def test_signature_of_a_module():
    layer = nn.Linear(2, 2)
    assert str(inspect.signature(layer)) == "(*args, **kwargs)"
    assert list(inspect.signature(nn.Linear).parameters) == ["in_features", "out_features", "bias", "device", "dtype"]
    assert not hasattr(nn.Module, "__signature__")
    assert type(pickle.loads(pickle.dumps(layer))) is nn.Linear


def test_attributes_of_a_parameter():
    parameter = nn.Parameter(cygrad.ones(2))
    parameter.note = 1
    del parameter.note
    assert not hasattr(parameter, "note")
    with pytest.raises(AttributeError, match="^'Parameter' object has no attribute 'note'$"):
        del parameter.note
    parameter.grad = cygrad.ones(2)
    del parameter.grad
    assert parameter.grad is None
    with pytest.raises(AttributeError):
        del parameter.shape


def test_optimizer_that_wraps_another():
    class Wrapper(cygrad.optim.Optimizer):
        def __init__(self, inner):  # as libraries write it: without super().__init__()
            self.inner = inner

        @property
        def param_groups(self):
            return self.inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    parameter = nn.Parameter(cygrad.ones(1))
    parameter.grad = cygrad.ones(1)
    calls = []
    handle = cygrad.optim.optimizer.register_optimizer_step_pre_hook(
        lambda optimizer, *_: calls.append(type(optimizer))
    )
    Wrapper(cygrad.optim.SGD([parameter], lr=0.5)).step()
    handle.remove()
    assert parameter == 0.5 and calls == [Wrapper, cygrad.optim.SGD]


@pytest.mark.parametrize("name", ["add", "sum", "ones", "sort", "add_", "relu"])
def test_ipython_shows_one_signature_and_one_docstring(name):
    function = getattr(cygrad, name)
    # what IPython compares, and shows below the function's own if it differs
    assert inspect.signature(function.__call__) == inspect.signature(function)
    assert inspect.getdoc(function.__call__) is None and inspect.getdoc(function)


def test_calls_by_their_method():
    x = cygrad.tensor([1.0, 2.0])
    assert cygrad.add.__call__(x, 1, alpha=2).tolist() == [3, 4]
    assert pickle.loads(pickle.dumps(cygrad.add)) is cygrad.add
    with pytest.raises(TypeError, match="^add\\(\\) got an unexpected keyword argument 'beta'"):
        cygrad.add.__call__(x, 1, beta=2)
