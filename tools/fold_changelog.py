"""Move the fragments in changelog.d/ into the newest section of CHANGELOG.md, for a release that is not tagged yet.

    python tools/fold_changelog.py                move them
    python tools/fold_changelog.py --draft        print the section instead

`towncrier build` makes a section once, and refuses a version that has one. What reaches `main` between that and the tag
belongs to the release too: each fragment becomes an item under "Also", at the end of what its type says.
"""

import argparse
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = ROOT / "CHANGELOG.md"
FRAGMENTS = ROOT / "changelog.d"
SECTION = re.compile(r"^## .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^### ([^\n]*)\n.*?(?=^### |\Z)", re.MULTILINE | re.DOTALL)
ALSO = "#### Also\n"
WIDTH = 120


def types() -> dict[str, str]:
    """Return {type in a fragment's name: its heading}, in order."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {each["directory"]: each["name"] for each in settings["tool"]["towncrier"]["type"]}


def item(text: str) -> str:
    """Return a fragment as an item of a list."""
    words = " ".join(text.split())
    return textwrap.fill(words, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def folded(section: str, fragments: dict[str, str]) -> str:
    """Return a section with fragments, {file name: text}, added to the parts of their types."""
    headings = types()
    head = section[: match.start()] if (match := PART.search(section)) else section.rstrip() + "\n\n"
    parts = {part[1]: part[0].rstrip() for part in PART.finditer(section)}
    for name, text in sorted(fragments.items()):
        kind = name.split(".")[-2]
        if kind not in headings:
            raise SystemExit(f"changelog.d/{name}: a type is one of {', '.join(headings)}")
        part = parts.get(headings[kind], f"### {headings[kind]}\n")
        if ALSO not in part and "\n#### " in part:
            part += f"\n\n{ALSO}"
        parts[headings[kind]] = f"{part}\n{item(text)}"
    order = list(headings.values())
    return head + "\n\n".join(parts[name] for name in sorted(parts, key=order.index)) + "\n"


def main() -> None:
    """Move the fragments, or print the section."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draft", action="store_true", help="print the section, and change nothing")
    options = parser.parse_args()
    files = sorted(FRAGMENTS.glob("+*.md"))
    text = CHANGELOG.read_text(encoding="utf-8")
    if not (newest := SECTION.search(text)):
        raise SystemExit("CHANGELOG.md has no section: make one by `towncrier build`")
    section = folded(newest[0], {file.name: file.read_text(encoding="utf-8") for file in files})
    if options.draft:
        print(section, end="")
        return
    after = text[newest.end() :]
    CHANGELOG.write_text(text[: newest.start()] + section + ("\n" + after if after else ""), encoding="utf-8")
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main()
