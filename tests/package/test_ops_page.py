"""docs/ops.md is up to date with tools/make_ops_page.py."""

import pytest
from checkout import CHECKOUT, imported


@pytest.fixture(scope="module")
def tool():
    """tools/make_ops_page.py as a module."""
    pytest.importorskip("scipy")  # needed by some ops
    return imported("tools/make_ops_page.py")


def test_page_is_up_to_date(tool):
    assert (CHECKOUT / "docs" / "ops.md").read_text(encoding="utf-8") == tool.page(), (
        "run python tools/make_ops_page.py"
    )


def test_marks_are_what_the_tests_try(tool):
    every = {base: names for family in tool.ops().values() for base, names in family.items()}
    any_order = tool.of_any_order()
    assert tool.marks(every["sin"], any_order) == ("✓", "✓", "✓", "✓", "✓", "✓", "✓", "✓", "")
    assert tool.marks(every["isnan"], any_order)[:3] == ("–", "–", "–")
    assert tool.marks(every["allclose"], any_order)[3] == "loop"
    assert tool.marks(every["nonzero"], any_order)[3] == "–"
    assert tool.marks(every["transpose"], any_order)[-1] == "✓"
    assert len(every) > 300


def test_an_op_is_of_any_order_only_if_all_behind_its_gradient_is(tool, monkeypatch):
    """The gradient of `sinh` is made of `cosh`: without samples for `cosh`, nothing of it is known."""
    monkeypatch.setattr(tool.calls, "DIFFERENTIABLE", [n for n in tool.calls.DIFFERENTIABLE if n != "cosh"])
    found = tool.of_any_order()
    assert "sin" in found
    assert "sinh" not in found


def test_names_are_pytorchs(tool):
    _, names = tool.pytorch()
    assert {"torch.add", "torch.Tensor.to", "torch.linalg.solve", "torch.signal.windows.hann"} <= names
    assert "torch.lorentzian" not in names
