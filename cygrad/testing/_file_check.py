"""`FileCheck`: checks that parts of a text, such as printed code, stand in it in some order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple, Self

__all__ = ["FileCheck"]

_COMMENT = re.compile(r"#[ \t]{0,6}(?:CHECK([^\n]*)|.?)", re.DOTALL)  # behind another `#`, it is none
_KIND = re.compile(r"(?:-(NEXT|SAME|NOT|DAG|REGEX|SOURCE-HIGHLIGHTED)|-COUNT-(EXACTLY-)?(\d{1,9}))?: (.*)")
_BAD_INPUT = "Check for bad input."
_CONTEXT = 10  # lines shown around a place


class _Check(NamedTuple):
    """One check (CHECK, NEXT, SAME, NOT, COUNT, DAG, SOURCE-HIGHLIGHTED or REGEX), and how often its text is there."""

    kind: str
    text: str
    times: int = 1

    def __str__(self) -> str:
        kind = {"CHECK": "CHECK", "COUNT": f"CHECK-COUNT-{self.times}"}.get(self.kind, f"CHECK-{self.kind}")
        return f"{kind}: {self.text}"


class FileCheck:
    r"""Checks a text. The methods add checks, each of which looks behind what the one before it has found.

    - `check(text)`: the text follows; `check_regex(pattern)`: something that the regular expression matches
    - `check_same`: it follows in the same line; `check_next`: it follows in the next line
    - `check_not`: it is not between what the checks around it find
    - `check_count(text, n)`: it follows `n` times; with `exactly=True`, no more often before what comes next
    - `check_dag`: several of these in a row find their texts in any order
    - `check_source_highlighted`: it follows, and the line below marks exactly it with `~`

    `run(text)` does the checks. `run(checks, text)` takes them from comments such as `# CHECK: text` or
    `# CHECK-COUNT-2: text`. Raises RuntimeError for a check that fails, with the place. An object that was not run
    prints its checks when it is deleted.

    >>> from cygrad.testing import FileCheck
    >>> text = "x = a + b\ny = x * 2\nreturn y\n"
    >>> FileCheck().check("a + b").check_next("x * 2").check_not("a + b").check("return").check_same("y").run(text)
    >>> FileCheck().check_count("y", 2, exactly=True).run(text)
    >>> FileCheck().check_dag("return").check_dag("x = ").check_regex("y$").run(text)
    >>> FileCheck().check_source_highlighted("a + b").run("c = a + b\n    ~~~~~ <--- HERE\n")
    >>> FileCheck().run("# CHECK: y = x\n# CHECK-NEXT: return", text)
    >>> FileCheck().check("b").check_next("return").run(text)
    Traceback (most recent call last):
        ...
    RuntimeError: Expected to not find "\n" but found it...
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __del__(self) -> None:
        if not self._has_run:
            print("You have not run this instance of FileCheck!\nFileCheck checks:")
            for check in self._checks:
                print(f"\t{check}")

    def _add(self, kind: str, text: Any, count: int = 1) -> Self:
        if not isinstance(text, str):
            name = "check" if kind == "CHECK" else f"check_{kind.lower().replace('-', '_')}"
            raise TypeError(f"{name}(): incompatible function arguments.\n  it takes a text, not {text!r}")
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> Self:
        """Check that the text follows."""
        return self._add("CHECK", text)

    def check_not(self, text: str) -> Self:
        """Check that the text does not occur before what the next check finds."""
        return self._add("NOT", text)

    def check_same(self, text: str) -> Self:
        """Check that the text follows in the same line."""
        return self._add("SAME", text)

    def check_next(self, text: str) -> Self:
        """Check that the text follows in the next line."""
        return self._add("NEXT", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> Self:
        """Check that the text follows `count` times."""
        if count == 0 and not exactly:
            raise RuntimeError("Count == 0 && !exactly doesn't do anything")
        self._add("COUNT", str, count)
        return self._add("NOT", str) if exactly else self

    def check_dag(self, text: str) -> Self:
        """Check that the text follows, before or after those of the neighboring calls of `check_dag`."""
        return self._add("DAG", text)

    def check_source_highlighted(self, text: str) -> Self:
        """Check that the text follows and that the line below marks exactly it with `~`."""
        return self._add("SOURCE-HIGHLIGHTED", text)

    def check_regex(self, text: str) -> Self:
        """Check that something follows which the regular expression matches."""
        return self._add("REGEX", text)

    def run(self, *texts: Any, checks_file: Any = None, test_file: Any = None) -> None:
        """Check a text; with two arguments, the first has the checks as comments. Graphs are checked as printed."""
        self._has_run = True
        given = [*texts, *(one for one in (checks_file, test_file) if one is not None)]
        if len(given) not in (1, 2):
            raise TypeError("run(): incompatible function arguments.\n  it takes a text, or the checks and a text")
        *checks, text = map(_as_text, given)
        for source in checks:
            for kind, wanted, count in _parsed(source):
                self._add(kind, wanted, count)
        if not self._checks:
            raise RuntimeError(f"No checks have been added to this instance ofFilecheck! {_BAD_INPUT}")
        end, absent = 0, []
        for kind, members in groupby(self._checks, lambda check: check.kind):
            group = list(members)
            if kind == "NOT":
                absent = group
                continue
            for alone in [group] if kind == "DAG" else [[check] for check in group]:
                first, last = _found(alone, text, end)
                for check in absent:
                    _refuse(check.text, check, text, end, first)
                end, absent = last, []
        for check in absent:
            _refuse(check.text, check, text, end, len(text))


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):  # what a subprocess has printed
        return value.decode()
    is_graph = type(value).__module__.partition(".")[0] == "cygrad"
    if not isinstance(value, str) and not is_graph:
        raise TypeError(f"run(): incompatible function arguments.\n  it takes a text or a graph, not {value!r}")
    return str(value)


def _parsed(source: str) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and count of the checks in comments."""
    for comment in _COMMENT.finditer(source):
        if comment[1] is None:
            continue
        found = _KIND.fullmatch(comment[1])
        if found is None:
            raise RuntimeError(f"Could not parse check at:\n{_shown(source, *comment.span())}{_BAD_INPUT}")
        kind, exactly, count, text = found.groups()
        yield kind or ("COUNT" if count else "CHECK"), text, int(count or 1)
        if exactly:
            yield "NOT", text, 1


def _found(group: list[_Check], text: str, begin: int) -> tuple[int, int]:
    """Return where the text of a check begins and ends, or those of several in any order."""
    check = group[0]
    if check.kind == "DAG":
        starts = [_place(one, text, begin) for one in group]
        return min(starts), max(start + len(one.text) for start, one in zip(starts, group, strict=True))
    if check.kind == "REGEX":
        match = re.compile(check.text).search(text, begin)
        if match is None:
            raise RuntimeError(f'Expected to find regex "{check.text}" but did not find it\n{_searched(check, text)}')
        return match.span()
    if check.kind == "COUNT":
        first = end = begin
        for i in range(check.times):
            start = _place(check, text, end)
            first, end = (start if i == 0 else first), start + len(check.text)
        return first, end
    if check.kind == "NEXT":
        begin = _place(check._replace(text="\n"), text, begin) + 1
    start = _place(check, text, begin)
    if check.kind in ("SAME", "NEXT"):
        _refuse("\n", check, text, begin, start)
    end = start + len(check.text)
    return start, _end_of_marks(check, text, start) if check.kind == "SOURCE-HIGHLIGHTED" else end


def _place(check: _Check, text: str, begin: int) -> int:
    start = text.find(check.text, begin)
    if start < 0:
        wanted = check.text.replace("\n", "\\n")
        raise RuntimeError(f'Expected to find "{wanted}" but did not find it\n{_searched(check, text)}')
    return start


def _end_of_marks(check: _Check, text: str, start: int) -> int:
    """Return where the marks below a text end, which must stand below it and nowhere else beside it."""
    column = start - text.rfind("\n", 0, start) - 1
    below = text.find("\n", start) + 1
    line = text[below:].partition("\n")[0] if below else ""
    width = len(check.text)
    if line[column : column + width] != "~" * width:
        raise RuntimeError(f'Expected to find "{check.text}"highlighted but it is not.\n{_searched(check, text)}')
    for beside in (column - 1, column + width):
        if 0 <= beside < len(line):
            _refuse("~", check, text, below + beside, below + beside + 1)
    return below + column + width


def _refuse(unwanted: str, check: _Check, text: str, begin: int, end: int) -> None:
    """Raise RuntimeError if a text occurs between two places."""
    start = text.find(unwanted, begin, end)
    if start >= 0:
        shown = unwanted.replace("\n", "\\n")
        where = text if unwanted == "\n" else _shown(text, start, start + len(unwanted))
        raise RuntimeError(f'Expected to not find "{shown}" but found it\n{where}From {check}\n')


def _searched(check: _Check, text: str) -> str:
    return f"Searched string:\n{text}{'' if text.endswith(chr(10)) else chr(10)}From {check}\n"


def _shown(text: str, start: int, end: int) -> str:
    """Return the lines around a place, which is marked."""
    lines = text.splitlines()
    number = text.count("\n", 0, start)
    column = start - text.rfind("\n", 0, start) - 1
    mark = f"{' ' * column}{'~' * max(1, min(end - start, len(lines[number]) - column))} <--- HERE"
    lines.insert(number + 1, mark)
    return "".join(f"{line}\n" for line in lines[max(0, number - _CONTEXT) : number + _CONTEXT + 2])
