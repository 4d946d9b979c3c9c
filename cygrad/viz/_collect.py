"""Converts the graph behind a tensor's `grad_fn` to vertices and edges."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from cygrad import Tensor
from cygrad._core.errors.sites import place
from cygrad.autograd.function import FunctionCtx

Shape = tuple[int, ...]


class Vertex:
    """One box of the picture.

    `kind` is "op", "parameter" (a leaf), "output", "module" (several operations) or "more" (cut off by a limit).
    `inputs` are the vertices it was computed from, in order and with repetitions. `saved` is the number of bytes kept
    for backward, `site` the line that computed it, `marks` whether it is a view and has hooks, `named` whether a
    parameter's name was given, `count` the number of operations in a module.
    """

    __slots__ = ("count", "detail", "inputs", "kind", "marks", "name", "named", "saved", "shape", "site")

    def __init__(self, kind: str, name: str, shape: Shape | None, detail: str = "") -> None:
        self.kind = kind
        self.name = name
        self.shape = shape
        self.detail = detail
        self.inputs: list[Vertex] = []
        self.site = ""
        self.saved = self.count = 0
        self.marks: tuple[str, ...] = ()
        self.named = False

    @property
    def title(self) -> str:
        """The short name: "Mul" for "MulBackward0"."""
        return re.sub(r"Backward\d*$", "", self.name) if self.kind == "op" else self.name

    @property
    def size(self) -> str:
        """The shape as text, "64 × 10"; empty if unknown."""
        if self.shape is None:
            return ""
        return " × ".join(map(str, self.shape)) if self.shape else "scalar"

    @property
    def description(self) -> str:
        """All known details, one per line."""
        saved = f"saves {self.saved} bytes" if self.saved else ""
        return "\n".join(part for part in (self.detail or self.name, saved, *self.marks, self.site) if part)


def collect(outputs: list[Tensor], params: Any, max_nodes: int) -> list[Vertex]:
    """Return all vertices of the graph behind `outputs`, nearest first."""
    names = _names_of(params)
    vertices: list[Vertex] = []
    of_node: dict[Any, Vertex] = {}
    waiting: deque[tuple[Any, Vertex]] = deque()  # a node, and the vertex that represents it

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
        vertex = Vertex("parameter", names.get(id(variable), "leaf"), tuple(variable.shape), str(variable.dtype))
        vertex.named = id(variable) in names
    else:
        vertex = Vertex("op", node.name().rsplit(":", 1)[-1], _shape_of(node), node.name())
        vertex.site = place(*node._site)
        vertex.saved = _saved_bytes(node)
    marks = ["view"] if getattr(node, "_is_view", False) else []
    vertex.marks = (*marks, *(["hook"] if any(node._hooks) else []))
    return vertex


def _saved_bytes(node: Any) -> int:
    """Return the size of the tensors saved in a node, without calling hooks on saved tensors."""
    handles: list[Any] = []
    if not isinstance(node, FunctionCtx):
        handles = [getattr(node, name) for name in dir(node) if name.startswith("_raw_saved_")]
    else:
        with contextlib.suppress(RuntimeError):  # the saved tensors have been freed
            handles = list(node._raw_saved_tensors)
    tensors = [None if handle.unpack_hook else handle.data for handle in handles]
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def by_depth(vertices: list[Vertex]) -> list[Vertex]:
    """Return the vertices in topological order, each after all vertices that use it."""
    uses = dict.fromkeys(vertices, 0)
    for vertex in vertices:
        for source in vertex.inputs:
            uses[source] += 1
    ready = deque(vertex for vertex in vertices if not uses[vertex])
    order = []
    while ready:
        order.append(vertex := ready.popleft())
        for source in vertex.inputs:
            uses[source] -= 1
            if not uses[source]:
                ready.append(source)
    return order


def _shape_of(node: Any) -> Shape | None:
    """Return the shape of the node's first output, which equals that of its incoming gradient."""
    metadata = node._input_metadata
    return tuple(metadata[0].shape) if metadata and metadata[0] else None


def _names_of(params: Any) -> dict[int, str]:
    """Map tensor identities to names, given a module, a mapping or (name, tensor) pairs."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        pairs: Iterable[tuple[str, Tensor]] = params.named_parameters()
    elif isinstance(params, Mapping):
        pairs = params.items()
    else:
        pairs = params
    try:
        return {id(tensor): name for name, tensor in pairs}
    except (TypeError, ValueError):
        raise TypeError("params of graph() is a module, a dictionary {name: tensor}, or (name, tensor) pairs") from None
