"""In a notebook, errors call a cell what the notebook calls it, not by the temporary file that it is compiled from."""

import sys
from types import SimpleNamespace

import pytest

import cygrad

CELL = "w = cygrad.ones(1, requires_grad=True)\ny = (w * w).sum()\ny.backward()\ny.backward()\n"


def shell(cells):
    """What `IPython.get_ipython()` returns, as far as it matters here."""

    def format_code_name(name):
        return ("Cell", f"In[{cells[name]}]") if name in cells else None

    return SimpleNamespace(compile=SimpleNamespace(format_code_name=format_code_name))


def error_of_cell():
    with pytest.raises(RuntimeError) as caught:
        exec(compile(CELL, "/tmp/ipykernel_1/2.py", "exec"), {"cygrad": cygrad})
    return str(caught.value)


def test_a_cell_has_its_number(monkeypatch):
    ipython = SimpleNamespace(get_ipython=lambda: shell({"/tmp/ipykernel_1/2.py": 7}))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    error = error_of_cell()
    assert "freed by backward at Cell In[7]:3" in error
    assert "recorded at Cell In[7]:2" in error


@pytest.mark.parametrize("running", [shell({}), SimpleNamespace(), None], ids=["other file", "other shell", "no shell"])
def test_anything_else_has_its_file(monkeypatch, running):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: running))
    assert "freed by backward at /tmp/ipykernel_1/2.py:3" in error_of_cell()
