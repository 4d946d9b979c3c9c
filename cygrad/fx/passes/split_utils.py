"""`split_by_tags`: cut a graph into submodules by the tags of its nodes."""

import operator
from dataclasses import dataclass, field
from typing import Any

from cygrad import nn
from cygrad.fx._attributes import follow
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule, _get_attr, _get_attr_via_attr_list
from cygrad.fx.node import Node, map_arg
from cygrad.fx.passes.tools_common import input_for
from cygrad.fx.passes.utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute with a dotted name, or None if there is none.

    >>> import cygrad
    >>> from cygrad.fx.passes.split_utils import getattr_recursive
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 3))
    >>> getattr_recursive(model, "0.weight").shape, getattr_recursive(model, "1.weight")
    (torch.Size([3, 2]), None)
    """
    found, missing = follow(obj, name, _has_member)
    return None if missing else found


def _has_member(obj: Any, name: str) -> bool:
    """Whether there is an attribute; in a ModuleList, only modules count."""
    return name in obj._modules if isinstance(obj, nn.ModuleList) else hasattr(obj, name)


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute with a dotted name.

    >>> import cygrad
    >>> from cygrad.fx.passes.split_utils import setattr_recursive
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 3))
    >>> setattr_recursive(model, "0.bias", None)
    >>> model[0].bias
    """
    *path, last = attr.split(".")
    setattr(_get_attr_via_attr_list(obj, path), last, value)


@dataclass
class Component:
    """A part that `split_by_tags` makes.

    >>> import cygrad
    >>> from cygrad.fx.passes.split_utils import Component
    >>> whole = cygrad.fx.Graph()
    >>> x, scale = whole.placeholder("x"), whole.get_attr("scale")
    >>> part = Component(cygrad.fx.Graph(), 0, "first")
    >>> part.input(x), part.attribute(scale), part.orig_inputs
    (x, scale, [x])
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)  # the inputs of the part
    orig_inputs: list[Node] = field(default_factory=list)  # the nodes of the whole that they stand for
    orig_outputs: list[Node] = field(default_factory=list)  # the nodes of the whole that the part returns
    getattr_maps: dict[Node, Node] = field(default_factory=dict)  # attributes, from the whole to the part
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def input(self, node: Node) -> Node:
        """Return the input that stands for a node of the whole."""
        if node not in self.orig_inputs:
            self.orig_inputs.append(node)
            self.input_placeholders.append(input_for(self.graph, node))
        return self.input_placeholders[self.orig_inputs.index(node)]

    def attribute(self, node: Node) -> Node:
        """Return a copy of a node that reads an attribute of the module."""
        if node not in self.getattr_maps:
            self.getattr_maps[node] = self.graph.node_copy(node)
        return self.getattr_maps[node]


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: Any = GraphModule,
) -> Any:
    """Return a module with one submodule for each tag: it has the nodes whose attribute `tag` is that tag.

    A part may use those before it in `tags`, not those behind it: AssertionError otherwise. Inputs, outputs and
    attributes need no tag. `return_tuple`: parts with one result return a tuple, too. With `return_fqn_mapping`, the
    second result maps the names of submodules and attributes to those that they have now.

    >>> import cygrad
    >>> from cygrad.fx.passes.split_utils import split_by_tags
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> for node in traced.graph.nodes:
    ...     node.tag = "head" if node.name == "relu" else "tail"
    >>> print(split_by_tags(traced, ["head", "tail"]).code.strip())
    def forward(self, x):
        head = self.head(x);  x = None
        tail = self.tail(head);  head = None
        return tail
    """
    parts = {tag: Component(Graph(), i, str(tag)) for i, tag in enumerate(tags)}
    part_of: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}
    main = Graph()
    in_main: dict[Node, Node] = {}
    output = gm.graph.output_node()
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            in_main[node] = input_for(main, node)
        elif node.op not in ("get_attr", "output"):
            _add(node, parts, part_of, copies)
    returned = output.all_input_nodes
    used = dict.fromkeys(node for part in parts.values() for node in part.orig_inputs) | dict.fromkeys(returned)
    for node in used:
        if node in part_of:
            part_of[node].orig_outputs.append(node)
        elif node.op == "get_attr":
            in_main[node] = main.node_copy(node)
    names: dict[str, str] = {}
    for part in parts.values():
        names |= _call(part, gm, main, in_main, copies, return_tuple)
    main.output(map_arg(output.args[0], in_main.__getitem__), type_expr=output.type)
    main._codegen = gm.graph._codegen
    root = HolderModule({part.name: part.gm for part in parts.values()})
    for node in main.find_nodes(op="get_attr"):
        _copy_member(gm, root, str(node.target))
    split = GraphModuleCls(root, main)
    return (split, names) if return_fqn_mapping else split


def _add(node: Node, parts: dict[str, Component], part_of: dict[Node, Component], copies: dict[Node, Node]) -> None:
    """Copy a node into the part of its tag."""
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    part = part_of[node] = parts[node.tag]
    latest = max((part_of[used].order for used in node.all_input_nodes if used in part_of), default=0)
    if part.order < latest:
        raise AssertionError(
            f"Component {part.name} order must be >= max of its upstream components, order={part.order} and "
            f"max={latest}"
        )

    def within(used: Node) -> Node:
        if used.op == "get_attr":
            return part.attribute(used)
        return copies[used] if part_of.get(used) is part else part.input(used)

    copies[node] = part.graph.node_copy(node, within)
    copies[node].tag = node.tag  # type: ignore[attr-defined]


def _call(
    part: Component, gm: GraphModule, main: Graph, in_main: dict[Node, Node], copies: dict[Node, Node], as_tuple: bool
) -> dict[str, str]:
    """Make the module of a part and add its call to the main graph. Returns the new names of its members."""
    results = tuple(copies[node] for node in part.orig_outputs)
    is_single = len(results) == 1 and not as_tuple
    part.graph.output(results[0] if is_single else results)
    part.gm, names = lift_subgraph_as_module(gm, part.graph, part.name)
    called = main.call_module(part.name, tuple(in_main[node] for node in part.orig_inputs))
    for i, node in enumerate(part.orig_outputs):
        in_main[node] = called if is_single else main.call_function(operator.getitem, (called, i))
    return names


def _copy_member(source: Any, target: Any, name: str) -> None:
    *path, last = name.split(".")
    for part in path:
        if not hasattr(target, part):
            target.add_module(part, HolderModule({}))
        target = getattr(target, part)
    setattr(target, last, _get_attr(source, name))
