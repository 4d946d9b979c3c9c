"""Finds the nodes of a graph of ops that come from one function or one kind of module."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cygrad.fx.graph import Graph
from cygrad.fx.node import Node
from cygrad.serialization._names import of_torch  # which knows where PyTorch has a class

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes that come from one call of `source`.

    >>> from cygrad.fx.passes.utils.source_matcher_utils import SourcePartition
    >>> SourcePartition(nodes=[], source=len).input_nodes
    []
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)  # those that they use
    output_nodes: list[Node] = field(default_factory=list)  # those of them that others use
    params: list[Node] = field(default_factory=list)  # the attributes of the module among them


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Return the nodes that come from each of these functions or classes of modules, for each call of it.

    The nodes tell by their notes: "source_fn_stack", "torch_fn", or for functions the "nn_module_stack" with its
    innermost module. With `filter_fn`, only calls are returned whose nodes it all accepts.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.source_matcher_utils import get_source_partitions
    >>> graph = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1).graph
    >>> for node in graph.find_nodes(op="call_method"):
    ...     node.meta["source_fn_stack"] = [("relu", cygrad.nn.ReLU)]
    >>> (part,) = get_source_partitions(graph, [cygrad.nn.ReLU])[cygrad.nn.ReLU]
    >>> part.nodes, part.input_nodes, part.output_nodes
    ([relu], [x], [relu])
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        source = _source(node, wanted_sources)
        if source is not None:
            kind, call = source
            found.setdefault(kind, {}).setdefault(call, []).append(node)
    accepts = filter_fn or (lambda node: True)
    return {
        kind: [_partition(nodes, kind) for nodes in calls.values() if all(map(accepts, nodes))]
        for kind, calls in found.items()
    }


def _source(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Return which of the wanted sources a node comes from, and the name of the call."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        call, kind = stack[-1]
        return (kind, call) if kind in wanted else None
    function = node.meta.get("torch_fn")
    if function is not None:
        call, qualified = function
        name = qualified.split(".")[1]
        if name in wanted:
            return name, call
    modules = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not modules:
        return None
    path, kind = list(modules.values())[-1]
    return next(((one, path) for one in wanted if _is_kind(kind, one)), None)


def _is_kind(kind: Any, wanted: Any) -> bool:
    """Whether a class, or the dotted name of one, is the wanted class."""
    if isinstance(kind, type) and isinstance(wanted, type):
        return issubclass(kind, wanted)
    if isinstance(kind, str) and isinstance(wanted, type):
        return kind in (f"{wanted.__module__}.{wanted.__qualname__}", ".".join(of_torch(wanted) or ()))
    return kind == wanted


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    inputs = (arg for node in nodes for arg in node.args if isinstance(arg, Node))
    return SourcePartition(
        nodes,
        source,
        list(dict.fromkeys(arg for arg in inputs if arg not in inside and arg.op != "get_attr")),
        [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)],
        [node for node in nodes if node.op == "get_attr"],
    )


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a node of the second part uses one of the first.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.source_matcher_utils import SourcePartition, check_subgraphs_connected
    >>> x, relu, exp, out = cygrad.fx.symbolic_trace(lambda x: x.relu().exp()).graph.nodes
    >>> first, second = SourcePartition([relu], None), SourcePartition([exp], None)
    >>> check_subgraphs_connected(first, second), check_subgraphs_connected(second, first)
    (True, False)
    """
    others = set(subgraph2.nodes)
    return any(user in others for node in subgraph1.nodes for user in node.users)
