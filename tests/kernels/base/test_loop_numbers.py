"""Loops are numbered only in `loop_numbers.h`; Python modules get the numbers, and sizes shared with C, by name."""

import ast
import re
from pathlib import Path

import pytest

from cygrad._kernels.cpu.base.loop_table import LOOP_SIZES, LOOPS, has_loop
from cygrad._kernels.cpu.random.draw import DRAWS

SOURCES = Path(__file__).resolve().parents[3] / "cygrad" / "_kernels"
NAMES = re.findall(
    r"^    LOOP\((\w+),", (SOURCES / "include" / "base" / "loop_numbers.h").read_text("utf-8"), re.MULTILINE
)
SHARED = set(NAMES) | set(vars(DRAWS))
CALLED_BY_CYTHON = {"FUSED", "CROSS_ENTROPY", "CROSS_ENTROPY_GRADIENT"}
SIZES_IN = {  # the names of sizes and numbers in the modules that shorten them
    "cpu/nn/recurrent.py": "INPUTS WITH_PANELS",
    "cpu/nn/attention.py": "QUERIES",
    "cpu/nn/distances.py": "PULLED_TOGETHER",
    "cpu/image/patch_convolution.py": "DEPTH RESULTS IMAGES SUMS",
    "cpu/image/winograd_convolution.py": "POINTS TAIL FILTERS RESULTS SUMS",
    "cpu/image/resampling.py": "FEW",
    "cpu/image/grid_sampling.py": "MOST_POINTS",
    "cpu/loss/ctc.py": "ROOM",
    "cpu/indexing/axis_ops.py": "TOGETHER",
    "cpu/reduction/sorting.py": "MOST_FIRSTS",
}


def numbered(path):
    """The names that a module binds to an integer or a range."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            names = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            constants = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            if constants and not isinstance(node.value, (ast.Dict, ast.Set, ast.List)):
                found.update(name.lstrip("_") for name in names)
    return found


def test_names_are_those_of_the_list():
    assert vars(LOOPS) == {name: number for number, name in enumerate(NAMES)}
    assert len(NAMES) == len(set(NAMES)) > 40
    assert has_loop(LOOPS.GATHER)


def test_unknown_name():
    with pytest.raises(AttributeError, match="GATHERS"):
        _ = LOOPS.GATHERS


@pytest.mark.parametrize("path", sorted((SOURCES / "cpu").rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_repeats_a_number(path):
    sizes = SIZES_IN.get(path.relative_to(SOURCES).as_posix(), "").split()
    assert not numbered(path) & (SHARED | set(sizes))
    assert not re.search(r"loop_table\.(run|along|has_loop)\(\d", path.read_text("utf-8"))


def test_no_compiled_module_repeats_a_number():
    line = re.compile(rf"^\s*({'|'.join(NAMES)})\s*=\s*\d", re.MULTILINE)
    compiled = [path for kind in ("*.pyx", "*.pxd", "*.h") for path in SOURCES.rglob(kind)]
    assert not [path for path in compiled if line.search(path.read_text("utf-8"))]


def test_every_size_is_used():
    used = " ".join(path.read_text("utf-8") for path in (SOURCES / "cpu").rglob("*.py"))
    assert all(f"LOOP_SIZES.{name}" in used for name in vars(LOOP_SIZES))
    assert all(f"LOOPS.{name}" in used for name in NAMES if name not in CALLED_BY_CYTHON)
