"""docs/nn.md is up to date with tools/make_nn_page.py and PyTorch's names."""

import importlib
import json
import warnings

import pytest
from checkout import CHECKOUT

REMEDY = "run python tools/make_nn_page.py"


@pytest.fixture
def tool(monkeypatch):
    """tools/make_nn_page.py as a module."""
    monkeypatch.syspath_prepend(str(CHECKOUT / "tools"))
    return importlib.import_module("make_nn_page")


def test_page_is_up_to_date(tool):
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), REMEDY


def test_names_are_sorted_out(tool):
    present, lacking, outside = tool.sorted_out("torch.nn", ["Linear", "Nothing", "Container"])
    assert present == ["Linear"]
    assert lacking == ["Nothing"]
    assert outside == {"names for annotations and internal use": ["Container"]}


@pytest.mark.oracle
def test_names_are_those_of_pytorch(tool):
    torch = pytest.importorskip("torch")
    stored = json.loads(tool.NAMES.read_text(encoding="utf-8"))
    if not torch.__version__.startswith(stored["version"]):
        pytest.skip("another version of PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some modules of PyTorch warn when they are imported
        found, others = tool.read_names(), stored.pop("others")
    del found["others"]  # grows with each public name here, so that only what is claimed of PyTorch is compared
    assert found == stored, f"{REMEDY} --names"
    assert len(others) > 300
    modules = {path: tool.namespace_of(torch, path) for path in others}
    assert [(path, name) for path in others for name in others[path] if not hasattr(modules[path], name)] == []
