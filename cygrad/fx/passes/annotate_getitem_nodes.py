"""`annotate_getitem_nodes`: types for the items of sequences whose type is known."""

import operator
import typing
from typing import Any

from cygrad.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give the nodes that read an item of a tuple, a named tuple or a list the type that the annotation of this tells.

    >>> import cygrad
    >>> import operator
    >>> from cygrad.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
    >>> graph = cygrad.fx.Graph()
    >>> x = graph.placeholder("x", tuple[int, str])
    >>> item = graph.call_function(operator.getitem, (x, 1))
    >>> annotate_getitem_nodes(graph)
    >>> item.type
    <class 'str'>
    """
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        sequence, index = node.args
        kind = getattr(sequence, "type", None)
        found = _type_of_item(kind, index) if isinstance(index, int) else None
        if found is not None:
            node.type = found


def _type_of_item(kind: Any, index: int) -> Any:
    """Return the type of an item, or None if it is unknown."""
    parts = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is list or (origin is tuple and len(parts) == 2 and parts[1] is ...):
        return parts[0] if parts else None
    if origin is tuple:
        if index >= len(parts):
            raise AssertionError(f"Index {index} out of range for parameterized_types (len={len(parts)})")
        return parts[index]
    fields = getattr(kind, "_fields", None)
    return None if fields is None else getattr(kind, "__annotations__", {}).get(fields[index])
