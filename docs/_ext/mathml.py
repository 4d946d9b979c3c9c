"""Writes formulas as MathML, which browsers and screen readers know: pages need no script and no other server."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def mathml(node: Any, display: str) -> str:
    try:
        return convert(node.astext(), display=display)
    except Exception as error:  # latex2mathml has one for each kind of mistake
        raise ExtensionError(f"{node.source}: {node.astext()!r} is no formula: {error!r}") from error


def visit_inline(writer: Any, node: Any) -> None:
    writer.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: Any) -> None:
    # A wide formula scrolls by itself, also with the keyboard.
    writer.body.append(f'<div class="formula" tabindex="0">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
