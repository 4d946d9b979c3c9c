"""Calls in normal form compute the same; `type_matches` and `create_type_hint` compare types of arguments."""

import numbers
import operator
from typing import Any, Optional, Union

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad import fx, nn
from cygrad.fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from cygrad.fx.experimental.optimization import extract_subgraph, optimize_for_inference
from cygrad.fx.operator_schemas import create_type_hint, type_matches
from helpers import fails

X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])


@pytest.mark.parametrize("only_keywords", [True, False])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.relu(x),
        lambda x: F.softmax(x, 1),
        lambda x: torch.sum(x, 1),
        lambda x: torch.sum(x),
        lambda x: torch.prod(x),
        lambda x: torch.mean(x, 0, True),
        lambda x: torch.max(x),
        lambda x: torch.max(x, 1)[0],
        lambda x: torch.max(x, x + 1),
        lambda x: torch.min(x, 0)[1],
        lambda x: torch.median(x),
        lambda x: torch.squeeze(x),
        lambda x: torch.t(x),
        lambda x: torch.add(x, 1, alpha=2),
        lambda x: torch.cat([x, x], 1),
        lambda x: torch.diagonal(x),
        lambda x: torch.argmax(x, dim=1),
        lambda x: torch.std(x, 0),
        lambda x: torch.ops.aten.add.Tensor(x, x, alpha=2),
    ],
)
def test_functions(f, only_keywords):
    traced = fx.symbolic_trace(f)
    normalized = NormalizeArgs(traced, only_keywords).transform()
    torch.testing.assert_close(normalized(X), f(X))


def test_arguments_get_their_names_and_defaults():
    traced = fx.symbolic_trace(lambda x: F.softmax(x, 1) + torch.add(x, 1))
    normalized = NormalizeArgs(traced)
    first, *_ = (module := normalized.transform()).graph.find_nodes(op="call_function")
    assert first.args == () and list(first.kwargs)[:2] == ["input", "dim"] and first.kwargs["dtype"] is None
    assert [proxy.node.name for proxy in normalized.node_map] == [
        n.name for n in module.graph.nodes if n.op != "output"
    ]
    layers = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    called = NormalizeArgs(layers).transform().graph.find_nodes(op="call_module")
    assert [(node.args, list(node.kwargs)) for node in called] == [((), ["input"])] * 2


def test_operators():
    def f(x, y):
        return torch.add(x, y) * torch.sub(x, y, alpha=2) / torch.remainder(torch.mul(x, y), y)

    module = NormalizeOperators(fx.symbolic_trace(f)).transform()
    targets = [node.target for node in module.graph.find_nodes(op="call_function")]
    assert targets.count(operator.add) == 1 and torch.sub in targets and operator.mod in targets
    torch.testing.assert_close(module(X, X + 7), f(X, X + 7))


@pytest.mark.parametrize(
    ("signature", "argument", "expected"),
    [
        (int, int, True),
        (int, torch.dtype, True),
        (numbers.Number, float, True),
        (numbers.Number, str, False),
        (Any, str, True),
        (list[int], int, True),
        (list[int], list[int], True),
        (list[int], tuple[int, ...], True),
        (list[int], tuple[int, str], False),
        (list[int], tuple[()], True),
        (Optional[list[int]], list[int], True),  # noqa: UP045
        (Union[int, str], float, False),  # noqa: UP007
        (int | None, type(None), True),
        (torch.Tensor, nn.Parameter, True),
    ],
)
def test_types_of_arguments(signature, argument, expected):
    assert type_matches(signature, argument) is expected


def test_hints():
    assert create_type_hint([int, bool]) == list[int] and create_type_hint((bool, int)) == tuple[int, ...]
    assert create_type_hint([]) == list[Any] and create_type_hint([int, str]) == list[Any]
    with pytest.warns(UserWarning, match="create type hint"):
        assert create_type_hint([list[int]]) == [list[int]]


def test_modules_for_inference():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(), nn.ReLU()).eval()
    x = torch.rand(1, 1, 4, 4)
    found = optimize_for_inference(model)
    assert [type(one) for one in found.children()] == [nn.Conv2d, nn.ReLU]
    torch.testing.assert_close(found(x), model(x))
    kept = optimize_for_inference(model, {"conv_bn_fuse": False, "mkldnn_layout_optimize": False})
    assert [type(one) for one in kept.children()] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    with fails(RuntimeError, "mkldnn_layout_optimize config is not a dict"):
        optimize_for_inference(model, {"mkldnn_layout_optimize": True})


def test_parts_of_a_graph():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Tanh()))
    x, linear, relu, tanh, _ = traced.graph.nodes
    part = extract_subgraph(traced, [relu, tanh], [linear], [relu, tanh])
    assert [one.tolist() for one in part(torch.zeros(2) - 1)] == [[0, 0], [0, 0]]
