"""Sequential, and lists and dictionaries of modules and parameters."""

import pytest

import cygrad as torch
from cygrad import nn
from helpers import fails


def kinds(modules):
    return [type(module).__name__ for module in modules]


def row(container=nn.Sequential):
    parts = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    return container(*parts) if container is nn.Sequential else container(parts)


def test_sequential_calls_in_order_and_takes_names():
    model = nn.Sequential({"twice": nn.Linear(1, 1, bias=False), "act": nn.ReLU()})
    with torch.no_grad():
        model.get_submodule("twice").weight.fill_(2.0)
    assert model(torch.tensor([[-3.0], [4.0]])).tolist() == [[0.0], [8.0]]
    assert list(dict(model.named_children())) == ["twice", "act"]


def test_sequential_arithmetic():
    model = row()
    assert kinds(model + nn.Sequential(nn.Identity())) == ["ReLU", "Tanh", "Sigmoid", "Identity"]
    assert len(model * 2) == len(2 * model) == 6 and len(model) == 3
    model *= 2
    model += nn.Sequential(nn.Identity())
    assert len(model) == 7 and kinds(model)[-2:] == ["Sigmoid", "Identity"]
    line = "add operator supports only objects of Sequential class, but <class 'int'> is given."
    with fails(ValueError, line):
        model + 3
    with fails(ValueError, "Non-positive multiplication factor 0 for <class ...Sequential'>"):
        model * 0
    with fails(TypeError, "unsupported operand type(s) for *: <class ...> and <class 'str'>"):
        model * "a"


@pytest.mark.parametrize("container", [nn.Sequential, nn.ModuleList])
def test_rows_behave_like_lists(container):
    modules = row(container)
    assert kinds([modules[0], modules[-1]]) == ["ReLU", "Sigmoid"]
    assert type(modules[1:]) is container and kinds(modules[1:]) == ["Tanh", "Sigmoid"]
    modules[1] = nn.Identity()
    modules.append(nn.Tanh())
    modules.insert(0, nn.Dropout())
    assert kinds(modules) == ["Dropout", "ReLU", "Identity", "Sigmoid", "Tanh"]
    assert kinds([modules.pop(1)]) == ["ReLU"]
    del modules[-1]
    modules.extend([nn.ReLU(), nn.ReLU()])
    del modules[1:3]
    assert kinds(modules) == ["Dropout", "ReLU", "ReLU"]
    assert list(modules._modules) == ["0", "1", "2"]
    with fails(IndexError, "index 7 is out of range"):
        modules[7]
    with pytest.raises(TypeError):
        modules["a"]
    with fails(TypeError, "int is not a Module subclass"):
        modules.append(3)


def test_insert_of_a_sequential_checks():
    with fails(IndexError, "Index out of range: 9"):
        row().insert(9, nn.ReLU())
    with fails(AssertionError, "module should be of type: <class ...Module'>"):
        row().insert(0, 3)


def test_module_list_repr_folds_equal_neighbours():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)])
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): ReLU()\n"
        "  (3): Linear(in_features=1, out_features=1, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    assert kinds(nn.ModuleList([nn.ReLU()]) + [nn.Tanh()]) == ["ReLU", "Tanh"]
    with fails(TypeError, "ModuleList.extend should be called with an iterable, but got int"):
        layers.extend(3)


def test_module_dict():
    modules = nn.ModuleDict({"a": nn.ReLU()})
    modules.update([("b", nn.Tanh())])
    modules["c"] = nn.Sigmoid()
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"]
    assert "b" in modules and len(modules) == 3
    assert kinds([modules.pop("b"), *modules.values()]) == ["Tanh", "ReLU", "Sigmoid"]
    del modules["a"]
    assert kinds(module for _, module in modules.items()) == ["Sigmoid"]
    modules.clear()
    assert len(modules) == 0
    name = "ModuleDict"
    with fails(TypeError, f"{name}.update should be called with an iterable of key/value pairs..."):
        modules.update(3)
    with fails(TypeError, f"{name} update sequence element #0 should be Iterable; isint"):
        modules.update([1])
    with fails(ValueError, f"{name} update sequence element #0 has length 3; 2 is required"):
        modules.update([(1, 2, 3)])


def test_parameter_list():
    weights = nn.ParameterList([torch.ones(2, 2), nn.Parameter(torch.tensor(1.0)), 5])
    assert [name for name, _ in weights.named_parameters()] == ["0", "1"]
    assert weights[2] == 5 and len(weights) == 3 and weights[0].requires_grad
    assert repr(weights) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2x2]\n"
        "    (1): Parameter containing: [torch.float32 of size ]\n"
        "    (2): Object of type: int\n"
        ")"
    )
    weights += [torch.zeros(1)]
    weights[-1] = torch.ones(3)
    assert len(weights) == 4 and weights[3].shape == (3,)
    assert len(weights[1:3]) == 2
    assert list(weights.state_dict()) == ["0", "1", "3"]
    with fails(IndexError, "index 9 is out of range"):
        weights[9]
    with fails(RuntimeError, "ParameterList should not be called."):
        weights(1)


def test_parameter_dict():
    weights = nn.ParameterDict({"a": torch.ones(2), "b": "text"})
    assert repr(weights) == (
        "ParameterDict(\n    (a): Parameter containing: [torch.FloatTensor of size 2]\n    (b): Object of type: str\n)"
    )
    merged = weights | {"c": torch.zeros(1)}
    assert list(merged) == ["a", "b", "c"] and list(weights) == ["a", "b"]
    assert list({"z": torch.zeros(1)} | weights) == ["z", "a", "b"]
    weights |= {"d": 1}
    assert list(reversed(weights)) == ["d", "b", "a"]
    assert weights.popitem() == ("d", 1) and weights.get("d") is None
    assert weights.setdefault("e", 2) == 2 and weights.pop("e") == 2
    assert list(weights.fromkeys(["x", "y"], 1).values()) == [1, 1]
    assert [name for name, _ in weights.copy().named_parameters()] == ["a"]
    del weights["a"]
    assert "a" not in weights and not list(weights.parameters())
    weights.clear()
    assert len(weights) == 0
    with fails(AttributeError, "'ParameterDict' object has no attribute 'zz'"):
        weights["zz"]
    with pytest.raises(TypeError, match="cannot be used as a key"):
        weights[3]
    with fails(RuntimeError, "ParameterDict should not be called."):
        weights(1)


def test_a_sequential_may_be_empty():
    assert len(nn.Sequential({})) == len(nn.Sequential(nn.ReLU())[:0]) == len(nn.Sequential()) == 0
    assert nn.Sequential({})(3) == 3
    with pytest.raises(TypeError, match="dict is not a Module subclass"):
        nn.Sequential({}, nn.ReLU())
