"""Each folder of the three private layers has a README.md, and the files and functions that it names exist."""

import re
from operator import attrgetter

import pytest
from checkout import CHECKOUT

import cygrad

LAYERS = [CHECKOUT / "cygrad" / layer for layer in ("_core", "_ops", "_kernels")]
OF_SOURCES = {path.parent for layer in LAYERS for path in layer.rglob("*") if path.suffix in {".py", ".pyx", ".h"}}
FOLDERS = sorted({*LAYERS, *OF_SOURCES, *(each.parent for each in OF_SOURCES if each not in LAYERS)})
NAME = re.compile(r"`([^`]+)`")


def place(path):
    return path.relative_to(CHECKOUT).as_posix()


@pytest.mark.parametrize("folder", [*FOLDERS, CHECKOUT / "tests"], ids=place)
def test_readme(folder):
    readme = folder / "README.md"
    assert readme.exists(), f"{place(folder)} needs a README.md: what belongs here, what does not, who calls it"
    text = readme.read_text(encoding="utf-8")
    assert 5 <= text.count("\n") <= 20
    for name in NAME.findall(text):
        is_file = any((root / name).exists() for root in (folder, CHECKOUT / "cygrad", CHECKOUT))
        assert is_file or is_public(name), f"{place(readme)} names {name}, which does not exist"


def is_public(name):
    """Whether this is a function or class of the package."""
    try:
        return callable(attrgetter(name)(cygrad))
    except AttributeError:
        return False
