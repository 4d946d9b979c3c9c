"""The graph of an exported call of every op computes what the call computes."""

import numpy as np
import pytest
from ops.calls import SAMPLES

import cygrad
from cygrad import nn
from cygrad.utils._pytree import tree_leaves

SPACES = (cygrad, nn.functional, cygrad.linalg, cygrad.fft, cygrad.special, cygrad.Tensor)
DRAWN = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "binomial", "rrelu", "gumbel")


def function_of(name):
    own = name.partition(".")[0]
    return next((getattr(space, own) for space in SPACES if callable(getattr(space, own, None))), None)


def with_tensors(value):
    if isinstance(value, np.ndarray):
        return cygrad.from_numpy(value.copy())
    if type(value) in (list, tuple):
        return type(value)(map(with_tensors, value))
    return value


def tensors(value):
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in tensors(each)]
    return [value] if isinstance(value, cygrad.Tensor) else []


NAMES = [name for name in sorted(SAMPLES) if function_of(name) and not any(word in name for word in DRAWN)]


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_computes_what_the_call_computes(name):
    function = function_of(name)

    class Calls(nn.Module):
        def forward(self, args, kwargs):
            return function(*args, **kwargs)

    for sample in SAMPLES[name][:3]:
        args = with_tensors(sample.args), {key: with_tensors(value) for key, value in sample.kwargs.items()}
        try:
            wanted = tensors(function(*args[0], **args[1]))
            program = cygrad.export.export(Calls(), args)
            module = program.graph_module
        except Exception:  # what cannot be called so, or exported, is tested elsewhere
            continue
        inputs = tree_leaves(args)
        if len(program.graph.find_nodes(op="placeholder")) != len(inputs):  # of data that the function makes
            continue
        for found, value in zip(tensors(module(*inputs)), wanted, strict=True):
            assert found.dtype is value.dtype and found.shape == value.shape
            same = cygrad.allclose if value.is_floating_point() or value.is_complex() else cygrad.equal
            assert same(found, value) or value.isnan().any()


def test_targets_are_ops_of_pytorch():
    calls = {
        "topk": (lambda x: cygrad.topk(x, 2).values, (2,), {}),
        "sort": (lambda x: x.sort(dim=0).values, (0,), {}),
        "linalg_svd": (lambda x: cygrad.linalg.svd(x).S, (), {}),
        "fft_fft": (lambda x: cygrad.fft.fft(x), (), {}),
        "std": (lambda x: x.std(dim=1), ([1],), {}),
    }
    for name, (function, args, kwargs) in calls.items():
        module = type("Calls", (nn.Module,), {"forward": lambda self, x, f=function: f(x)})()
        graph = cygrad.export.export(module, (cygrad.randn(3, 3),)).graph
        node = next(node for node in graph.nodes if node.op == "call_function")
        assert node.target.overloadpacket is getattr(cygrad.ops.aten, name), node.target
        assert (node.args[1:], node.kwargs) == (args, kwargs)


def test_operands_keep_their_order():
    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(cygrad.ones(2))

        def forward(self, x):
            return x * self.weight, x - self.weight, x / self.weight, self.weight * x

    graph = cygrad.export.export(Calls(), (cygrad.ones(2),)).graph
    shown = [(str(node.target), *map(str, node.args)) for node in graph.nodes if node.op == "call_function"]
    assert shown == [
        ("aten.mul.Tensor", "x", "p_weight"),
        ("aten.sub.Tensor", "x", "p_weight"),
        ("aten.div.Tensor", "x", "p_weight"),
        ("aten.mul.Tensor", "p_weight", "x"),
    ]
