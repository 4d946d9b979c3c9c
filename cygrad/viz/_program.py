"""Pictures of what a compiled function replays: the launches of its programs, from the arguments to the results."""

from __future__ import annotations

from typing import Any

from cygrad.viz._collect import Vertex
from cygrad.viz._picture import Graph


def show(compiled: Any) -> Graph:
    """Return a picture of the programs of a function compiled by `cygrad.compile`: their launches, in order.

    A box is a launch with its op, the bytes that it reads and writes, and its line. A function that has no plan yet is
    one box that says so. Raises TypeError for a function that is not compiled.

    >>> import cygrad
    >>> from cygrad import viz
    >>> double = cygrad.compile(lambda x: x.exp() * 2)
    >>> print(viz.show(double).text())
    output: no plan yet
    >>> for _ in range(4):
    ...     _ = double(cygrad.ones(2))
    >>> print(viz.show(double).text().splitlines()[0])
    output: plan 0
    """
    explain = getattr(compiled, "explain", None)
    if explain is None:
        raise TypeError(f"show() takes a function compiled by cygrad.compile, not {type(compiled).__name__}")
    plans = explain().plans
    if not plans:
        return Graph([Vertex("output", "output: no plan yet", None)])
    vertices: list[Vertex] = []
    for number, plan in enumerate(plans):
        vertices += _chain(number, plan)
    return Graph(vertices)


def _chain(number: int, plan: Any) -> list[Vertex]:
    """Return a plan's launches, each behind the one before, and its output in front."""
    output = Vertex("output", f"output: plan {number}", None)
    found, last = [output], output
    for entry in reversed(plan.program.entries):
        vertex = Vertex("op", entry.op or entry.kind, None, _detail(entry))
        last.inputs.append(vertex)
        found.append(vertex)
        last = vertex
    arguments = Vertex("parameter", f"{plan.program.arguments} arguments", None)
    last.inputs.append(arguments)
    return [*found, arguments]


def _detail(entry: Any) -> str:
    site = f", {entry.site[0]}:{entry.site[1]}" if entry.site else ""
    return f"{entry.kind}, reads {entry.bytes_read:,} bytes, writes {entry.bytes_written:,}{site}"
