"""`CSEPass`: compute once what a graph computes several times."""

from typing import Any

from cygrad import ops
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.fx.passes.infra.pass_base import PassBase, PassResult
from cygrad.utils._pytree import tree_flatten

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = """
    dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like
    rand randint randn randperm
""".split()
_IN_PLACE = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()


def get_CSE_banned_ops() -> set[Any]:
    """Return the ops that draw random numbers or write into a tensor, which must not be merged.

    >>> import cygrad
    >>> from cygrad.fx.passes.dialect.common.cse_pass import get_CSE_banned_ops
    >>> cygrad.ops.aten.rand in get_CSE_banned_ops(), cygrad.ops.aten.relu in get_CSE_banned_ops()
    (True, False)
    """
    return {getattr(ops.aten, name) for name in (*_RANDOM, *_IN_PLACE) if hasattr(ops.aten, name)}


class CSEPass(PassBase):
    """Removes nodes that do the same as one before them, except those that call one of `banned_ops`.

    >>> import cygrad
    >>> from cygrad.fx.experimental.proxy_tensor import make_fx
    >>> from cygrad.fx.passes.dialect.common.cse_pass import CSEPass
    >>> graph_module = make_fx(lambda x: x * x + x * x)(cygrad.ones(2))
    >>> result = CSEPass()(graph_module)
    >>> result.modified, [node.name for node in result.graph_module.graph.find_nodes(op="call_function")]
    (True, ['mul', 'add'])
    >>> CSEPass().call(result.graph_module).modified
    False
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module with the shorter graph; the given one if nothing is computed twice."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        modified = False
        for node in graph_module.graph.nodes:
            key = None if self._must_stay(node) else self._key(node, copies)
            if key is not None and key in known:
                copies[node], modified = known[key], True
                continue
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if key is not None:
                known[key] = copies[node]
        return PassResult(GraphModule(graph_module, graph) if modified else graph_module, modified)

    def _must_stay(self, node: Node) -> bool:
        if node.op in ("placeholder", "output", "get_attr"):
            return True
        return getattr(node.target, "overloadpacket", node.target) in self.banned_ops

    @staticmethod
    def _key(node: Node, copies: dict[Node, Node]) -> Any:
        """Return what the node does, so that equal keys give equal values; None if an argument has no hash."""
        leaves, structure = tree_flatten((node.args, dict(node.kwargs)))
        used = tuple((type(leaf), repr(leaf) if isinstance(leaf, float) else copies.get(leaf, leaf)) for leaf in leaves)
        try:
            hash(key := (node.op, node.target, used, str(structure)))
        except TypeError:
            return None
        return key
