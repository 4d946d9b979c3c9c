"""`split_module`: cut a graph into submodules that run one after the other, as stages of a pipeline."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule, _get_attr
from cygrad.fx.node import Node, map_arg
from cygrad.fx.passes.tools_common import input_for

__all__ = ["Partition", "split_module"]


@dataclass
class Partition:
    """A part of the graph: its nodes, the values that it takes and gives, and the parts that run before it.

    >>> from cygrad.fx.passes.split_module import Partition
    >>> Partition("0", "submod_0").nodes
    []
    """

    name: str
    submod_name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    dependencies: dict[str, None] = field(default_factory=dict)


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
) -> GraphModule:
    """Return a module with a submodule for each part of a graph, which computes the same.

    `split_callback` returns the part of a node. The submodules are called `submod_0` and so on, with `partition_affix`
    before the number; they run in the order in which they need each other, and with `keep_original_order` as they come
    first in the graph. Inputs, outputs and attributes belong to no part; parts that need them take them as inputs.
    `qualname_map` receives {name of a layer in a part: its name in `root_m`}. With `keep_original_node_name` values
    that parts give to each other keep their names; without `keep_original_input_name` inputs of parts are called
    `arg_0` and so on. Raises AssertionError if parts need each other.

    >>> import cygrad
    >>> from cygrad.fx.passes.split_module import split_module
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
    >>> split = split_module(traced, traced, lambda node: int(node.name == "add"))
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    >>> split(cygrad.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    parts, part_of = _partitions(m.graph, split_callback, partition_affix)
    _note_uses(m.graph, parts, part_of)
    modules = {
        part.submod_name: _submodule(part, root_m, qualname_map, keep_original_input_name) for part in parts.values()
    }
    members: dict[str, Any] = dict(modules)
    base, env = Graph(), {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            env[node] = base.node_copy(node)
            if node.op == "get_attr":
                members[str(node.target)] = _get_attr(m, str(node.target))
    for part in _in_order(parts, bool(keep_original_order)):
        call = base.call_module(part.submod_name, tuple(env[node] for node in part.inputs))
        if len(part.outputs) == 1:
            env[next(iter(part.outputs))] = call
            continue
        for i, node in enumerate(part.outputs):
            name = node.name if keep_original_node_name else None
            env[node] = base.create_node("call_function", operator.getitem, (call, i), {}, name)
    end = m.graph.output_node()
    new = base.output(map_arg(end.args[0], env.__getitem__), type_expr=end.type)
    new.meta = dict(end.meta)
    return GraphModule(members, base)


def _partitions(graph: Graph, callback: Callable[[Node], int], affix: str | None) -> tuple[Any, dict[Node, Partition]]:
    """Return {name: part} in the order of their first nodes, and {node: part}."""
    parts: dict[str, Partition] = {}
    part_of = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = str(callback(node))
        if name not in parts:
            parts[name] = Partition(name, f"submod_{f'{affix}_' if affix else ''}{name}")
        parts[name].nodes.append(node)
        part_of[node] = parts[name]
    return parts, part_of


def _note_uses(graph: Graph, parts: dict[str, Partition], part_of: dict[Node, Partition]) -> None:
    """Find the values that cross the borders of parts."""
    for node in graph.nodes:
        taker = part_of.get(node)
        for used in node.all_input_nodes:
            giver = part_of.get(used)
            if giver is taker:
                continue
            if giver is not None:
                giver.outputs[used] = None
            if taker is not None:
                taker.inputs[used] = None
                if giver is not None:
                    taker.dependencies[giver.name] = None


def _in_order(parts: dict[str, Partition], keeps_order: bool) -> list[Partition]:
    """Return the parts so that each comes after those it needs. Raises AssertionError if they need each other.

    In the original order, or else the part that became ready last comes first, as in PyTorch.
    """
    waits_for = {part.name: set(part.dependencies) for part in parts.values()}
    ready = [name for name, others in waits_for.items() if not others]
    places = {name: i for i, name in enumerate(parts)}
    found = []
    while ready:
        done = min(ready, key=places.__getitem__) if keeps_order else ready[-1]
        ready.remove(done)
        found.append(parts[done])
        for name, others in waits_for.items():
            if done in others:
                others.remove(done)
                if not others:
                    ready.append(name)
    if len(found) < len(parts):
        raise AssertionError("cycle exists between partitions!")
    return found


def _submodule(part: Partition, root_m: Any, qualname_map: dict[str, str] | None, keeps_names: bool) -> GraphModule:
    """Return the module of a part, whose layers are called by their names in the whole, with `_` for dots."""
    graph, env, members = Graph(), {}, {}
    for i, node in enumerate(part.inputs):
        env[node] = input_for(graph, node, None if keeps_names else f"arg_{i}")

    def copied(node: Node) -> Node:
        if node not in env:
            new = env[node] = graph.node_copy(node, copied)
            if node.op == "call_module":
                new.target = str(node.target).replace(".", "_")
                members[new.target] = _get_attr(root_m, str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{new.target}"] = str(node.target)
        return env[node]

    for node in part.nodes:
        copied(node)
    results = tuple(env[node] for node in part.outputs)
    graph.output(results[0] if len(results) == 1 else results)
    return GraphModule(members, graph)
