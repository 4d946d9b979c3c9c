"""Questions about nodes that several passes ask, and the order of nodes."""

import heapq
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import cygrad
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node, _get_qualified_name
from cygrad.serialization._names import of_torch  # which knows where PyTorch has a class

__all__ = ["get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]

NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
Tensors = tuple[cygrad.Tensor] | list[cygrad.Tensor]
TensorOrTensors = cygrad.Tensor | Tensors
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """Return the dotted name of a class or function, or a text as it is; `acc_ops` is short for any module of the name.

    >>> import cygrad
    >>> from cygrad.fx.passes.tools_common import get_acc_ops_name
    >>> get_acc_ops_name(cygrad.nn.Linear), get_acc_ops_name("relu")
    ('torch.nn.modules.linear.Linear', 'relu')
    """
    if isinstance(k, str):
        return k
    module, _ = of_torch(k) or (k.__module__ or "", "")
    return f"acc_ops.{k.__name__}" if "acc_ops" in module else f"{module}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """Return the name of what a node calls: of the function, of the method, or of the class of the submodule.

    >>> import cygrad
    >>> from cygrad.fx.passes.tools_common import get_node_target
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))
    >>> get_node_target(dict(traced.named_modules()), traced.graph.find_nodes(op="call_module")[0])
    'torch.nn.modules.activation.ReLU'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        module = submodules[target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_method":
        return target
    return get_acc_ops_name(target) if "acc_ops" in (target.__module__ or "") else _get_qualified_name(target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether the value of a node is a tensor, which `ShapeProp` must have noted.

    >>> import cygrad
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> from cygrad.fx.passes.tools_common import is_node_output_tensor
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x * x.size(0))
    >>> result = ShapeProp(traced).propagate(cygrad.ones(2))
    >>> [(node.name, is_node_output_tensor(node)) for node in traced.graph.nodes][:3]
    [('x', True), ('size', False), ('mul', True)]
    """
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, cygrad.Tensor)


def sorted_nodes(nodes: Iterable[Node], by_level: bool = False) -> list[Node]:
    """Return nodes so that each follows those that it uses.

    Of several that may be next, the one that came first in `nodes` is taken or, with `by_level`, the one that could be
    taken first. Of nodes in a cycle, and those behind it, none is returned.
    """
    places = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
    waits_for = {node: sum(used in places for used in node.all_input_nodes) for node in places}
    turns = itertools.count()
    ready: list[tuple[int, Node]] = []  # a heap, in which numbers differ

    def add(node: Node) -> None:
        heapq.heappush(ready, (next(turns) if by_level else places[node], node))

    for node, count in waits_for.items():
        if not count:
            add(node)
    found: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        found.append(node)
        for user in node.users:
            if user in waits_for:
                waits_for[user] -= 1
                if not waits_for[user]:
                    add(user)
    return found


def leads_back(nodes: Iterable[Node]) -> bool:
    """Whether a path leads out of these nodes and back, so that they cannot become one node."""
    inside = set(nodes)
    outside = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while outside:
        node = outside.pop()
        if node in inside:
            return True
        if node not in seen:
            seen.add(node)
            outside.extend(node.users)
    return False


def input_for(graph: Graph, node: Node, name: str | None = None) -> Node:
    """Return a new input of a graph, which stands for a node of another graph."""
    placeholder = graph.placeholder(node.name if name is None else name, type_expr=node.type)
    placeholder.meta = dict(node.meta)
    return placeholder


def _in_order(gm: GraphModule, order: list[Node], error: type[Exception]) -> GraphModule:
    """Give a module a graph with its nodes in another order, which lacks those of cycles."""
    missing = [node for node in gm.graph.nodes if node not in set(order)]
    if missing:
        raise error(f"Input graph has cycles, unable to add {missing}")
    graph = Graph(tracer_cls=gm.graph._tracer_cls)
    copies: dict[Node, Node] = {}
    for node in order:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen, graph._origin = gm.graph._codegen, gm.graph._origin
    gm.graph = graph
    return gm


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module's graph into an order in which each follows those that it uses, and return the module.

    Nodes that need not move keep their order. Raises AssertionError for a cycle.

    >>> import cygrad
    >>> from cygrad.fx.passes.tools_common import stable_topological_sort
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> x, relu, add, _ = traced.graph.nodes
    >>> add.append(relu)
    >>> [node.name for node in stable_topological_sort(traced).graph.nodes]
    ['x', 'relu', 'add', 'output']
    """
    return _in_order(gm, sorted_nodes(gm.graph.nodes), AssertionError)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Same as `stable_topological_sort`, but level by level: first the nodes that use no others, then their users.

    Raises RuntimeError for a cycle.

    >>> import cygrad
    >>> from cygrad.fx.passes.tools_common import legalize_graph
    >>> traced = cygrad.fx.symbolic_trace(lambda x, y: x.relu() + y)
    >>> relu = traced.graph.find_nodes(op="call_method")[0]
    >>> traced.graph.output_node().prepend(relu)
    >>> [node.name for node in legalize_graph(traced).graph.nodes]
    ['x', 'y', 'relu', 'add', 'output']
    """
    return _in_order(gm, sorted_nodes(gm.graph.nodes, by_level=True), RuntimeError)
