"""The numbers by which Python calls the loops of `loop_table.h` match its list."""

import importlib
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "cygrad" / "_kernels"
LISTED = re.search(r"enum \{([^}]*LOOPS)\s*\}", (SOURCES / "include" / "base" / "loop_table.h").read_text("utf-8"))[1]
NAMES = re.findall(r"\w+", LISTED)
LINE = re.compile(r"^([A-Z_]+(?:, [A-Z_]+)*) = .*as in loop_table\.h", re.MULTILINE)
USERS = {path: found for path in sorted(SOURCES.rglob("*.py")) if (found := LINE.findall(path.read_text("utf-8")))}


def test_the_list_is_found():
    assert len(NAMES) == len(set(NAMES)) > 40 and len(USERS) > 15


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.stem)
def test_numbers_are_those_of_the_list(path):
    numbers = importlib.import_module(".".join(path.relative_to(SOURCES.parents[1]).with_suffix("").parts))
    for name in ", ".join(USERS[path]).split(", "):
        if name != "WITH_PANELS":  # the first of several
            listed = NAMES[getattr(numbers, name)]
            assert listed == name or listed.endswith("_" + name)
