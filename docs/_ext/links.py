"""Warns of each link of the finished site that leads nowhere: to a page, a picture or a place that is not there.

Sphinx checks references between sources. This checks what readers get, with the links of generated pages, of included
files and of the theme. Links to other sites are those that `tox -e docs-links` opens.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LEADING = ("href", "src")


class Page(HTMLParser):
    """The places on a page, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.places.add(value)
            elif value and name in LEADING:
                self.links.add(value)


def broken(folder: Path) -> dict[str, list[str]]:
    """Return {page: links that lead nowhere} of the HTML pages in a folder."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]  # templates of the theme
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    found: dict[str, list[str]] = {}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            is_there = target.exists() and (not place or target not in pages or place in pages[target].places)
            if not is_there:
                found.setdefault(path.relative_to(folder).as_posix(), []).append(link)
    return found


def check(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        from sphinx.util import logging  # here, so that the tests of `broken` need no Sphinx

        for page, links in broken(Path(app.outdir).resolve()).items():
            logging.getLogger(__name__).warning("%s has links that lead nowhere: %s", page, ", ".join(links))


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
