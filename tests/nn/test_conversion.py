"""Conversions of modules, and loading, by new or swapped parameters: `__future__`."""

import weakref

import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails

future = torch.__future__


@pytest.fixture
def swaps():
    future.set_swap_module_params_on_conversion(True)
    yield
    future.set_swap_module_params_on_conversion(False)


@pytest.fixture
def overwrites():
    future.set_overwrite_module_params_on_conversion(True)
    yield
    future.set_overwrite_module_params_on_conversion(False)


def trained():
    """Return a layer with gradients and one without, its weight, and the gradient."""
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    layer(torch.ones(1, 2)).backward()
    return layer, layer.weight, layer.weight.grad


def test_settings():
    assert not future.get_swap_module_params_on_conversion()
    assert not future.get_overwrite_module_params_on_conversion()


def test_new_parameters(overwrites):
    layer, weight, grad = trained()
    layer.double()
    assert layer.weight is not weight and weight.dtype is torch.float32 and grad.dtype is torch.float32
    assert layer.weight.dtype is layer.weight.grad.dtype is torch.float64
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad and not layer.bias.requires_grad
    assert layer.weight.grad.tolist() == [[1.0, 1.0]] and weight.grad is grad


def test_swapped_parameters(swaps):
    layer, weight, grad = trained()
    view = weight.detach()
    layer.double()
    assert layer.weight is weight and layer.weight.grad is grad
    assert weight.dtype is grad.dtype is torch.float64 and weight.requires_grad and not layer.bias.requires_grad
    assert view.dtype is torch.float32 and grad.tolist() == [[1.0, 1.0]]
    layer(torch.ones(1, 2, dtype=torch.float64)).backward()
    assert grad.tolist() == [[2.0, 2.0]]


def test_what_cannot_be_swapped_stays(swaps):
    layer, weight, grad = trained()
    watch = weakref.ref(weight)
    with fails(RuntimeError, "_apply(): Couldn't swap Linear.weight"):
        layer.double()
    assert watch().dtype is torch.float32 and layer.weight.grad is grad
    state = nn.Linear(2, 1).state_dict()
    with pytest.raises(RuntimeError, match='While swapping the parameter named "weight"'):
        layer.load_state_dict(state)


@pytest.mark.parametrize("assign", [False, True])
def test_loading_swaps(swaps, assign):
    layer, weight, grad = trained()
    state = {name: value + 1 for name, value in layer.double().state_dict().items()}
    layer.float().load_state_dict(state, assign=assign)
    assert layer.weight is weight and layer.weight.grad is None and weight.requires_grad
    assert weight.dtype is (torch.float64 if assign else torch.float32)
    assert torch.allclose(weight.double(), state["weight"])


class Doubling(torch.Tensor):
    """Loads what it is given times two."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.module_load:
            return (args[1].as_subclass(torch.Tensor) * 2).as_subclass(cls)
        return super().__torch_function__(func, types, args, kwargs)


class Same(torch.Tensor):
    """Loads the given tensor itself, as it must not."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[1] if func is torch.Tensor.module_load else super().__torch_function__(func, types, args, kwargs)


def test_classes_decide_how_they_are_loaded(swaps):
    module = nn.Module()
    module.register_buffer("kept", torch.zeros(2).as_subclass(Doubling))
    kept = module.kept
    module.load_state_dict({"kept": torch.ones(2)})
    assert module.kept is kept and type(kept) is Doubling and kept.tolist() == [2.0, 2.0]
    module.kept = torch.zeros(2).as_subclass(Same)
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        module.load_state_dict({"kept": torch.ones(2)})


def test_buffers_stay_buffers(swaps):
    module = nn.Module()
    module.kept = nn.Buffer(torch.zeros(2), persistent=True)
    kept = module.kept
    module.load_state_dict({"kept": torch.ones(2)})
    assert module.kept is kept and type(kept) is nn.Buffer and kept.persistent and kept.tolist() == [1.0, 1.0]
