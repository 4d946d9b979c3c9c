"""Assigns operations to modules based on their parameters, and collapses each module to one box."""

from __future__ import annotations

from collections.abc import Iterable

from cygrad.viz._collect import Vertex, by_depth

Path = tuple[str, ...]


def module_paths(vertices: list[Vertex]) -> dict[Vertex, Path]:
    """Return the module path, such as ("encoder", "0"), of each operation and parameter.

    An operation belongs to the module of its parameters. One without parameters belongs to the common parent of the
    nearest such operations before and after it: a ReLU between `encoder.0` and `encoder.2` belongs to `encoder`.
    """
    own: dict[Vertex, Path] = {v: _owner(v) for v in vertices if v.kind == "parameter" and v.named}
    for vertex in vertices:
        parameters = [own[source] for source in vertex.inputs if source.kind == "parameter" and source in own]
        if vertex.kind == "op" and parameters:
            own[vertex] = _common(parameters)
    users: dict[Vertex, list[Vertex]] = {}
    for vertex in vertices:
        for source in vertex.inputs:
            users.setdefault(source, []).append(vertex)
    order = [v for v in by_depth(vertices) if v.kind == "op"]
    after = _spread(order, own, users)
    before = _spread(order[::-1], own, {v: [s for s in v.inputs if s.kind == "op"] for v in vertices})
    for vertex in order:
        if vertex not in own and vertex in before and vertex in after:
            own[vertex] = _common([before[vertex], after[vertex]])
    return own


def _owner(parameter: Vertex) -> Path:
    return tuple(parameter.name.split(".")[:-1])


def _common(paths: list[Path]) -> Path:
    shortest = min(paths, key=len)
    for i, part in enumerate(shortest):
        if any(path[i] != part for path in paths):
            return shortest[:i]
    return shortest


def _spread(order: Iterable[Vertex], own: dict[Vertex, Path], nearer: dict[Vertex, list[Vertex]]) -> dict[Vertex, Path]:
    """Propagate the module of the nearest operations that have one, among those earlier in `order`."""
    found: dict[Vertex, Path] = {}
    for vertex in order:
        paths = [own[vertex]] if vertex in own else [found[v] for v in nearer.get(vertex, ()) if v in found]
        if paths:
            found[vertex] = _common(paths)
    return found


def collapsed(vertices: list[Vertex], depth: int) -> list[Vertex]:
    """Collapse the operations and parameters of each module in the first `depth` levels to one box.

    If data leaves a module and returns to it, the module gets another box, so that data still flows one way.
    """
    paths = module_paths(vertices)
    groups = {v: path[:depth] for v, path in paths.items() if path[:depth]}
    users: dict[Vertex, list[Vertex]] = {}
    for vertex in vertices:
        for source in vertex.inputs:
            users.setdefault(source, []).append(vertex)
    visits: dict[Vertex, int] = {}  # number of module changes on the path from the outputs
    box_of: dict[Vertex, Vertex] = {}
    boxes: dict[tuple[Path, int], Vertex] = {}
    for vertex in by_depth(vertices):
        group = groups.get(vertex)
        steps = [visits[u] + (groups.get(u) != group or group is None) for u in users.get(vertex, ())]
        visits[vertex] = max(steps, default=0)
        outside = vertex.kind == "parameter" and any(groups.get(u) != group for u in users[vertex])
        if group is None or outside:
            box_of[vertex] = _copy(vertex)
            continue
        key = group, visits[vertex]
        if key not in boxes:
            boxes[key] = Vertex("module", ".".join(group), vertex.shape)
        box_of[vertex] = boxes[key]
        if vertex.kind == "op":
            boxes[key].count += 1
            boxes[key].saved += vertex.saved
        else:
            boxes[key].detail += f"{vertex.name} {vertex.size}\n"
    for vertex in vertices:
        box = box_of[vertex]
        box.inputs += [box_of[source] for source in vertex.inputs if box_of[source] is not box]
    kept: list[Vertex] = list(dict.fromkeys(box_of[vertex] for vertex in vertices))
    for box in boxes.values():
        box.inputs = list(dict.fromkeys(box.inputs))
        box.detail = f"{box.count} operations\n{box.detail}".strip()
    return kept


def _copy(vertex: Vertex) -> Vertex:
    copy = Vertex(vertex.kind, vertex.name, vertex.shape, vertex.detail)
    copy.site, copy.saved, copy.marks, copy.named = vertex.site, vertex.saved, vertex.marks, vertex.named
    return copy
