"""Prints how many of PyTorch's names cygrad lacks."""

import pytest
from checkout import imported

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def tool():
    """tools/missing_names.py as a module."""
    return imported("tools/missing_names.py")


def test_count_of_missing_names(tool, capsys):
    found = tool.missing()
    with capsys.disabled():
        print("\n" + tool.header(found))
    total, lacking, _ = found["torch"]
    assert 0 < total and set(lacking) <= set(dir(torch))
    assert "sin" not in lacking and len(lacking) < total / 2
