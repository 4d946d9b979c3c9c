"""Lets the site show files of the repository that stand outside of `docs/`, and mends links that lead there.

Pages link to each other by the paths that they have in the repository, so that the links work where the files are
browsed. On the site, some of these files are pages elsewhere, and others are not there at all.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")

# The pages whose text is that of a file elsewhere in the repository.
PAGES = {
    "project/benchmarks": "benchmarks/README.md",
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
}
PAGE_OF = {(ROOT / path): DOCS / f"{page}.md" for page, path in PAGES.items()} | {ROOT / "README.md": DOCS / "index.md"}


def source_address() -> str:
    """Return the address under which files of the repository can be read, or nothing."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    address = urls.get("Source") or urls.get("Repository") or ""
    return f"{address.rstrip('/')}/blob/main/" if address else ""


def mend(text: str, base: Path, page: Path) -> str:
    """Return Markdown written for the folder `base` with its links as `page` needs them."""
    address = source_address()

    def replace(match: re.Match[str]) -> str:
        mark, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = Path(os.path.normpath(base / target))
        if not path.exists():
            return match[0]
        path = PAGE_OF.get(path, path)
        if mark or path.is_relative_to(DOCS) or path.parent == EXAMPLES:  # pictures are copied, programs downloaded
            return f"{mark}[{words}]({Path(os.path.relpath(path, page.parent)).as_posix()}{anchor})"
        return f"[{words}]({address}{path.relative_to(ROOT).as_posix()}{anchor})" if address else words

    return LINK.sub(replace, text)


def read(app: Any, page: str, source: list[str]) -> None:
    """Put the text of a file in the place of a page, and mend the links of any page."""
    path = Path(app.env.doc2path(page))
    if path.suffix != ".md":
        return
    base = path.parent
    if page in PAGES:
        original = ROOT / PAGES[page]
        app.env.note_dependency(str(original))
        source[0], base = original.read_text(encoding="utf-8"), original.parent
    source[0] = mend(source[0], base, path)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
