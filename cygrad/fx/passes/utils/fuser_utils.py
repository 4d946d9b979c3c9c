"""Replaces parts of a graph by submodules that run them."""

import operator
from collections.abc import Iterable
from typing import Any

from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.fx.passes.tools_common import NodeList, input_for, leads_back, sorted_nodes, stable_topological_sort
from cygrad.fx.passes.utils.common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def topo_sort(nodes: NodeList) -> NodeList:
    """Return nodes in an order in which each follows those that it uses; they stay as they are where that is possible.

    Raises AssertionError for a cycle.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import topo_sort
    >>> x, relu, add, out = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1).graph.nodes
    >>> topo_sort([add, x, relu])
    [x, relu, add]
    """
    found = sorted_nodes(nodes)
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def validate_partition(partition: NodeList) -> bool:
    """Whether nodes can become one node: no path leads out of them and back.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import validate_partition
    >>> x, relu, exp, add, out = cygrad.fx.symbolic_trace(lambda x: x.relu().exp() + 1).graph.nodes
    >>> validate_partition([relu, exp]), validate_partition([relu, add])
    (True, False)
    """
    return not leads_back(partition)


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: Any = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module that computes these nodes of `gm`, the nodes that it needs as inputs, and those that it returns.

    The nodes are in order; `module_name` becomes the name of the module's class. `gm` stays as it is. The module
    returns a tuple if there are several results, or with `always_return_tuple`. Raises AssertionError if the nodes are
    not in the graph of `gm`, or cannot become one.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import fuse_as_graphmodule
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu().exp() + 1)
    >>> x, relu, exp, add, out = traced.graph.nodes
    >>> module, inputs, results = fuse_as_graphmodule(traced, [relu, exp], "Part")
    >>> module(cygrad.zeros(1)), inputs, results
    (tensor([1.]), (x,), (exp,))
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    part = Graph()
    copies: dict[Node, Node] = {}
    inputs: dict[Node, Node] = {}

    def within(used: Node) -> Node:
        if used in inside:
            return copies[used]
        if used not in inputs:
            inputs[used] = input_for(part, used)
        return inputs[used]

    for node in nodes:
        copies[node] = part.node_copy(node, within)
    results = tuple(node for node in nodes if any(user not in inside for user in node.users))
    returned = tuple(copies[node] for node in results)
    part.output(returned[0] if len(returned) == 1 and not always_return_tuple else returned)
    part.lint()
    return lift_subgraph_as_module(gm, part, class_name=module_name)[0], tuple(inputs), results


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Let `gm` call a module from `fuse_as_graphmodule` in place of the nodes that it computes, and return `gm`.

    The call stands behind `insertion_point`, by default behind the last of the replaced nodes.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import erase_nodes, fuse_as_graphmodule, insert_subgm
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu().exp() + 1)
    >>> x, relu, exp, add, out = traced.graph.nodes
    >>> traced = insert_subgm(traced, *fuse_as_graphmodule(traced, [relu, exp], "part"))
    >>> erase_nodes(traced, [relu, exp])
    >>> _ = traced.recompile()
    >>> traced(cygrad.zeros(1)), [node.name for node in traced.graph.nodes]
    (tensor([2.]), ['x', 'part', 'add', 'output'])
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        replaced = set(orig_outputs)
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in replaced), None)
        if insertion_point is None:
            raise AssertionError(
                "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the "
                "last partition node as insertion_point."
            )
    with gm.graph.inserting_after(insertion_point):
        called = gm.graph.call_module(name, args=orig_inputs)
    if len(orig_outputs) == 1 and isinstance(sub_gm.graph.output_node().args[0], Node):
        orig_outputs[0].replace_all_uses_with(called, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(called.next):
        for i, node in enumerate(orig_outputs):
            item = gm.graph.call_function(operator.getitem, (called, i))
            node.replace_all_uses_with(item, propagate_meta=True)
    if orig_outputs:
        called.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erase nodes, which are in order, from the graph of a module; see `insert_subgm`.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import erase_nodes
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu().exp())
    >>> x, relu, exp, out = traced.graph.nodes
    >>> out.args = (x,)
    >>> erase_nodes(traced, [relu, exp])
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'output']
    """
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Iterable[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Replace each of these collections of nodes by a submodule, `fused_0` and so on, and return `gm`.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.fuser_utils import fuse_by_partitions
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu().exp() + 1)
    >>> x, relu, exp, add, out = traced.graph.nodes
    >>> print(fuse_by_partitions(traced, [{relu: None, exp: None}]).code.strip())
    def forward(self, x):
        fused_0 = self.fused_0(x);  x = None
        add = fused_0 + 1;  fused_0 = None
        return add
    """
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        part, inputs, results = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, part, inputs, results, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
