"""Detects graphs that grow from one optimizer step to the next: what holds them, and how to fix it.

The graph of earlier steps should be gone when a later one is recorded. A running total of losses, a list of them, or a
state that is carried on without `detach` keeps it alive, and training gets slower and larger until memory runs out.
"""

import gc
from bisect import bisect_left

from cygrad._core.diagnostics.graph_errors import cure_of_joint
from cygrad._core.errors.sites import at
from cygrad._core.graph.accumulate_grad import AccumulateGrad
from cygrad._core.graph.node import nodes_alive
from cygrad._core.runtime.thread_state import next_sequence_nr

STEPS = 5  # as many increases in a row are not a coincidence


class Watch:
    """Tracks which nodes are alive after each step of one optimizer."""

    def __init__(self):
        self.ends = []  # the next sequence number at the end of each of the last steps
        self.count = 0  # number of live nodes of earlier steps

    def after_step(self, parameters):
        """Return a warning text, or None. After a warning, the same number of steps must pass before another one."""
        former = self.ends[-1] if self.ends else 0
        count = len(_recorded_before(former))
        if count <= self.count:
            self.ends.clear()
        self.count = count
        self.ends.append(next_sequence_nr())
        if len(self.ends) <= STEPS:
            return None
        gc.collect()  # cycles that await collection are not growth
        nodes = _recorded_before(former)
        found = self._what_holds(nodes, former, {id(parameter) for parameter in parameters})
        self.ends.clear()
        self.count = len(nodes)
        return found

    def _what_holds(self, nodes, former, parameters):
        """Return the text about the oldest root that holds nodes of all the last steps; None if there is none."""
        steps = {bisect_left(self.ends, node._sequence_nr() + 1) for node in nodes}
        if not steps.issuperset(range(1, STEPS)):
            return None
        everything = _recorded_before(float("inf"))
        inner = {child for node in everything for child, _ in node.next_functions}
        roots = sorted((node for node in everything if node not in inner), key=_number)
        for root in roots:
            graph = _below(root)
            new = any(self.ends[0] <= node._sequence_nr() < former for node in graph)
            if new and any(id(node.variable) in parameters for node in graph if isinstance(node, AccumulateGrad)):
                return _text(root, graph, former, len(nodes), sum(node._site == root._site for node in roots))
        return None


def _number(node):
    return node._sequence_nr()


def _recorded_before(number):
    """Return the live nodes with a lower sequence number, except AccumulateGrad nodes."""
    return [node for node in nodes_alive() if not isinstance(node, AccumulateGrad) and node._sequence_nr() < number]


def _below(root):
    """Return the nodes of the graph below a root, including the root."""
    seen, waiting = {root}, [root]
    while waiting:
        below = {child for child, _ in waiting.pop().next_functions if child is not None}
        waiting += below - seen
        seen |= below
    return seen


def _longest_chain(root, graph):
    """Return the nodes on the longest path from a root to a leaf."""
    longest: dict = {}  # by node: (number of nodes on the path from it, the next node)
    for node in sorted((node for node in graph if not isinstance(node, AccumulateGrad)), key=_number):
        ways = [(longest[child][0] + 1, child) for child, _ in node.next_functions if child in longest]
        longest[node] = max(ways, key=lambda way: way[0], default=(1, None))
    chain = [root]
    while (following := longest[chain[-1]][1]) is not None:
        chain.append(following)
    return chain


def _text(root, graph, former, count, alike):
    chain = _longest_chain(root, graph)
    joints = [(new, old) for new, old in zip(chain, chain[1:]) if old._sequence_nr() < former <= new._sequence_nr()]
    text = (
        f"the graph grows: at each of the last {STEPS} optimizer steps, more nodes recorded by earlier steps were "
        f"still alive, now {count} nodes\n"
        f"  the oldest result still held was computed by {root.name()} at {at(*root._site)}\n"
        f"  the longest chain of nodes behind it has a length of {len(chain)}\n"
    )
    if not joints:
        kept = f"{alike} results of this line are kept" if alike > 1 else "it is kept"
        return (
            f"{text}  {kept}, perhaps in a list or an attribute, along with the entire history\n"
            "  to fix it: keep `x.detach()`, or `x.item()` for a number, instead of `x`"
        )
    new, old = joints[0]
    return (
        f"{text}  it continues into earlier steps through the result of {old.name()}, made at {at(*old._site)}\n"
        f"  and used after that step by {new.name()} at {at(*new._site)}\n"
        f"  to fix it: {cure_of_joint(old, new, [node for node in chain if node._sequence_nr() >= former])}"
    )
