"""Finds occurrences of a pattern that gives names to its nodes."""

from cygrad.fx._pytree import _PyTreeInfo
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from cygrad.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Take the dictionary of names out of what a pattern returns, and return it with the pattern."""
    output = gm.graph.output_node()
    info = getattr(gm.graph._codegen, "pytree_info", None)
    returned = output.args[0] if info is None else tree_unflatten(list(output.args[0]), info.out_spec)
    if not isinstance(returned, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(returned) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *results, names = returned
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, spec = tree_flatten(results)
    output.args = (flat,)
    if info is not None:
        gm.graph._codegen.pytree_info = _PyTreeInfo(info.orig_args, info.in_spec, spec)  # type: ignore[attr-defined]
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Same as `SubgraphMatcher`, for a pattern that returns a dictionary of nodes by their names as its last result.

    Each occurrence has the nodes that stand for those in `name_node_map`. The pattern is changed.

    >>> import cygrad
    >>> from cygrad.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
    >>> def pattern(x):
    ...     exp = x.exp()
    ...     return exp + 1, {"exp": exp}
    >>> matcher = SubgraphMatcherWithNameNodeMap(cygrad.fx.symbolic_trace(pattern))
    >>> (found,) = matcher.match(cygrad.fx.symbolic_trace(lambda a: a.relu().exp() + 1).graph)
    >>> found.name_node_map, found.placeholder_nodes
    ({'exp': exp}, [relu])
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the occurrences, in the order of their last nodes."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return matches
