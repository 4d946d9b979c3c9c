"""Renders a graph as text, Graphviz source, SVG, an HTML page, or a matplotlib drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import cos, pi, sin
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from cygrad import Tensor, why_no_grad
from cygrad.viz._collect import Vertex, collect
from cygrad.viz._layout import BOX_HEIGHT, Item, Layout, Point
from cygrad.viz._modules import collapsed, module_paths
from cygrad.viz._page import page

LEVELS = 32  # levels of a text tree drawn side by side
STEP = 3  # characters per level
MARGIN = 14.0
TITLE_SIZE = 13
SIZE_SIZE = 11

# Fill, outline, text
COLOURS = {
    "op": ("#f1f5f9", "#64748b", "#0f172a"),
    "parameter": ("#dbeafe", "#2563eb", "#1e3a8a"),
    "output": ("#dcfce7", "#16a34a", "#14532d"),
    "module": ("#fef3c7", "#d97706", "#78350f"),
    "more": ("#ffffff", "#94a3b8", "#475569"),
}
HOOK_COLOUR = "#dc2626"
EDGE_COLOUR = "#94a3b8"


def graph(tensor: Tensor | Sequence[Tensor], params: Any = None, *, max_nodes: int = 400) -> Graph:
    """Return the graph that computed `tensor` (or several), for display.

    `params` names leaves: a module, a dictionary of tensors by name, or (name, tensor) pairs. The
    graph is followed up to `max_nodes` nodes; the rest is drawn as "…".

    Raises `TypeError` for non-tensors, `RuntimeError` if nothing was recorded.

    >>> import cygrad
    >>> from cygrad import viz
    >>> model = cygrad.nn.Linear(3, 2)
    >>> picture = viz.graph(model(cygrad.ones(1, 3)).sum(), params=model)
    >>> "bias" in picture.svg() and "weight" in picture.dot()
    True
    """
    outputs = list(tensor) if isinstance(tensor, Iterable) and not isinstance(tensor, Tensor) else [tensor]
    for output in outputs:
        if not isinstance(output, Tensor):
            raise TypeError(f"graph() takes tensors, not {type(output).__name__}")
    if not any(output.requires_grad for output in outputs):
        raise RuntimeError(
            "there is no graph: the tensor does not require grad and does not have a grad_fn"
            + "".join(f"\n  {why_no_grad(output)}" for output in outputs[:1])
        )
    return Graph(collect(outputs, params, max_nodes))


class Graph:
    """A picture of a graph. Notebooks show it as SVG; `print` shows it as text.

    >>> import cygrad
    >>> w = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> graph = cygrad.viz.graph((w * w).sum(), params={"w": w})
    >>> graph
    <cygrad.viz.Graph: 4 vertices, 4 edges>
    >>> print(graph.text())
    output ()
    └─ SumBackward0 ()
       └─ MulBackward0 (2,)
          ├─ w (2,)
          └─ w (2,)
    >>> graph.svg()[:4], graph.html()[:15], graph.dot()[:7]
    ('<svg', '<!DOCTYPE html>', 'digraph')
    """

    def __init__(self, vertices: list[Vertex]) -> None:
        self.vertices = vertices

    # Text

    def text(self, details: bool = False) -> str:
        """Return an indented tree, from the outputs back; repeated vertices are not expanded.

        Views and nodes with hooks are marked; `details` adds the bytes saved and the source lines. At great depth, a
        line starts with the number of levels omitted on its left.
        """
        lines = []
        seen: set[Vertex] = set()
        stack = [(v, 0, "", "", "") for v in reversed(self.vertices) if v.kind == "output"]
        while stack:
            vertex, depth, before, branch, below = stack.pop()
            again = vertex in seen and vertex.inputs
            seen.add(vertex)
            cut = (depth // (LEVELS // 2) - 1) * (LEVELS // 2) if depth > LEVELS else 0
            indent = f"{cut} … {before[STEP * (cut - depth) :]}" if cut else before
            lines.append(f"{indent}{branch}{_text_label(vertex, details)}{' (see above)' if again else ''}")
            if again:
                continue
            inner = (before + below)[-STEP * LEVELS :]  # more is never shown
            for i in range(len(vertex.inputs) - 1, -1, -1):
                last = i == len(vertex.inputs) - 1
                step = ("└─ ", "   ") if last else ("├─ ", "│  ")
                stack.append((vertex.inputs[i], depth + bool(below), inner, *step))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        edges = sum(len(vertex.inputs) for vertex in self.vertices)
        return f"<cygrad.viz.Graph: {len(self.vertices)} vertices, {edges} edges>"

    def dot(self) -> str:
        """Return Graphviz source."""
        numbers = {vertex: i for i, vertex in enumerate(self.vertices)}
        lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="Helvetica"];']
        for vertex, i in numbers.items():
            fill, outline, _ = COLOURS[vertex.kind]
            label = "\\n".join(part for part in (vertex.title, vertex.size, *vertex.marks) if part)
            label, tip = (text.replace('"', '\\"') for text in (label, vertex.description.replace("\n", "\\n")))
            lines.append(f'  n{i} [label="{label}", fillcolor="{fill}", color="{outline}", tooltip="{tip}"];')
        for vertex, i in numbers.items():
            lines += [f"  n{numbers[source]} -> n{i};" for source in vertex.inputs]
        return "\n".join([*lines, "}"])

    # Drawings

    def svg(self) -> str:
        """Return a complete, self-contained SVG document."""
        layout = Layout(self.vertices, _box_width)
        width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}" '
            'font-family="Helvetica, Arial, DejaVu Sans, sans-serif" text-anchor="middle">',
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 1 L7 4 L0 7 z" fill="{EDGE_COLOUR}"/>'
            "</marker></defs>",
            f'<rect x="{-MARGIN:.0f}" y="{-MARGIN:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" rx="8" fill="#ffffff"/>',
        ]
        for points, count in layout.edges:
            parts.append(_svg_edge(points, count))
        for box in layout.boxes:
            parts.append(_svg_box(box))
        return "\n".join([*parts, "</svg>"])

    def _repr_svg_(self) -> str:
        return self.svg()

    def collapse(self, depth: int = 1) -> Graph:
        """Return the graph with one box per module in the first `depth` levels of names, such as `encoder.0`.

        Operations are assigned to modules by the parameters that they and their neighbors use, so `params` must have
        been given. Raises ValueError for a depth below 1.

        >>> import cygrad
        >>> from cygrad import viz
        >>> net = cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.Linear(2, 1))
        >>> print(viz.graph(net(cygrad.ones(1, 2)), params=net).collapse().text())
        output (1, 1)
        └─ 1 (1, 1)
           └─ 0 (1, 2)
        """
        if depth < 1:
            raise ValueError(f"collapse() keeps at least one level of names, not {depth}")
        return Graph(collapsed(self.vertices, depth))

    def html(self, title: str = "Graph") -> str:
        """Return a self-contained page: the picture, collapsed by module or not, and a table of the nodes."""
        depths = {len(path) for path in module_paths(self.vertices).values()}
        levels = [(f"modules, {d} level{'s' * (d > 1)}", self.collapse(d)) for d in sorted(depths) if d]
        return page([*levels, ("every operation", self)], title)

    def save(self, path: str | Path) -> None:
        """Write a file in the format given by its suffix: `.svg`, `.html`, `.dot` or `.txt`.

        >>> import cygrad
        >>> import os, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> w = cygrad.ones(2, requires_grad=True)
        >>> cygrad.viz.graph(w.sum()).save(os.path.join(folder.name, "graph.svg"))
        >>> os.listdir(folder.name)
        ['graph.svg']
        >>> folder.cleanup()
        """
        path = Path(path)
        writers = {".svg": self.svg, ".html": self.html, ".dot": self.dot, ".txt": self.text}
        if path.suffix not in writers:
            raise ValueError(f"a graph can be saved as {', '.join(writers)}, not as {path.name!r}")
        path.write_text(writers[path.suffix]() + "\n", encoding="utf-8")

    def draw(self, axes: Any) -> None:
        """Draw into matplotlib `axes`, as large as possible without distortion.

        >>> import cygrad
        >>> import importlib.util
        >>> w = cygrad.ones(2, requires_grad=True)
        >>> graph = cygrad.viz.graph(w.sum())
        >>> if importlib.util.find_spec("matplotlib"):
        ...     from matplotlib.figure import Figure
        ...     graph.draw(Figure().subplots())
        """
        layout = Layout(self.vertices, _box_width)
        axes.set_xlim(-MARGIN, layout.width + MARGIN)
        axes.set_ylim(layout.height + MARGIN, -MARGIN)
        axes.set_aspect("equal")
        axes.axis("off")
        axes.figure.canvas.draw()  # fixes the size of the axes, and therefore of the text
        x0, x1 = axes.transData.transform([(0, 0), (1, 0)])[:, 0]
        points_per_unit = (x1 - x0) * 72 / axes.figure.dpi
        for points, count in layout.edges:
            _draw_edge(axes, points, count, points_per_unit)
        for box in layout.boxes:
            _draw_box(axes, box, points_per_unit)


# --- Labels --


def _text_label(vertex: Vertex, details: bool) -> str:
    label = vertex.name if vertex.shape is None else f"{vertex.name} {tuple(vertex.shape)}"
    more = list(vertex.marks)
    if details:
        more += [f"saves {vertex.saved} bytes"] if vertex.saved else []
        more += [vertex.site] if vertex.site else []
    return f"{label} [{', '.join(more)}]" if more else label


def _box_width(vertex: Vertex) -> float:
    title = _text_width(vertex.title, TITLE_SIZE)
    return max(48.0, max(title, _text_width(vertex.size, SIZE_SIZE)) + 26)


def _text_width(text: str, size: float) -> float:
    """Return an upper estimate for common sans-serif fonts."""
    narrow = sum(character in "ijlt.,:;|!()[] " for character in text)
    wide = sum(character in "mwMWOQG@×" for character in text)
    return size * (0.64 * len(text) - 0.26 * narrow + 0.24 * wide)


# --- SVG --


def _svg_edge(points: list[Point], count: int) -> str:
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for (x0, y0), (x1, y1) in zip(points, rest):
        middle = (y0 + y1) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    line = (
        f'<path d="{" ".join(path)}" fill="none" stroke="{EDGE_COLOUR}" stroke-width="1.4" marker-end="url(#arrow)"/>'
    )
    if count == 1:
        return line
    x, y = _middle(points)
    return line + (
        f'<text x="{x + 12:.1f}" y="{y + 4:.1f}" font-size="{SIZE_SIZE}" fill="{COLOURS["more"][2]}">×{count}</text>'
    )


def _svg_box(box: Item) -> str:
    vertex = box.vertex
    assert vertex is not None
    fill, outline, colour = COLOURS[vertex.kind]
    left, top = box.x - box.width / 2, box.y - BOX_HEIGHT / 2
    radius = 6 if vertex.kind == "op" else BOX_HEIGHT / 2
    dashes = ' stroke-dasharray="4 3"' if vertex.kind == "more" or "view" in vertex.marks else ""
    title_y = box.y - 3 if vertex.size else box.y + 4.5
    parts = [
        f'<g><title>{escape(vertex.description)}</title><rect x="{left:.1f}" '
        f'y="{top:.1f}" width="{box.width:.1f}" height="{BOX_HEIGHT:.0f}" rx="{radius:.0f}" '
        f'fill="{fill}" stroke="{outline}" stroke-width="1.2"{dashes}/>',
        f'<text x="{box.x:.1f}" y="{title_y:.1f}" font-size="{TITLE_SIZE}" font-weight="600" '
        f'fill="{colour}">{escape(vertex.title)}</text>',
    ]
    if vertex.size:
        parts.append(
            f'<text x="{box.x:.1f}" y="{box.y + 12:.1f}" font-size="{SIZE_SIZE}" '
            f'fill="{outline}">{escape(vertex.size)}</text>'
        )
    if "hook" in vertex.marks:
        parts.append(f'<circle cx="{left + box.width:.1f}" cy="{top:.1f}" r="5" fill="{HOOK_COLOUR}"/>')
    return "".join([*parts, "</g>"])


def _middle(points: list[Point]) -> Point:
    (x0, y0), (x1, y1) = points[(len(points) - 1) // 2 : (len(points) - 1) // 2 + 2]
    return (x0 + x1) / 2, (y0 + y1) / 2


# --- matplotlib --


def _draw_edge(axes: Any, points: list[Point], count: int, scale: float) -> None:
    xs, ys = [points[0][0]], [points[0][1]]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        for i in range(1, 17):  # the SVG's cubic, in sixteen segments
            t = i / 16
            along, down = t * t * (3 - 2 * t), (y0 + y1) / 2
            xs.append(x0 + (x1 - x0) * along)
            ys.append((1 - t) ** 3 * y0 + 3 * (1 - t) * t * ((1 - t) * down + t * down) + t**3 * y1)
    axes.plot(xs, ys, color=EDGE_COLOUR, linewidth=1.4 * scale, zorder=1)
    arrow = {"color": EDGE_COLOUR, "linewidth": 0, "marker": "v", "clip_on": False, "zorder": 1}
    axes.plot([xs[-1]], [ys[-1] - 3], markersize=6 * scale, **arrow)
    if count > 1:
        x, y = _middle(points)
        axes.text(x + 12, y, f"×{count}", fontsize=SIZE_SIZE * scale, color=EDGE_COLOUR, va="center")


def _draw_box(axes: Any, box: Item, scale: float) -> None:
    vertex = box.vertex
    assert vertex is not None
    fill, outline, colour = COLOURS[vertex.kind]
    radius = 6 if vertex.kind == "op" else BOX_HEIGHT / 2 - 1
    inset = box.width / 2 - radius
    xs, ys = _rounded(box.x, box.y, inset, BOX_HEIGHT / 2 - radius, radius)
    style = "--" if vertex.kind == "more" or "view" in vertex.marks else "-"
    axes.fill(xs, ys, facecolor=fill, edgecolor=outline, linewidth=1.2 * scale, linestyle=style)
    centre = {"ha": "center", "va": "center", "zorder": 3}
    y = box.y - 7 if vertex.size else box.y
    axes.text(box.x, y, vertex.title, fontsize=TITLE_SIZE * scale, color=colour, weight="bold", **centre)
    if vertex.size:
        axes.text(box.x, box.y + 9, vertex.size, fontsize=SIZE_SIZE * scale, color=outline, **centre)


def _rounded(x: float, y: float, dx: float, dy: float, radius: float) -> tuple[list[Any], list]:
    """Return the outline of a box with rounded corners: quarter circles around (x +- dx, y +- dy)."""
    xs, ys = [], []
    for quarter, (sx, sy) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        for i in range(9):
            angle = (quarter + i / 8) * pi / 2
            xs.append(x + sx * dx + radius * cos(angle))
            ys.append(y + sy * dy + radius * sin(angle))
    return xs, ys
