"""Divides a graph into parts that a backend can run, as large as they can be."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node, _get_qualified_name
from cygrad.fx.passes.operator_support import OperatorSupportBase
from cygrad.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

_NO_WORK = {"torch.ops.aten.view", "_operator.getitem"}


class Partition:
    """A part: its `id`, and its `nodes` as the keys of a dictionary.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.partitioner import Partition
    >>> x, relu, out = cygrad.fx.symbolic_trace(lambda x: x.relu()).graph.nodes
    >>> part = Partition(0, [relu])
    >>> part.add_node(x)
    >>> part.remove_node(relu)
    >>> part.size(), part
    (1, {x: None})
    """

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())
        if nodes is not None and node_orders is not None:
            orders = list(node_orders)
            if len(orders) != len(self.nodes):
                raise AssertionError("nodes and node_orders must have the same length")
            self.nodes = dict(zip(self.nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)


class _Parts:
    """Parts that grow. Sets of nodes are the bits of a number: node `i` of the graph is bit `i`."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.places = {node: i for i, node in enumerate(nodes)}
        self.later = [0] * len(nodes)  # all nodes that depend on node i
        for i in reversed(range(len(nodes))):
            for user in nodes[i].users:
                self.later[i] |= 1 << self.places[user] | self.later[self.places[user]]
        self.inside: dict[int, int] = {}  # by the number of the part
        self.behind: dict[int, int] = {}  # all that depends on a part
        self.ages: dict[int, int] = {}  # which part came first; the oldest in each
        self.count = 0

    def new(self, node: Node) -> int:
        """Make a part of one node."""
        number, self.count = self.count, self.count + 1
        self.inside[number] = 1 << self.places[node]
        self.behind[number] = self.later[self.places[node]]
        self.ages[number] = number
        return number

    def merged(self, one: int, other: int) -> int:
        """Make one part of two unless that closes a cycle, and return the part that the first belongs to now."""
        inside = self.inside[one] | self.inside[other]
        behind = self.behind[one] | self.behind[other]
        outside = self.leaving(inside)
        while not outside & inside:
            more = outside
            for number, nodes in self.inside.items():
                if number not in (one, other) and nodes & more:
                    more |= self.behind[number]
            if more == outside:
                break
            outside = more
        if outside & inside:
            return one
        kept, gone = (other, one) if self.inside[one].bit_count() < self.inside[other].bit_count() else (one, other)
        self.inside[kept], self.behind[kept] = inside, behind
        self.ages[kept] = min(self.ages[kept], self.ages.pop(gone))
        del self.inside[gone], self.behind[gone]
        return kept

    def leaving(self, inside: int) -> int:
        """Return the users of some nodes that are not among these, and all that depends on those users."""
        found = 0
        for node in self.members(inside):
            for user in node.users:
                place = self.places[user]
                if not inside >> place & 1:
                    found |= 1 << place | self.later[place]
        return found

    def members(self, inside: int) -> list[Node]:
        """Return the nodes of a set, in order."""
        found = []
        while inside:
            lowest = inside & -inside
            found.append(self.nodes[lowest.bit_length() - 1])
            inside ^= lowest
        return found


class CapabilityBasedPartitioner:
    """Divides the graph of a module into parts that only have nodes which a rule supports (`operator_support`).

    Parts with fewer than two nodes that compute something are left out unless `allows_single_node_partition`, or
    `allowed_single_node_partition_ops` has the name of the function. `non_compute_ops` are names of functions that do
    not count, besides views and `getitem`. `skip_horizontal_fusion` leaves parts alone that do not use each other.

    >>> import cygrad
    >>> from cygrad.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    >>> from cygrad.fx.passes.operator_support import create_op_support
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(cygrad.exp(x)).view(-1) * 2)
    >>> rule = create_op_support(lambda submodules, node: node.op == "call_function" and node.name != "mul")
    >>> partitioner = CapabilityBasedPartitioner(traced, rule)
    >>> parts = partitioner.propose_partitions()
    >>> partitioner.remove_bookend_non_compute_ops(parts)
    >>> [list(part.nodes) for part in parts]
    [[exp, relu]]
    >>> print(partitioner.fuse_partitions(parts).code.strip().splitlines()[1].strip())
    fused_0 = self.fused_0(x);  x = None
    >>> _ = partitioner.partition_and_fuse("part_")
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return the parts. The graph stays as it is."""
        nodes = list(self.graph_module.graph.nodes)
        modules = dict(self.graph_module.named_modules())
        parts = _Parts(nodes)
        for node in reversed(nodes):
            is_end = node.op in ("placeholder", "output")  # which cannot be in a submodule
            if not is_end and self.operator_support.is_node_supported(modules, node):
                self._add(parts, node)
        chosen = {number: dict.fromkeys(parts.members(inside)) for number, inside in parts.inside.items()}
        self._join_items(nodes, chosen)
        return [
            Partition(number, members, [len(nodes) - 1 - parts.places[node] for node in members])
            for number, members in chosen.items()
            if members and (self.allows_single_node_partition or self._is_worthwhile(members))
        ]

    def _add(self, parts: _Parts, node: Node) -> None:
        """Make a part of a node, and merge it with those that it can be one with."""
        number = parts.new(node)
        users = {
            number for number, inside in parts.inside.items() if any(inside >> parts.places[u] & 1 for u in node.users)
        }
        for other in sorted(users if self.skip_horizontal_fusion else parts.inside, key=parts.ages.__getitem__):
            if other != number and other in parts.inside:
                number = parts.merged(number, other)

    @staticmethod
    def _join_items(nodes: list[Node], chosen: dict[int, dict[Node, None]]) -> None:
        """Have items of a tuple where the tuple is: nodes that are only used by `getitem` take those along."""
        part_of = {node: number for number, members in chosen.items() for node in members}
        for node in nodes:
            if not all(user.op == "call_function" and user.target is operator.getitem for user in node.users):
                continue
            number = part_of.get(node)
            for user in node.users:
                if part_of.get(user) == number:
                    continue
                if user in part_of:
                    del chosen[part_of.pop(user)][user]
                if number is not None:
                    chosen[number][user] = None
                    part_of[user] = number

    def _is_worthwhile(self, members: Iterable[Node]) -> bool:
        work = 0
        for node in members:
            if node.op == "call_function":
                name = _get_qualified_name(node.target)  # type: ignore[arg-type]
                work += name not in _NO_WORK and name not in self.non_compute_ops
                work += name in self.allowed_single_node_partition_ops
        return work > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace parts by submodules, and return the module."""
        return fuse_by_partitions(self.graph_module, [one.nodes for one in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take the nodes at the beginnings and ends of parts out of them that do not compute anything."""
        places = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        for partition in partitions:
            inside = set(partition.nodes)
            for forwards in (True, False):
                for node in sorted(inside, key=places.__getitem__, reverse=not forwards):
                    around: Any = node.all_input_nodes if forwards else node.users
                    if self._is_no_work(node) and not any(one in inside for one in around):
                        inside.discard(node)
            for node in set(partition.nodes) - inside:
                partition.remove_node(node)

    def _is_no_work(self, node: Node) -> bool:
        return node.op == "call_function" and _get_qualified_name(node.target) in self.non_compute_ops  # type: ignore[arg-type]

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Replace all parts by submodules, and return the module."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
