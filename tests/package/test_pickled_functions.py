"""Functions are pickled by reference: a worker process finds the same one."""

import pickle
from importlib import import_module
from types import FunctionType, ModuleType

import pytest

import cygrad

MODULES = """
    cygrad cygrad._C._nn cygrad._VF cygrad.autograd cygrad.distributed cygrad.fft cygrad.func cygrad.linalg
    cygrad.masked cygrad.nn.functional cygrad.nn.init cygrad.nn.utils cygrad.nn.utils.rnn cygrad.ops._aten cygrad.optim
    cygrad.overrides cygrad.random cygrad.signal.windows cygrad.sparse cygrad.special cygrad.utils cygrad.utils.data
""".split()
FUNCTIONS = (FunctionType, type(cygrad.add))


def functions_of(place):
    """The functions that a module or class shows, by name."""
    found = {name: getattr(place, name) for name in dir(place) if not name.startswith("__")}
    return {name: value for name, value in found.items() if isinstance(value, FUNCTIONS)}


def lost(functions):
    """The names of those that cannot be pickled, or come back as others."""

    def is_lost(function):
        try:
            return pickle.loads(pickle.dumps(function)) is not function
        except (pickle.PicklingError, AttributeError, TypeError):
            return True

    return [name for name, function in functions.items() if is_lost(function)]


@pytest.mark.parametrize("name", MODULES)
def test_public_functions(name):
    module = import_module(name)
    assert isinstance(module, ModuleType)
    assert lost(functions_of(module)) == []


def test_methods_of_tensor():
    assert len(functions_of(cygrad.Tensor)) > 500
    assert lost(functions_of(cygrad.Tensor)) == []


@pytest.mark.parametrize("name", ["add_", "relu_", "dropout_", "_foreach_add_", "reshape", "softmax", "_cast_Long"])
def test_where_they_are_found(name):
    assert name in str(pickle.dumps(getattr(cygrad, name), 0))
