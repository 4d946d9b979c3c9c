"""Passes: parts of graphs become submodules, and what they compute stays the same."""

import copy
import subprocess
import sys
from typing import NamedTuple

import pytest

import cygrad as torch
from cygrad import fx, nn
from cygrad.fx.experimental.proxy_tensor import make_fx
from cygrad.fx.passes import graph_manipulation, tools_common
from cygrad.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from cygrad.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from cygrad.fx.passes.fake_tensor_prop import FakeTensorProp
from cygrad.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from cygrad.fx.passes.operator_support import OperatorSupport, OpSupports, chain, create_op_support
from cygrad.fx.passes.shape_prop import ShapeProp
from cygrad.fx.passes.split_utils import getattr_recursive, setattr_recursive, split_by_tags
from cygrad.fx.passes.utils import compare_graphs, fuser_utils
from cygrad.fx.passes.utils.matcher_utils import SubgraphMatcher
from cygrad.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from cygrad.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions
from helpers import fails


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, a, b, c):
        add = a + b
        first = self.linear(add)
        more = (add + c) * self.scale
        both = more - first
        return both, self.last(both).relu(), torch.std_mean(more)[1]


def traced_net():
    net = Net()
    inputs = tuple(torch.rand(4) for _ in range(3))
    return fx.symbolic_trace(net), inputs, net(*inputs)


def nodes_named(module, *names):
    found = {node.name: node for node in module.graph.nodes}
    return [found[name] for name in names]


def same(results, expected):
    assert all(torch.equal(one, other) for one, other in zip(results, expected, strict=True))


# -- parts as submodules --


@pytest.mark.parametrize(
    "parts",
    [
        [["add", "linear"]],
        [["linear", "add"], ["sub", "last", "relu"]],
        [["scale", "mul", "add_1"]],
        [["std_mean", "getitem"], ["mul", "sub"]],
        [["add", "linear", "add_1", "scale", "mul", "sub", "last", "relu", "std_mean", "getitem"]],
    ],
)
@pytest.mark.parametrize("as_tuple", [False, True])
def test_fused_parts_compute_the_same(parts, as_tuple):
    traced, inputs, expected = traced_net()
    groups = [nodes_named(traced, *part) for part in parts]
    fused = fuser_utils.fuse_by_partitions(traced, groups, "part_", always_return_tuple=as_tuple)
    assert [node.target for node in fused.graph.nodes if str(node.target).startswith("part_")]
    same(fused(*inputs), expected)
    fused.recompile()
    same(fused(*inputs), expected)


def test_parts_that_cannot_be_one_node():
    traced, *_ = traced_net()
    part = nodes_named(traced, "add", "sub")
    assert not fuser_utils.validate_partition(part)
    with fails(AssertionError, "Invalid partition, found dependency cycles"):
        fuser_utils.fuse_as_graphmodule(traced, part, "part")
    with fails(AssertionError, "add doesn't belong to passed in graph module Net"):
        fuser_utils.fuse_as_graphmodule(fx.symbolic_trace(Net()), part, "part")
    with fails(AssertionError, "Cannot determine insertion point..."):
        fuser_utils.insert_subgm(traced, fx.symbolic_trace(nn.ReLU()), (), ())


def test_notes_move_to_the_call_of_the_part():
    traced, *_ = traced_net()
    (add, linear) = nodes_named(traced, "add", "linear")
    linear.meta["note"] = 3
    fused = fuser_utils.fuse_by_partitions(traced, [[add, linear]])
    assert any(node.meta.get("note") == 3 for node in fused.graph.nodes if node.name != "linear")


@pytest.mark.parametrize("sort", [tools_common.legalize_graph, tools_common.stable_topological_sort])
def test_order_of_nodes(sort):
    traced, inputs, expected = traced_net()
    add, last = nodes_named(traced, "add", "output")
    last.prepend(add)
    same(sort(traced)(*inputs), expected)
    traced.graph.lint()


def test_cycles_cannot_be_ordered():
    traced = fx.symbolic_trace(lambda x: x.relu().exp())
    relu, exp = nodes_named(traced, "relu", "exp")
    relu.args = (exp,)
    with fails(RuntimeError, "Input graph has cycles, unable to add [relu, exp, output]"):
        tools_common.legalize_graph(traced)
    with fails(AssertionError, "Input graph has cycles..."):
        tools_common.stable_topological_sort(traced)
    assert len(traced.graph.nodes) == 4


# -- what a backend supports --


def proposed(module, rule, **options):
    partitioner = CapabilityBasedPartitioner(module, create_op_support(rule), **options)
    return [sorted(node.name for node in part.nodes) for part in partitioner.propose_partitions()], partitioner


def is_addition(modules, node):
    return node.name.startswith("add")


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: (x + 1 + 2).relu() + 3 + 4, [["add_2", "add_3"], ["add", "add_1"]]),
        (lambda x: x + (x + 1).relu(), [["add"], ["add_1"]]),
        (lambda x: (x + 1) * (x + 2), [["add", "add_1"]]),  # side by side
        (lambda x: ((x + 1) + (x + 2).relu()) * 2, [["add", "add_2"], ["add_1"]]),
    ],
)
def test_parts_are_as_large_as_they_can_be(f, expected):
    traced = fx.symbolic_trace(f)
    result = f(torch.ones(2))
    found, partitioner = proposed(traced, is_addition, allows_single_node_partition=True)
    assert sorted(found) == sorted(expected)
    fused = partitioner.partition_and_fuse()
    assert torch.equal(fused(torch.ones(2)), result)


def test_parts_do_not_depend_on_each_other_in_turn():
    """No part may need a part that needs it, over any number of parts and of other nodes."""

    def f(x):
        a = x + 1
        b = a.relu() + 2
        c = x + 3
        return a + c.relu(), b + c, (a * b).exp() + c

    traced = fx.symbolic_trace(f)
    _, partitioner = proposed(traced, is_addition)
    fused = partitioner.partition_and_fuse()
    same(fused(torch.ones(2)), f(torch.ones(2)))
    fused.graph.lint()


def test_items_stay_with_their_tuple():
    def f(x):
        first, second = torch.std_mean(x + 1)
        return first * 2 + second

    traced = fx.symbolic_trace(f)
    found, partitioner = proposed(traced, lambda modules, node: node.name in ("add", "std_mean"))
    assert found == [["add", "getitem", "getitem_1", "std_mean"]]
    x = torch.arange(4.0)
    assert torch.equal(partitioner.partition_and_fuse()(x), f(x))


def test_small_parts_and_views():
    traced = fx.symbolic_trace(lambda x: torch.exp(x).relu() + torch.exp(x * 2))
    assert proposed(traced, lambda modules, node: node.name == "exp")[0] == []
    once = {"allowed_single_node_partition_ops": ["torch.exp"]}
    assert proposed(traced, lambda modules, node: node.name == "exp", **once)[0] == [["exp"]]
    views = fx.symbolic_trace(lambda x: torch.reshape(torch.exp(torch.reshape(x, (-1,))) + 1, (2, 2)))
    _, partitioner = proposed(
        views, lambda modules, node: node.op == "call_function", non_compute_ops=["torch.reshape"]
    )
    parts = partitioner.propose_partitions()
    partitioner.remove_bookend_non_compute_ops(parts)
    assert [[node.name for node in part.nodes] for part in parts] == [["exp", "add"]]


def test_inputs_and_outputs_are_in_no_part():
    """`OperatorSupport` accepts them."""
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    partitioner = CapabilityBasedPartitioner(traced, OperatorSupport({"torch.relu": None}))
    assert [sorted(node.name for node in part.nodes) for part in partitioner.propose_partitions()] == [
        ["relu", "relu_1"]
    ]
    assert partitioner.partition_and_fuse()(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]


def test_parts_side_by_side_can_stay_apart():
    traced = fx.symbolic_trace(lambda x: ((x + 1 + 2).relu(), (x + 3 + 4).relu()))
    assert len(proposed(traced, is_addition)[0]) == 1
    assert len(proposed(traced, is_addition, skip_horizontal_fusion=True)[0]) == 2


def test_partitions():
    x, relu, _ = fx.symbolic_trace(lambda x: x.relu()).graph.nodes
    part = Partition(3, [x, relu], [1, 0])
    assert part.nodes == {x: 1, relu: 0} and part.size() == 2
    with fails(AssertionError, "nodes and node_orders must have the same length"):
        Partition(3, [x, relu], [1])


def test_rules():
    traced = fx.symbolic_trace(lambda x, n: torch.relu(x) + torch.add(input=n, other=1))
    ShapeProp(traced).propagate(torch.ones(2), torch.ones(2, dtype=torch.int64))
    of_floats = OperatorSupport({"torch.relu": (([torch.float32],), {}), "torch.add": ((), {"input": [torch.float64]})})
    supported = [node.name for node in traced.graph.nodes if of_floats.is_node_supported({}, node)]
    assert supported == ["x", "n", "relu", "output"]
    rule = chain(OperatorSupport({"torch.add": None}), OpSupports.decline_if_input_dtype(torch.int64))
    assert not rule.is_node_supported({}, nodes_named(traced, "add")[0])


def test_layers_go_by_pytorchs_names():
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.BatchNorm2d(2)))
    modules = dict(traced.named_modules())
    names = [tools_common.get_node_target(modules, node) for node in traced.graph.find_nodes(op="call_module")]
    assert names == ["torch.nn.modules.activation.ReLU", "torch.nn.modules.batchnorm.BatchNorm2d"]
    with fails(AssertionError, "Expect op types of..."):
        tools_common.get_node_target(modules, traced.graph.output_node())


# -- matches --


def test_an_occurrence_that_needs_its_own_result_is_none():
    def pattern(a, b):
        exp = a.exp()
        return exp, exp * b

    traced = fx.symbolic_trace(lambda x: x.exp() * x.exp().sigmoid())
    assert len(SubgraphMatcher(fx.symbolic_trace(pattern).graph).match(traced.graph)) == 1
    inside = fx.symbolic_trace(lambda x: (lambda exp: exp * exp.sigmoid())(x.exp()))
    assert SubgraphMatcher(fx.symbolic_trace(pattern).graph).match(inside.graph) == []


def test_compared_graphs():
    first, second = (fx.symbolic_trace(lambda x, y: (x + y, x)).graph for _ in range(2))
    assert compare_graphs(first, second)
    assert not compare_graphs(first, fx.symbolic_trace(lambda x, y: (x + y, y)).graph)


@pytest.mark.parametrize("returned", [lambda x: x.exp(), lambda x: (x.exp(),), lambda x: (x, x.exp())])
def test_patterns_must_return_their_names(returned):
    with pytest.raises(AssertionError, match="^Expecting the (pattern|input) graph to"):
        SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(returned))


def test_sources():
    graph = make_fx(lambda x: (x.exp() + 1).relu())(torch.ones(2)).graph
    exp, add, relu = graph.find_nodes(op="call_function")
    exp.meta["source_fn_stack"] = add.meta["source_fn_stack"] = [("outer", nn.Module), ("f", nn.Softplus)]
    relu.meta["nn_module_stack"] = {"last": ("last", "torch.nn.modules.activation.ReLU")}
    relu.meta["torch_fn"] = ("relu_1", "function.relu")
    found = get_source_partitions(graph, [nn.Softplus, "relu"])
    (first,), (second,) = found[nn.Softplus], found["relu"]
    assert first.nodes == [exp, add] and first.output_nodes == [add] and second.input_nodes == [add]
    assert check_subgraphs_connected(first, second) and not check_subgraphs_connected(second, first)
    assert get_source_partitions(graph, [nn.Softplus], lambda node: node is not add) == {nn.Softplus: []}
    del relu.meta["torch_fn"]
    assert get_source_partitions(graph, [nn.ReLU])[nn.ReLU][0].nodes == [relu]


# -- other passes --


def test_common_subexpressions():
    def f(x, y):
        return x.exp() + x.exp() + torch.cat([x, y]).sum() - torch.cat([x, y]).sum() * 1 + (x.sum(0) - x.sum(0, True))

    module = make_fx(f)(torch.ones(2), torch.zeros(2))
    result = CSEPass()(module)
    names = [node.target._opname for node in result.graph_module.graph.find_nodes(op="call_function")]
    assert result.modified and [names.count(name) for name in ("exp", "cat", "sum")] == [1, 1, 3]
    x, y = torch.rand(2), torch.rand(2)
    assert torch.equal(result.graph_module(x, y), module(x, y))
    again = CSEPass()(result.graph_module)
    assert not again.modified and again.graph_module is result.graph_module


def test_zeros_of_both_signs_and_random_numbers_are_no_common_subexpressions():
    module = make_fx(lambda x: 1 / (x * 0.0) - 1 / (x * -0.0))(torch.ones(1))
    assert CSEPass()(module).graph_module(torch.ones(1)).item() == float("inf")
    module = make_fx(lambda x: torch.rand_like(x) - torch.rand_like(x))(torch.ones(3))
    assert not CSEPass(get_CSE_banned_ops())(module).modified


@pytest.mark.parametrize("as_tuple", [False, True])
def test_split_by_tags(as_tuple):
    traced, inputs, expected = traced_net()
    for node in traced.graph.nodes:
        node.tag = "tail" if node.name in ("last", "relu") else "middle" if node.name in ("mul", "sub") else "head"
    for node in nodes_named(traced, "std_mean", "getitem"):
        node.tag = "tail"
    split, names = split_by_tags(traced, ["head", "middle", "tail"], return_fqn_mapping=True, return_tuple=as_tuple)
    same(split(*inputs), expected)
    assert [name for name, _ in split.named_children()] == ["head", "middle", "tail"]
    assert names == {"linear": "head.linear", "scale": "middle.scale", "last": "tail.last"}
    with fails(AssertionError, "Component tail order must be >= max of its upstream components..."):
        split_by_tags(traced, ["middle", "head", "tail"][::-1])


def test_members_of_a_split_graph_that_it_returns_itself():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.scale, self.scale

    traced = fx.symbolic_trace(Scaled())
    for node in traced.graph.nodes:
        node.tag = "all"
    same(split_by_tags(traced, ["all"])(torch.ones(2)), (torch.ones(2), torch.ones(2)))
    del traced.graph.find_nodes(op="call_function")[0].tag
    with fails(AssertionError, "Node does not have tag: %mul..."):
        split_by_tags(traced, ["all"])


def test_dotted_attributes():
    model = nn.Sequential(nn.ModuleList([nn.Linear(2, 3)]))
    setattr_recursive(model, "0.0.bias", None)
    assert getattr_recursive(model, "0.0.weight") is model[0][0].weight
    assert getattr_recursive(model, "0.0.bias") is getattr_recursive(model, "0.9.weight") is None


class Point(NamedTuple):
    x: int
    y: str


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tuple[int, str], str),
        (tuple[float, ...], float),
        (list[str], str),
        (Point, str),
        (torch.Tensor, None),
        (None, None),
    ],
)
def test_types_of_items(kind, expected):
    graph = fx.symbolic_trace(lambda x: x[1]).graph
    graph.find_nodes(op="placeholder")[0].type = kind
    annotate_getitem_nodes(graph)
    assert graph.find_nodes(op="call_function")[0].type is expected


def test_sizes():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2)))
    with fails(RuntimeError, "Node input_1 has no tensor metadata associated with it!..."):
        graph_manipulation.get_size_of_all_nodes(traced)
    graph_manipulation.get_size_of_all_nodes(traced, [torch.ones(5, 3, dtype=torch.float32)])
    assert [node.size_bytes for node in traced.graph.nodes if node.op != "output"] == [(60, 60), (40, 72)]


@pytest.mark.interpreter
def test_modules_are_attributes_that_are_imported_when_they_are_used():
    code = """
import sys
import cygrad
assert not any(name.startswith("cygrad.fx.experimental") for name in sys.modules)
for path in (
    "experimental.proxy_tensor.make_fx", "experimental.const_fold.split_const_subgraphs", "tensor_type.TensorType",
    "passes.graph_drawer.FxGraphDrawer", "passes.infra.pass_manager.PassManager", "passes.shape_prop.ShapeProp",
    "passes.split_module.split_module", "passes.utils.matcher_utils.SubgraphMatcher",
):
    found = cygrad.fx
    for name in path.split("."):
        found = getattr(found, name)
    assert callable(found)
assert not hasattr(cygrad.fx, "no_such_name") and not hasattr(cygrad.fx.passes, "no_such_name")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_without_memory():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    before = copy.deepcopy(model.state_dict())
    traced = fx.symbolic_trace(model)
    result = FakeTensorProp(traced).propagate(torch.rand(5, 1, 4, 4, dtype=torch.float32))
    assert result.is_meta and result.shape == (5, 3) and result.requires_grad
    shapes = [tuple(node.meta["val"].shape) for node in traced.graph.nodes]
    assert shapes == [(5, 1, 4, 4), (5, 2, 2, 2), (5, 2, 2, 2), (5, 8), (5, 3), (5, 3)]
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    made = fx.Graph()
    made.output(made.call_function(torch.add, (made.placeholder("x"), made.call_function(torch.zeros, (3,)))))
    assert FakeTensorProp(fx.GraphModule({}, made)).propagate(torch.ones(2, 3)).shape == (2, 3)
    net, inputs, expected = traced_net()
    found = FakeTensorProp(net).propagate(*inputs)
    assert [one.shape for one in found] == [one.shape for one in expected]
