"""Bits and kinds of the core are defined in a .pxd file only; Python modules import them by name."""

import ast
import re
from pathlib import Path

from cygrad._core.graph import internals
from cygrad._core.runtime import thread_state

SOURCES = Path(__file__).resolve().parents[2] / "cygrad"


def defined(path, prefix=""):
    """The numbers in the enums of a .pxd file."""
    found = re.findall(r"^    ([A-Z][A-Z_0-9]*) = (\d+)", (SOURCES / "_core" / path).read_text("utf-8"), re.MULTILINE)
    return {name: int(number) for name, number in found if name.startswith(prefix)}


STATE = defined("runtime/thread_state.pxd")
CUTS = defined("graph/tensor.pxd", "CUT_")
NAMES = {*STATE, *CUTS, *defined("graph/opdef.pxd"), *defined("graph/observers.pxd")} - {"FORWARD"}


def test_exported_numbers_are_those_of_the_definitions():
    assert len(STATE) > 6 and len(CUTS) > 6
    assert all(getattr(thread_state, name) == number for name, number in STATE.items() if name != "FORWARD")
    assert all(getattr(internals, name) == number for name, number in CUTS.items())


def test_no_module_repeats_a_number():
    repeated = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign):
                names = {
                    name.id.lstrip("_")
                    for target in node.targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name)
                }
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                is_number = any(isinstance(value, ast.Constant) and isinstance(value.value, int) for value in values)
                if is_number and names & NAMES:
                    repeated.append(f"{path.relative_to(SOURCES)}:{node.lineno}: {ast.unparse(node)}")
    assert not repeated


def test_no_module_tests_a_bit_by_its_number():
    line = re.compile(r"get_(modes|watch)\(\) *[&|] *\d")
    assert not [path for path in SOURCES.rglob("*.py") if line.search(path.read_text("utf-8"))]
