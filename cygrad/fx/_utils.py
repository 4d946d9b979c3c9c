"""Texts about graphs, for messages."""

from typing import Any

from cygrad.fx.graph import Graph
from cygrad.fx.node import Node


class _Later:
    """A text that is made when it is needed, as the argument of a log message."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __str__(self) -> str:
        return self.make()


def lazy_format_graph_code(name: str, gm: Any, maybe_id: int | None = None, **kwargs: Any) -> Any:
    """Return the readable source of a GraphModule under a title; it is made when the result is turned into a `str`."""
    title = name if maybe_id is None else f"{name} {maybe_id}"
    options = {"print_output": False, **kwargs}

    def text() -> str:
        file = gm.forward.__code__.co_filename
        return _format_graph_code(f"===== {title} =====\n", file, gm.print_readable(**options))

    return _Later(text)


def _format_graph_code(name: str, filename: str, graph_str: str) -> str:
    return f"TRACED GRAPH\n {name} {filename} {graph_str}\n"


def first_call_function_nn_module_stack(graph: Graph) -> dict[str, Any] | None:
    """Return the modules that the first function of a graph was called in, or None if no node tells."""
    stacks = (node.meta.get("nn_module_stack") for node in graph.nodes if node.op == "call_function")
    return next((stack for stack in stacks if stack is not None), None)


def get_node_context(node: Node, num_nodes: int = 2) -> str:
    """Return the lines of a node and of those before it, `num_nodes` in all, as a graph prints them."""
    lines: list[str] = []
    while len(lines) < num_nodes:
        lines.insert(0, str(node.format_node()))
        if node.op == "root":
            break
        node = node.prev
    return "\n".join(lines)
