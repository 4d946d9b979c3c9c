"""`replace_pattern`: replace each occurrence of one function's graph by that of another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cygrad import nn
from cygrad.fx._attributes import found_or_none
from cygrad.fx._symbolic_trace import symbolic_trace
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule, _assign_attr
from cygrad.fx.node import Node, map_arg
from cygrad.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """One occurrence: its last node, and {node of the pattern: node of the graph}.

    >>> import cygrad
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> (match,) = cygrad.fx.replace_pattern(traced, lambda x: x.relu(), lambda x: x.tanh())
    >>> match.anchor, sorted(node.name for node in match.nodes_map)
    (relu, ['relu', 'x'])
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """One occurrence, and the nodes that replaced it.

    >>> import cygrad
    >>> from cygrad.fx.subgraph_rewriter import replace_pattern_with_filters
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> (found,) = replace_pattern_with_filters(traced, lambda x: x.relu(), lambda x: x.tanh())
    >>> found.replacements
    [tanh]
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each occurrence of `pattern` in the graph of `gm` by `replacement`, and return the occurrences.

    Both are functions or GraphModules with the same inputs. An occurrence computes what the pattern does, on any
    inputs; values inside it may not be used outside. Occurrences do not overlap.

    >>> import cygrad
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
    >>> found = cygrad.fx.replace_pattern(traced, lambda x: cygrad.relu(x), lambda x: cygrad.sigmoid(x))
    >>> print(traced.code.strip())
    def forward(self, x):
        sigmoid = torch.sigmoid(x);  x = None
        add = sigmoid + 1;  sigmoid = None
        return add
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=one.anchor, nodes_map=one.nodes_map) for one in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Same as `replace_pattern`, for the occurrences that every filter `f(match, graph, pattern graph)` accepts.

    With `ignore_literals`, numbers and strings among the arguments need not agree. `replacement_callback` makes the
    graph of the replacement for each occurrence.

    >>> import cygrad
    >>> from cygrad.fx.subgraph_rewriter import replace_pattern_with_filters
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + x.neg().relu())
    >>> def of_input(match, graph, pattern):
    ...     return match.placeholder_nodes[0].op == "placeholder"
    >>> found = replace_pattern_with_filters(traced, lambda x: x.relu(), lambda x: x.tanh(), [of_input])
    >>> len(found), traced(cygrad.tensor([0.0, -2.0]))
    (1, tensor([0.0000, 1.0360]))
    """
    pattern_graph = _graph_of(pattern)
    matches = SubgraphMatcher(
        pattern_graph, match_output=False, match_placeholder=False, ignore_literals=ignore_literals
    ).match(gm.graph)
    filters = match_filters or []
    matches = [match for match in matches if all(accepts(match, gm.graph, pattern_graph) for accepts in filters)]
    replaced_by: dict[Node, Node] = {}
    found = []
    for match in matches:
        made = replacement if replacement_callback is None else replacement_callback(match, gm.graph, pattern_graph)
        found.append(_replace(gm, match, _graph_of(made), pattern_graph, replaced_by))
    gm.recompile()
    for source in (pattern, replacement):
        if isinstance(source, nn.Module):
            _take_members(gm, source)
    if any(isinstance(source, nn.Module) for source in (pattern, replacement)):
        gm.delete_all_unused_submodules()
        gm.graph.lint()
    return found


def _graph_of(source: Any) -> Graph:
    if isinstance(source, Graph):
        return source
    return source.graph if isinstance(source, GraphModule) else symbolic_trace(source).graph


def _replace(
    gm: GraphModule, match: InternalMatch, new: Graph, pattern: Graph, replaced_by: dict[Node, Node]
) -> ReplacedPatterns:
    """Put a copy of the graph `new` into the place of an occurrence."""
    inputs = pattern.find_nodes(op="placeholder")
    values = {
        placeholder: _current(match.nodes_map[old], replaced_by)
        for old, placeholder in zip(inputs, new.find_nodes(op="placeholder"), strict=True)
        if old in match.nodes_map
    }
    inner = {node for old, node in match.nodes_map.items() if old.op != "placeholder"}
    first = max(match.returning_nodes)
    with gm.graph.inserting_before(first):
        known = dict(values)
        returned = gm.graph.graph_copy(new, known)
    results: list[Node] = []
    map_arg(returned, results.append)
    for old, node in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(node)
        replaced_by[old] = node
    for node in reversed(gm.graph.nodes):
        if node in inner and not node.users:
            gm.graph.erase_node(node)
    copies = [copied for node, copied in known.items() if node not in values]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, copies)


def _current(node: Any, replaced_by: dict[Node, Node]) -> Any:
    """What stands now for a node, or for a number or text that an input of the pattern has met."""
    while isinstance(node, Node) and node in replaced_by:
        node = replaced_by[node]
    return node


def _take_members(gm: GraphModule, source: Any) -> None:
    """Give the module the members of a pattern or replacement that its graph refers to and that it lacks."""
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        for module in (gm, source):
            found = found_or_none(module, str(node.target))
            if found is not None:
                if module is source:
                    _assign_attr(found, gm, str(node.target))
                break
