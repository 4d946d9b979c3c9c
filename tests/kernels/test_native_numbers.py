"""The numbers by which Python calls the loops of `native.h` are those of its list."""

import importlib
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "cygrad" / "_kernels"
LISTED = re.search(r"enum \{([^}]*LOOPS)\s*\}", (SOURCES / "native.h").read_text("utf-8"))[1]
NAMES = re.findall(r"\w+", LISTED)
LINE = re.compile(r"^([A-Z_]+(?:, [A-Z_]+)*) = .*as in native\.h", re.MULTILINE)
USERS = {path.stem: found for path in sorted(SOURCES.glob("*.py")) if (found := LINE.findall(path.read_text("utf-8")))}


def test_the_list_is_found():
    assert len(NAMES) == len(set(NAMES)) > 40 and len(USERS) > 15


@pytest.mark.parametrize("module", USERS)
def test_numbers_are_those_of_the_list(module):
    numbers = importlib.import_module(f"cygrad._kernels.{module}")
    for name in ", ".join(USERS[module]).split(", "):
        if name != "WITH_PANELS":  # the first of several
            listed = NAMES[getattr(numbers, name)]
            assert listed == name or listed.endswith("_" + name)
