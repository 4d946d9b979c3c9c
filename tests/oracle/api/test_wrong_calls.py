"""Wrong arguments of the autograd namespace give PyTorch's exceptions and first lines."""

import re

import pytest
from core.diagnostics.wrong_calls import CALLS, arguments, outcome, wrong_values

import cygrad

torch = pytest.importorskip("torch", reason="compares with PyTorch (tox -e oracle)")
pytest.importorskip("torch.utils.checkpoint")

# Messages of operations that fail inside PyTorch because it does not validate the argument; cygrad may check it first.
STUMBLES = re.compile(
    r"has no attribute '(numel|new_empty)'|unsupported operand type|can't multiply sequence|new_zeros\(\) takes|"
    r"tensor_split\(\) received|cannot convert dictionary|support the context manager|tensors must have at least one|"
    r"can be converted to an index|with device cpu|range of \[-1, 0\], but got 1"
)
BOOLEANS = ("yes", "no", "flag")  # PyTorch reads -1 as an unsigned byte and rejects it
RESULTS = {
    ("func.linearize(f, x)[1](v)", "f", "gives None"): "PyTorch linearizes a function without results",
    ("func.jacfwd(f, argnums)(x)", "argnums", "None"): "PyTorch takes None for a tree of places",
}
GRADCHECK = "autograd.gradcheck(f, double, raise_exception=yes)"  # `raise_exception` is only read after a failure


def is_same(call, name, what):
    found, expected = outcome(cygrad, call, name, what), outcome(torch, call, name, what)
    if isinstance(expected, tuple):
        expected, found = map(without_trees, (expected, found))
    if found == expected:
        return True
    if (call, name, what) in RESULTS or (name in BOOLEANS and what == "-1" and expected[0] == "OverflowError"):
        return True
    if call == GRADCHECK and name == "yes":
        return found == "bool"
    return isinstance(found, tuple) and isinstance(expected, tuple) and bool(STUMBLES.search(expected[1]))


def without_trees(answer):
    """Remove printed tree structures, whose format differs."""
    if not isinstance(answer, tuple):
        return answer
    return answer[0], re.split(
        r" with structure | in_dims has structure | out_dims has structure |the tangents ", answer[1]
    )[0]


@pytest.mark.parametrize("call", CALLS)
def test_same_as_pytorch(call):
    wrong = [
        f"{name}={what}" for name in arguments(call) for what in wrong_values(torch) if not is_same(call, name, what)
    ]
    assert not wrong
