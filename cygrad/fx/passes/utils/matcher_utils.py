"""Finds the occurrences of one graph in another."""

from dataclasses import dataclass, field
from typing import Any

import cygrad
from cygrad.fx._attributes import found_or_none
from cygrad.fx.graph import Graph
from cygrad.fx.node import Node
from cygrad.fx.passes.tools_common import leads_back
from cygrad.ops import OpOverload

__all__ = ["InternalMatch", "SubgraphMatcher"]


def _arguments(node: Node) -> tuple[Any, ...]:
    """Return all arguments of a node in order: of an op, which has a schema, with defaults and without keywords."""
    if not isinstance(node.target, OpOverload):
        return tuple(node.args), dict(node.kwargs)
    found = []
    for i, argument in enumerate(node.target._schema.arguments):
        positional = node.args[i] if i < len(node.args) and not argument.kwarg_only else argument.default_value
        value = node.kwargs.get(argument.name, positional)
        is_one_for_all = argument.N is not None and isinstance(value, (int, float))
        found.append([value] * argument.N if is_one_for_all else value)  # type: ignore[operator]
    return tuple(found)


@dataclass
class InternalMatch:
    """One occurrence of a pattern.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> pattern = cygrad.fx.symbolic_trace(lambda x: x.relu()).graph
    >>> graph = cygrad.fx.symbolic_trace(lambda a: a.relu() + 1).graph
    >>> (match,) = SubgraphMatcher(pattern).match(graph)
    >>> [node.name for node in match.placeholder_nodes], [node.name for node in match.returning_nodes]
    (['a'], ['relu'])
    """

    anchors: list[Node]  # the last nodes of the pattern
    nodes_map: dict[Node, Node] = field(default_factory=dict)  # from the pattern to the graph
    placeholder_nodes: list[Node] = field(default_factory=list)  # the nodes of the graph that are its inputs
    returning_nodes: list[Node] = field(default_factory=list)  # those that are its results
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds the places in a graph where the same nodes as in `pattern` are applied, to any inputs.

    `match_placeholder`: inputs of the pattern match only inputs of the graph. `remove_overlapping_matches` keeps the
    first of the occurrences that share nodes. `ignore_literals`: other arguments than nodes may differ.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> pattern = cygrad.fx.symbolic_trace(lambda x, y: cygrad.relu(x + y)).graph
    >>> graph = cygrad.fx.symbolic_trace(lambda a, b: cygrad.relu(a + b) * 2).graph
    >>> len(SubgraphMatcher(pattern).match(graph))
    1
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = (
            [output]
            if match_output
            else [node for node in output.all_input_nodes if all(user.op == "output" for user in node.users)]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the occurrences, in the order of their last nodes."""
        found: list[dict[Node, Node]] = [{}]
        for anchor in self.pattern_anchors:
            found = [
                known
                for before in found
                for node in graph.nodes
                if (known := dict(before)) is not None and self._matches(anchor, node, known)
            ]
        matches = [self._finished(known) for known in found if self._is_closed(known)]
        return self._apart(matches) if self.remove_overlapping_matches else matches

    def _matches(self, pattern: Any, node: Any, known: dict[Node, Node]) -> bool:
        """Whether a node of the graph does what one of the pattern does; `known` grows by the nodes behind both."""
        if not isinstance(pattern, Node) or not isinstance(node, Node):
            return self._equal(pattern, node, known)
        if pattern in known:
            return known[pattern] is node
        if any(node is other for other in known.values()) and pattern.op != "placeholder":
            return False
        if pattern.op == "placeholder" and not self.match_placeholder:
            known[pattern] = node
            return True
        if not self._does_the_same(pattern, node):
            return False
        known[pattern] = node
        if pattern.op == "placeholder":
            return True
        return self._equal(_arguments(pattern), _arguments(node), known)

    def _does_the_same(self, pattern: Node, node: Node) -> bool:
        if pattern.op != node.op:
            return False
        if pattern.op in ("placeholder", "output"):
            return True
        if pattern.op == "get_attr":
            return self._same_attribute(pattern, node)
        if pattern.op == "call_module":
            mine, other = self._member(pattern), self._member(node)
            return mine is not None and type(mine) is type(other)
        return pattern.target == node.target

    def _same_attribute(self, pattern: Node, node: Node) -> bool:
        mine, other = self._member(pattern), self._member(node)
        if isinstance(mine, cygrad.Tensor):
            return isinstance(other, cygrad.Tensor)
        return type(mine) is type(other)

    @staticmethod
    def _member(node: Node) -> Any:
        return found_or_none(node.graph.owning_module, str(node.target))

    def _equal(self, pattern: Any, value: Any, known: dict[Node, Node]) -> bool:
        """Compare arguments, in containers as well."""
        if isinstance(pattern, Node) and pattern.op == "placeholder" and not isinstance(value, Node):
            if pattern in known:
                return type(known[pattern]) is type(value) and bool(known[pattern] == value)
            known[pattern] = value
            return True
        if isinstance(pattern, Node) or isinstance(value, Node):
            if not (isinstance(pattern, Node) and isinstance(value, Node)):
                return False
            return self._matches(pattern, value, known)
        if isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
            return len(pattern) == len(value) and all(
                self._equal(one, other, known) for one, other in zip(pattern, value, strict=True)
            )
        if isinstance(pattern, dict) and isinstance(value, dict):
            return pattern.keys() == value.keys() and all(
                self._equal(one, value[key], known) for key, one in pattern.items()
            )
        return self.ignore_literals or (type(pattern) is type(value) and pattern == value)

    def _is_closed(self, known: dict[Node, Node]) -> bool:
        """Whether the occurrence can be replaced: nothing outside uses more of it than its results, or leads back."""
        inner = {node for mine, node in known.items() if mine.op != "placeholder"}
        returned = {known[mine] for mine in self.pattern_returning_nodes}
        return all(user in inner for node in inner - returned for user in node.users) and not leads_back(inner)

    def _finished(self, known: dict[Node, Node]) -> InternalMatch:
        inputs = self.pattern.find_nodes(op="placeholder")
        return InternalMatch(
            anchors=list(self.pattern_anchors),
            nodes_map=known,
            placeholder_nodes=[known[node] for node in inputs if isinstance(known.get(node), Node)],
            returning_nodes=[known[node] for node in self.pattern_returning_nodes],
        )

    @staticmethod
    def _apart(matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept = []
        for match in matches:
            inner = {node for mine, node in match.nodes_map.items() if mine.op != "placeholder"}
            if not inner & taken:
                taken |= inner
                kept.append(match)
        return kept
