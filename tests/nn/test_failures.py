"""An error in a forward pass keeps its text and adds the path of the module that raised it."""

import copy

import pytest

import cygrad as torch
from cygrad import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.body = nn.ModuleList([nn.Linear(4, 4), nn.Linear(5, 2)])

    def forward(self, x):
        x = self.encoder(x)
        for layer in self.body:
            x = layer(x)
        return x


class Calls(nn.Module):
    """Calls a module that is not a submodule."""

    def __init__(self, stranger):
        super().__init__()
        self.strangers = [stranger]

    def forward(self, x):
        return self.strangers[0](x)


def failure(function, *args, kind=RuntimeError):
    with pytest.raises(kind) as caught:
        function(*args)
    return caught.value


def test_the_innermost_module_is_named_by_its_path():
    error = failure(Net(), torch.ones(2, 3))
    assert str(error).startswith("mat1 and mat2 shapes cannot be multiplied (2x4 and 5x2)\n")
    assert error.__notes__ == ["  in module 'body.1' of Net, Linear(in_features=5, out_features=2, bias=True)"]
    error = failure(nn.Sequential(Net(), nn.ReLU()), torch.ones(2, 3))
    assert error.__notes__ == ["  in module '0.body.1' of Sequential, Linear(in_features=5, out_features=2, bias=True)"]
    error = failure(nn.Linear(3, 2), torch.ones(2, 5))
    assert error.__notes__ == ["  in module Linear(in_features=3, out_features=2, bias=True)"]


def test_with_hooks_and_in_lazy_modules():
    model = nn.Sequential(nn.LazyLinear(4), nn.Linear(3, 2))
    model[1].register_forward_hook(lambda *_: None)
    error = failure(model, torch.ones(2, 3))
    assert error.__notes__ == ["  in module '1' of Sequential, Linear(in_features=3, out_features=2, bias=True)"]


def test_modules_that_are_no_parts():
    error = failure(nn.Sequential(Calls(nn.Linear(7, 1))), torch.ones(2, 3))
    assert error.__notes__ == ["  in module Linear(in_features=7, out_features=1, bias=True)"]


@pytest.mark.parametrize("kind", [ValueError, IndexError, TypeError, NotImplementedError])
def test_errors_of_programs(kind):
    class Raises(nn.Module):
        def forward(self, x):
            raise kind("mine")

        def extra_repr(self):
            return self.missing

    error = failure(nn.Sequential(Raises()), 1, kind=kind)
    assert str(error) == "mine" and error.__notes__ == ["  in module '0' of Sequential, Raises()"]
    error.__notes__ = []
    assert failure(nn.Sequential(copy.copy(Raises())), 1, kind=kind).__notes__


def test_signals_and_endless_recursion_are_left_alone():
    class Signal(Exception):
        pass

    class Stops(nn.Module):
        def forward(self, x):
            raise Signal

    assert not hasattr(failure(Stops(), 1, kind=Signal), "__notes__")

    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    assert not hasattr(failure(Endless(), 1, kind=RecursionError), "__notes__")


def test_embedding_tells_which_row_is_missing():
    error = failure(nn.Sequential(nn.Embedding(3, 2)), torch.tensor([[0, 2], [5, -1]]), kind=IndexError)
    assert str(error) == "index out of range in self\n  embedding: there is no row 5 in a table of 3"
    assert error.__notes__ == ["  in module '0' of Sequential, Embedding(3, 2)"]


@pytest.mark.parametrize("layer", [nn.Conv2d(1, 1, 1), nn.MaxPool2d(2), nn.GELU(), nn.Linear(1, 1), nn.LogSoftmax(1)])
def test_wrong_arguments_are_those_of_the_layer(layer):
    class Own(type(layer)):
        pass

    layer.__class__ = Own
    name = Own.__mro__[1].__name__
    for call, text in ((layer, "missing 1 required positional argument: 'input'"), (lambda: layer(1, 2, 3), "takes")):
        assert str(failure(call, kind=TypeError)).startswith(f"{name}.forward() {text}")


def test_assertions_of_layers_tell_their_module():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1)
    error = failure(model, torch.ones(3, 2, 5), kind=AssertionError)
    assert "'layers.0.self_attn' of TransformerEncoder" in error.__notes__[0]
