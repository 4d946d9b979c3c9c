"""`FxGraphDrawer`: what it tells pydot, which a stand-in records, and the error without pydot."""

import sys
from types import SimpleNamespace

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.passes.graph_drawer import FxGraphDrawer
from cygrad.fx.passes.shape_prop import ShapeProp
from helpers import fails


class Dot:
    def __init__(self, name, rankdir):
        self.name, self.nodes, self.edges = name, {}, []

    def add_node(self, node):
        self.nodes[node.name] = node

    def add_edge(self, edge):
        self.edges.append(edge)


@pytest.fixture
def pydot(monkeypatch):
    made = SimpleNamespace(
        Dot=Dot, Node=lambda name, **style: SimpleNamespace(name=name, **style), Edge=lambda *names: names
    )
    monkeypatch.setitem(sys.modules, "pydot", made)


def traced():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    ShapeProp(module).propagate(torch.ones(1, 2))
    return module


def test_boxes_and_arrows(pydot):
    dot = FxGraphDrawer(traced(), "model").get_dot_graph()
    assert list(dot.nodes) == ["input_1", "_0", "_0.weight", "_0.bias", "_1", "output"]
    assert dot.edges == [("_0.weight", "_0"), ("_0.bias", "_0"), ("input_1", "_0"), ("_0", "_1"), ("_1", "output")]
    label = dot.nodes["_0"].label
    assert (
        label.startswith("{name=%_0|op_code=call_module")
        and "torch.nn.modules.linear.Linear" in label
        and "in_features=2" in label
        and "shape=(1, 3)" in label
    )
    assert "get_parameter" in dot.nodes["_0.weight"].label and "float32[3, 2]" in dot.nodes["_0.weight"].label
    assert dot.nodes["_0"].fillcolor != dot.nodes["output"].fillcolor
    plain = FxGraphDrawer(traced(), "model", ignore_parameters_and_buffers=True, dot_graph_shape="box").get_dot_graph()
    assert list(plain.nodes) == ["input_1", "_0", "_1", "output"] and plain.nodes["_1"].shape == "box"


def test_arguments(pydot):
    def f(x):
        return torch.clamp(x, min=0.5) + {"a": x}["a"]

    module = fx.symbolic_trace(f)
    labels = {name: node.label for name, node in FxGraphDrawer(module, "f").get_dot_graph().nodes.items()}
    assert r"kwargs=\{min: 0.5,\}" in labels["clamp"] and "args" not in labels["add"]
    shown = FxGraphDrawer(module, "f", skip_node_names_in_args=False, normalize_args=True).get_dot_graph().nodes
    assert "%clamp" in shown["add"].label


def test_submodules(pydot):
    outer = fx.Graph()
    outer.output(outer.call_module("inner", (outer.placeholder("x"),)))
    drawer = FxGraphDrawer(fx.GraphModule({"inner": traced()}, outer), "outer")
    assert list(drawer.get_all_dot_graphs()) == ["outer", "outer_inner"]
    assert "_0" in drawer.get_dot_graph("inner").nodes and "_0" not in drawer.get_main_dot_graph().nodes


def test_lines(pydot):
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    module = fx.GraphModule(nn.Module(), tracer.trace(lambda x: x.relu()))
    label = FxGraphDrawer(module, "f", parse_stack_trace=True).get_dot_graph().nodes["relu"].label
    assert "file=fx/test_graph_drawer.py:" in label and "x.relu()" in label


def test_without_pydot(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydot", None)
    with fails(RuntimeError, "FXGraphDrawer requires the pydot package to be installed...."):
        FxGraphDrawer(traced(), "model")
