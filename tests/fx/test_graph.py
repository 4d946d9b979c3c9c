"""Graphs and nodes: making, changing, copying and checking them."""

import copy
import operator

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.experimental.proxy_tensor import make_fx
from cygrad.fx.immutable_collections import immutable_dict, immutable_list
from helpers import fails


@pytest.fixture
def graph():
    made = fx.Graph()
    x = made.placeholder("x")
    y = made.call_function(torch.relu, (x,))
    z = made.call_function(operator.add, (y, x))
    made.output(z)
    return made


def names(graph):
    return [node.name for node in graph.nodes]


def test_nodes_know_their_inputs_and_users(graph):
    x, relu, add, output = graph.nodes
    assert list(x.users) == [relu, add] and list(add.users) == [output]
    assert add.all_input_nodes == [relu, x] and relu.args == (x,)
    assert x.next is relu and relu.prev is x and len(graph.nodes) == 4
    assert x < relu <= relu < output and output >= add > x
    assert list(reversed(graph.nodes)) == [output, add, relu, x]
    assert graph.output_node() is output and graph.find_nodes(op="call_function", target=torch.relu) == [relu]


def test_new_arguments_change_users(graph):
    x, relu, add, _ = graph.nodes
    add.args = (x, 2)
    assert list(relu.users) == [] and add.all_input_nodes == [x]
    add.update_arg(1, relu)
    add.insert_arg(0, 3)
    add.update_kwarg("alpha", x)
    assert add.args == (3, x, relu) and dict(add.kwargs) == {"alpha": x} and list(relu.users) == [add]
    add.replace_input_with(x, relu)
    assert add.args == (3, relu, relu) and add.kwargs["alpha"] is relu


def test_all_uses_are_replaced(graph):
    x, relu, add, output = graph.nodes
    with graph.inserting_after(relu):
        new = graph.call_method("neg", (x,))
    assert relu.replace_all_uses_with(new) == [add]
    assert add.args == (new, x) and not relu.users
    assert add.replace_all_uses_with(x, lambda user: user is not output) == []
    new.meta["note"] = 1
    with pytest.raises(AssertionError, match="replace_with already has .meta keys"):
        relu.replace_all_uses_with(new, propagate_meta=True)
    graph.erase_node(relu)
    assert names(graph) == ["x", "neg", "add", "output"]


def test_arguments_are_immutable(graph):
    node = graph.call_function(torch.cat, ([graph.output_node()],), {"a": {"b": [1]}})
    assert type(node.args[0]) is immutable_list and type(node.kwargs["a"]) is immutable_dict
    for change in (
        lambda: node.args[0].append(1),
        lambda: node.kwargs["a"].update(b=1),
        lambda: operator.setitem(node.kwargs["a"]["b"], 0, 2),
        lambda: operator.delitem(node.kwargs["a"], "b"),
        lambda: node.args[0].sort(),
    ):
        with pytest.raises(TypeError, match="object does not support mutation"):
            change()
    assert copy.deepcopy(immutable_list([1])) == [1] and hash(immutable_dict(a=1)) == hash(immutable_dict(a=1))


def test_places(graph):
    _, relu, add, _ = graph.nodes
    with graph.inserting_before(add):
        graph.call_method("a", (relu,))
        graph.call_method("b", (relu,))
    with graph.inserting_after(relu):
        graph.call_method("c", (relu,))
        graph.call_method("d", (relu,))
    assert names(graph) == ["x", "relu", "d", "c", "a", "b", "add", "output"]
    graph.inserting_before()
    assert graph.placeholder("first") is next(iter(graph.nodes))
    add.append(relu)
    with pytest.raises(RuntimeError, match="Argument 'relu' of Node 'd' was used before it has been defined"):
        graph.lint()


def test_names():
    graph = fx.Graph()
    x = graph.placeholder("x")
    made = [
        graph.create_node("call_function", operator.add, (x, x), name=name).name
        for name in ("for", "x", "x", "a.b", "0", "_1", "torch", "inf", "sum", "Foo", "x_1", "self")
    ]
    assert made == ["for_1", "x_1", "x_2", "a_b", "_0", "_1", "torch_1", "inf_1", "sum_1", "Foo", "x_3", "self"]
    assert graph.call_module("Layers.0").name == "layers_0" and graph.call_method("__len__", (x,)).name == "len_1"
    x._rename("y")
    assert x.name == "y" and graph.placeholder("y").name == "y_1"


def test_erasing(graph):
    x, relu, *_ = graph.nodes
    with pytest.raises(RuntimeError, match="Tried to erase Node relu but it still had 1 users in the graph"):
        graph.erase_node(relu)
    with pytest.raises(RuntimeError, match="Attempting to remove x from wrong graph"):
        node = fx.Graph().placeholder("x")
        graph.erase_node(node)
    unused = graph.call_method("neg", (x,))
    graph.erase_node(unused)
    assert unused not in x.users
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(unused)


def test_dead_code(graph):
    x, *_, output = graph.nodes
    with graph.inserting_before(output):
        first = graph.call_method("neg", (x,))
        graph.call_method("abs", (first,))
        graph.call_method("add_", (x, 1))
        graph.call_function(torch.exp_, (x,))
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "relu", "add", "add_", "exp_", "output"]
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: False) and names(graph) == ["x", "relu", "add", "output"]


def test_side_effects():
    @fx.has_side_effect
    def report(x):
        return x

    graph = fx.Graph()
    graph.call_function(report, (graph.placeholder("x"),))
    assert not graph.eliminate_dead_code()


def test_copies(graph):
    copied = copy.deepcopy(graph)
    assert str(copied) == str(graph) and not {*copied.nodes} & {*graph.nodes}
    into = fx.Graph()
    y = into.placeholder("y")
    known = {next(iter(graph.nodes)): y}
    result = into.graph_copy(graph, known)
    into.output(result)
    into.lint()
    assert names(into) == ["y", "relu", "add", "output"] and result.args[1] is y
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        into.node_copy(graph.output_node())
        into.lint()


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda g: g.create_node("bad", "x"), AssertionError),
        (lambda g: g.create_node("call_function", "x"), ValueError),
        (lambda g: g.create_node("call_method", len), ValueError),
        (lambda g: g.create_node("call_method", "x", [1]), AssertionError),
    ],
)
def test_wrong_nodes(graph, make, error):
    before = names(graph)
    with pytest.raises(error):
        make(graph)
    assert names(graph) == before


def test_references_are_checked():
    module = nn.Module()
    module.linear = nn.Linear(1, 1)
    graph = fx.Graph(module)
    graph.get_attr("linear.weight")
    graph.lint()
    with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
        graph.get_attr("no.pe")
    with pytest.raises(RuntimeError, match="references nonexistent attribute no"):
        graph.lint()
    with pytest.raises(AttributeError):
        graph.call_module("nope")


def test_code_can_be_changed(graph):
    with graph.on_generate_code(lambda before: lambda body: ["# first\n", *body]):
        assert "    # first\n" in graph.python_code("self").src
    assert "# first" not in graph.python_code("self").src

    class Pairs(fx.CodeGen):
        def process_outputs(self, outputs):
            return outputs, outputs

    graph.set_codegen(Pairs())
    assert graph.process_outputs(1) == (1, 1) and graph.process_inputs(1, 2) == (1, 2)


def test_inplace_operators_and_types():
    graph = fx.Graph()
    x = graph.placeholder("x", torch.Tensor)
    y = graph.placeholder("y", list[int], default_value=None)
    add = graph.call_function(operator.iadd, (x, 1))
    graph.call_function(operator.setitem, (x, 0, 5.0))
    graph.output((add, y))
    code = graph.python_code("self")
    assert "def forward(self, x : torch.Tensor, y : list[int] = None):" in code.src
    assert "x += 1;  iadd = x" in code.src
    assert fx.GraphModule({}, graph)(torch.zeros(2))[0].tolist() == [5.0, 1.0]


def test_table(graph, monkeypatch, capsys):
    import sys
    import types

    table = types.SimpleNamespace(tabulate=lambda rows, headers: f"{headers} {len(rows)}")
    monkeypatch.setitem(sys.modules, "tabulate", table)
    graph.print_tabular()
    assert capsys.readouterr().out == "['opcode', 'name', 'target', 'args', 'kwargs'] 4\n"
    monkeypatch.setitem(sys.modules, "tabulate", None)
    with pytest.raises(ImportError):
        graph.print_tabular()
    assert "relies on the library `tabulate`" in capsys.readouterr().out


def test_normal_arguments(graph):
    x, relu, *_ = graph.nodes
    assert relu.normalized_arguments(None) == ((x,), {})
    assert relu.normalized_arguments(None, normalize_to_only_use_kwargs=True).kwargs == {"input": x}
    assert x.normalized_arguments(None) is None
    module = nn.Module()
    module.linear = nn.Linear(1, 1)
    called = fx.Graph(module).call_module("linear", (relu,))
    assert dict(called.normalized_arguments(module, normalize_to_only_use_kwargs=True).kwargs) == {"input": relu}


@pytest.mark.parametrize("sort", ["make_fx", "graph"])
def test_ops_that_write_or_draw_stay(sort):
    """Ops are known by their overloads: `copy_.default` ends with no underscore."""
    aten = torch.ops.aten

    def f(x, y):
        aten.copy_.default(y, x)
        aten.add_.Tensor(y, 1)
        aten.rand.default([2])
        return aten.relu.default(x)

    if sort == "make_fx":
        module = make_fx(f)(torch.ones(2), torch.ones(2))
    else:
        module = fx.symbolic_trace(f)
    with module.graph.inserting_before(module.graph.output_node()):
        module.graph.call_function(aten.rand_like.default, (module.graph.find_nodes(op="placeholder")[0],))
        module.graph.call_function(aten.exp.default, (module.graph.find_nodes(op="placeholder")[0],))
    assert module.graph.eliminate_dead_code()
    module.recompile()
    kept = {node.target for node in module.graph.find_nodes(op="call_function")}
    assert {aten.copy_.default, aten.add_.Tensor, aten.rand_like.default} < kept and aten.exp.default not in kept
    y = torch.zeros(2)
    module(torch.ones(2), y)
    assert y.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("f", "op"),
    [
        (lambda x: torch.ops.aten.add_.Tensor(x, 1), "aten::add_.Tensor("),
        (lambda x: torch.ops.aten.add.out(x, 1, out=x), "aten::add.out("),
        (lambda x: torch.relu_(x), "aten::relu_"),
        (lambda x: torch.ops.aten.add.Tensor(x, 1), None),
        (lambda x: torch.ops.aten.__and__.Tensor(x, x), None),
    ],
)
def test_ops_that_write_can_be_refused(f, op):
    tracer = fx.Tracer()
    tracer.check_mutable_operations = True
    if op is None:
        tracer.trace(f)
        return
    with fails(RuntimeError, f"Tried to trace mutable operation {op}..."):
        tracer.trace(f)
