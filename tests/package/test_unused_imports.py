"""Imports that a module does not use: each says what it is there for."""

import re

from checkout import CHECKOUT

SOURCES = sorted((CHECKOUT / "cygrad").rglob("*.py"))
WITHOUT_REASON = re.compile(r"# noqa: F401\s*$", re.MULTILINE)


def test_unused_imports_state_their_reason():
    found = [str(path) for path in SOURCES if WITHOUT_REASON.search(path.read_text(encoding="utf-8"))]
    assert SOURCES and not found, f"say behind `# noqa: F401` what the import is for: {found}"
