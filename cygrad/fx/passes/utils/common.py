"""Modules of parts of a graph, and the comparison of graphs."""

from typing import Any

from cygrad import nn
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module that only has the submodules of a dictionary.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils import HolderModule
    >>> [name for name, _ in HolderModule({"first": cygrad.nn.ReLU()}).named_children()]
    ['first']
    """

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module that runs a part of a graph, with the members of `gm` that the part refers to.

    The second result maps their names in `gm` to those in a module that has the part as its submodule `comp_name`.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils import lift_subgraph_as_module
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU(), cygrad.nn.Tanh()))
    >>> part = cygrad.fx.Graph()
    >>> x = part.output(part.call_module("0", (part.placeholder("x"),)))
    >>> module, names = lift_subgraph_as_module(traced, part, "head")
    >>> module(cygrad.tensor([-1.0, 2.0])), names
    (tensor([0., 2.]), {'0': 'head.0'})
    """
    names = [str(node.target) for node in subgraph.nodes if node.op in ("call_module", "get_attr")]
    return GraphModule(gm, subgraph, class_name), {name: f"{comp_name}.{name}" for name in names}


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs have the same inputs and results, and the same nodes between them.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils import compare_graphs
    >>> first, second, other = (cygrad.fx.symbolic_trace(f).graph for f in (
    ...     lambda x: cygrad.relu(x) + 1, lambda y: cygrad.relu(y) + 1, lambda x: cygrad.relu(x) + 2
    ... ))
    >>> compare_graphs(first, second), compare_graphs(first, other)
    (True, False)
    """
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))
