"""A self-contained HTML page: the picture at each level of detail, and a table of its boxes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cygrad.viz._picture import Graph

_STYLE = """
body { font-family: Helvetica, Arial, "DejaVu Sans", sans-serif; margin: 1.5em; color: #0f172a; }
.level { display: inline; } .level > label { margin-right: 1.5em; cursor: pointer; }
section { display: none; overflow: auto; max-height: 85vh; border: 1px solid #cbd5e1; margin: 1em 0; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 2px 12px 2px 0; text-align: left; }
td.number { text-align: right; } code { color: #475569; }
"""


def page(levels: list[tuple[str, Graph]], title: str) -> str:
    """Return HTML with one picture per (name, graph), shown one at a time, and a table of the last one."""
    rules = "".join(f"#l{i}:checked ~ #p{i} {{ display: block; }}\n" for i in range(len(levels)))
    buttons = "".join(
        f'<input type="radio" name="level" id="l{i}"{" checked" if i == 0 else ""}>'
        f'<label for="l{i}">{escape(name)}</label>\n'
        for i, (name, _) in enumerate(levels)
    )
    # Each picture needs its own arrowheads: those defined in a hidden section are not drawn.
    pictures = "".join(
        f'<section id="p{i}">{_own_arrows(graph.svg(), i)}</section>\n' for i, (_, graph) in enumerate(levels)
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}{rules}</style></head>\n<body><h1>{escape(title)}</h1>\n{buttons}{pictures}"
        f"{_table(levels[-1][1])}</body></html>"
    )


def _own_arrows(svg: str, i: int) -> str:
    return svg.replace('<marker id="arrow"', f'<marker id="arrow{i}"').replace("url(#arrow)", f"url(#arrow{i})")


def _table(graph: Graph) -> str:
    rows = [
        f"<tr><td>{escape(v.name)}</td><td>{escape(v.size)}</td><td class=number>{v.saved or ''}</td>"
        f"<td>{escape(', '.join(v.marks))}</td><td><code>{escape(v.site)}</code></td></tr>\n"
        for v in graph.vertices
        if v.kind in ("op", "parameter")
    ]
    head = "<tr><th>name</th><th>shape</th><th>bytes saved</th><th></th><th>line</th></tr>\n"
    return f"<table>{head}{''.join(rows)}</table>\n"
