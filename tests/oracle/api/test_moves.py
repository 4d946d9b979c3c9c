"""Views, joining, copies, indexed reads and writes: each expression gives PyTorch's result.

The expressions are in `tables/`, one per line. All visible properties of tensors (including strides, offset, base and
version), the errors, and the warnings are compared.
"""

from pathlib import Path

import pytest
from oracle.answers import check, lines

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.usefixtures("every_warning")]

TABLES = {path.stem: lines(path.read_text()) for path in sorted(Path(__file__).parent.glob("tables/*.txt"))}


def names(library):
    """The names available to the expressions."""
    x = library.arange(6.0).reshape(2, 3).clone()
    v = library.arange(3.0)
    c = library.arange(24.0).reshape(2, 3, 4).clone()
    g = x.clone().requires_grad_()
    gv = v.clone().requires_grad_()
    return {
        "x": x,
        "v": v,
        "c": c,
        "s": library.tensor(2.5),
        "e": library.zeros(0, 3),
        "one": library.zeros(1, 3, 1),
        "q": library.arange(16.0).reshape(1, 2, 2, 4).clone(),
        "f": library.arange(3, dtype=library.float64),
        "i": library.tensor([2, 0, 1]),
        "b": library.tensor([True, False, True]),
        "m": library.tensor([[True, False, True], [False, True, True]]),
        "z": library.tensor([1 + 2j, 3 - 1j]),
        "tr": c.transpose(0, 2),
        "ex": v.expand(2, 3),
        "st": c[:, ::2, 1:],
        "g": g,
        "h": g * 2,
        "hv": gv * 1,
        "hs": library.tensor(2.5, requires_grad=True) * 1,
    }


@pytest.mark.parametrize("expression", [line for table in TABLES.values() for line in table])
def test_expression(expression):
    check(expression, names, shared=True)


def test_tables_are_found():
    assert len(TABLES) > 5
