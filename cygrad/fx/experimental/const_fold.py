"""`split_const_subgraphs`: compute once what does not depend on the inputs of a module."""

import operator
import re
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import nn
from cygrad.fx._symbolic_trace import symbolic_trace
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module that runs `const_subgraph_module` before its first call, and keeps what that returns as an attribute.

    >>> import cygrad
    >>> from cygrad.fx.experimental.const_fold import split_const_subgraphs
    >>> class Scaled(cygrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = cygrad.nn.Parameter(cygrad.zeros(1))
    ...     def forward(self, x):
    ...         return x * self.scale.exp()
    >>> folded = split_const_subgraphs(Scaled())
    >>> folded.run_folding()
    >>> folded.has_folding_been_run, folded(cygrad.tensor([2.0])).item()
    (True, 2.0)
    """

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constants. The first call does that, too. Raises AssertionError if they have been computed."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        kept = nn.ParameterList(map(self._kept, found)) if isinstance(found, tuple) else self._kept(found)
        setattr(self, self.fx_const_folded_attrs_name, kept)

    def _kept(self, value: Any) -> nn.Parameter:
        if isinstance(value, cygrad.Tensor):
            return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        return nn.Parameter(cygrad.tensor([float(value)], device=self.device_for_folded_attrs), requires_grad=False)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """Return a name, made from the given one, that is valid in Python and that a module has no attribute of.

    >>> import cygrad
    >>> from cygrad.fx.experimental.const_fold import get_unique_attr_name_in_module
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))
    >>> get_unique_attr_name_in_module(traced, "1 x"), get_unique_attr_name_in_module(traced, "forward")
    ('_1_x', 'forward_1')
    """
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[:1].isdigit():
        name = f"_{name}"
    base, _, number = name.rpartition("_")
    if not base or not number.isdecimal():
        base, number = name, "0"
    count = int(number)
    while hasattr(mod_traced, name):
        count += 1
        name = f"{base}_{count}"
    return name


def split_const_subgraphs(
    module: nn.Module, skip_folding_node_fn: Callable[[Node], bool] | None = None, device_for_folded_attrs: str = "cpu"
) -> FoldedGraphModule:
    """Return a traced form of a module that computes once, before its first call, what does not depend on its inputs.

    The constants are detached: gradients do not reach the parameters that they were computed from. Nodes for which
    `skip_folding_node_fn` is true, and those that change something or draw random numbers, are computed in each call.

    >>> import cygrad
    >>> from cygrad.fx.experimental.const_fold import split_const_subgraphs
    >>> class Scaled(cygrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = cygrad.nn.Parameter(cygrad.zeros(1))
    ...     def forward(self, x):
    ...         return x * self.scale.exp()
    >>> folded = split_const_subgraphs(Scaled())
    >>> [node.name for node in folded.const_subgraph_module.graph.nodes], folded(cygrad.ones(1)).detach()
    (['scale', 'exp', 'output'], tensor([1.]))
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constants = _constants(traced, skip_folding_node_fn)
    results = [
        node for node in constants if node.op != "get_attr" and any(user not in constants for user in node.users)
    ]
    if not results:
        return FoldedGraphModule(traced, traced.graph)
    const_graph = Graph()
    known: dict[Node, Node] = {}
    for node in constants:
        known[node] = const_graph.node_copy(node, known.__getitem__)
    returned = tuple(known[node] for node in results)
    const_graph.output(returned[0] if len(returned) == 1 else returned)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    root = traced.__copy__()
    setattr(root, name, nn.Parameter() if len(results) == 1 else nn.ParameterList())
    graph = _without(traced.graph, constants, results, name)
    return FoldedGraphModule(root, graph, const_graph, name, device_for_folded_attrs)


def _constants(traced: GraphModule, must_stay: Callable[[Node], bool] | None) -> dict[Node, None]:
    """Return the attributes of the module, and the nodes that only depend on them, in order."""
    found: dict[Node, None] = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or not all(used in found for used in node.all_input_nodes):
            continue
        if (must_stay and must_stay(node)) or node.is_impure() or _calls_impure(traced, node):
            continue
        found[node] = None
    return found


def _calls_impure(module: Any, node: Node) -> bool:
    """Whether a node calls a GraphModule that has a function in it that changes something."""
    called = module.get_submodule(str(node.target)) if node.op == "call_module" else None
    return isinstance(called, GraphModule) and any(
        (inner.op == "call_function" and inner.is_impure()) or _calls_impure(called, inner)
        for inner in called.graph.nodes
    )


def _without(whole: Graph, constants: dict[Node, None], results: list[Node], name: str) -> Graph:
    """Return a copy of a graph that reads the results of the constant part from the attribute `name`."""
    graph = Graph(tracer_cls=whole._tracer_cls)
    copies: dict[Node, Node] = {}
    kept: Node | None = None
    for node in whole.nodes:
        if node in results:
            if kept is None:
                kept = graph.get_attr(name)
                kept.meta = dict(node.meta)
            copies[node] = kept
            if len(results) > 1:
                copies[node] = graph.call_function(operator.getitem, (kept, results.index(node)))
                copies[node].meta = dict(node.meta)
        elif node.op == "get_attr" or node not in constants:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph._codegen, graph._origin = whole._codegen, whole._origin
    graph.eliminate_dead_code()
    return graph
