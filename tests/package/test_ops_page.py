"""docs/ops.md is up to date with tools/make_ops_page.py."""

import importlib.util

import pytest
from conftest import CHECKOUT


@pytest.fixture(scope="module")
def tool():
    """tools/make_ops_page.py as a module."""
    pytest.importorskip("scipy")  # needed by some ops
    spec = importlib.util.spec_from_file_location("make_ops_page", CHECKOUT / "tools" / "make_ops_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date(tool):
    assert (CHECKOUT / "docs" / "ops.md").read_text(encoding="utf-8") == tool.page(), (
        "run python tools/make_ops_page.py"
    )


def test_marks_are_what_the_tests_try(tool):
    every = {base: names for family in tool.ops().values() for base, names in family.items()}
    assert tool.marks(every["sin"]) == ("✓", "✓", "✓", "✓", "✓", "✓", "")
    assert tool.marks(every["isnan"])[:3] == ("–", "–", "–")
    assert tool.marks(every["transpose"])[-1] == "✓"
    assert len(every) > 300
