"""From a tensor's `grad_fn` to vertices and edges."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from cygrad import Tensor

Shape = tuple[int, ...]


class Vertex:
    """One box of the picture.

    `kind` is "op", "parameter" (a leaf), "output" or "more" (what a limit left out). `inputs` are
    the vertices it was computed from, in order, repeated ones repeated.
    """

    __slots__ = ("detail", "inputs", "kind", "name", "shape")

    def __init__(self, kind: str, name: str, shape: Shape | None, detail: str = "") -> None:
        self.kind = kind
        self.name = name
        self.shape = shape
        self.detail = detail
        self.inputs: list[Vertex] = []

    @property
    def title(self) -> str:
        """The name, short: "Mul" for "MulBackward0"."""
        return re.sub(r"Backward\d*$", "", self.name) if self.kind == "op" else self.name

    @property
    def size(self) -> str:
        """The shape as text, "64 × 10"; empty if it is unknown."""
        if self.shape is None:
            return ""
        return " × ".join(map(str, self.shape)) if self.shape else "scalar"


def collect(outputs: list[Tensor], params: Any, max_nodes: int) -> list[Vertex]:
    """All vertices of the graph behind `outputs`, those nearest to them first."""
    names = _names_of(params)
    vertices: list[Vertex] = []
    of_node: dict[Any, Vertex] = {}
    waiting: deque[tuple[Any, Vertex]] = deque()  # a node, and the vertex that stands for it

    def vertex_of(node: Any) -> Vertex:
        if node not in of_node:
            of_node[node] = vertex = _vertex(node, names)
            vertices.append(vertex)
            waiting.append((node, vertex))
        return of_node[node]

    for i, tensor in enumerate(outputs):
        name = "output" if len(outputs) == 1 else f"output {i}"
        end = Vertex("output", names.get(id(tensor), name), tuple(tensor.shape))
        vertices.append(end)
        if tensor.grad_fn is not None:
            end.inputs.append(vertex_of(tensor.grad_fn))
    while waiting:
        node, vertex = waiting.popleft()
        children = [child for child, _ in node.next_functions if child is not None]
        if len(of_node) + len(children) > max_nodes and any(c not in of_node for c in children):
            more = Vertex("more", "…", None, "more than max_nodes nodes")
            vertices.append(more)
            vertex.inputs = [of_node[c] for c in children if c in of_node] + [more]
        else:
            vertex.inputs = [vertex_of(child) for child in children]
    return vertices


def _vertex(node: Any, names: dict[int, str]) -> Vertex:
    variable = getattr(node, "variable", None)
    if variable is not None:
        name = names.get(id(variable), "leaf")
        return Vertex("parameter", name, tuple(variable.shape), str(variable.dtype))
    return Vertex("op", node.name().rsplit(":", 1)[-1], _shape_of(node), node.name())


def _shape_of(node: Any) -> Shape | None:
    """The shape of the node's first output, which is that of the gradient that comes in."""
    metadata = node._input_metadata
    return metadata[0][0] if metadata else None


def _names_of(params: Any) -> dict[int, str]:
    """Names by the tensor's identity, from a module, a mapping or pairs of name and tensor."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        pairs: Iterable[tuple[str, Tensor]] = params.named_parameters()
    elif isinstance(params, Mapping):
        pairs = params.items()
    else:
        pairs = params
    return {id(tensor): name for name, tensor in pairs}
