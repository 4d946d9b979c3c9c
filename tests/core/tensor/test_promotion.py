"""The dtypes of results for all dtypes, numbers of dims and Python numbers, against a table recorded from PyTorch.

`promotion.json` holds, for each op and each kind of operands, one row per left dtype, with one letter (NumPy's) for the
dtype of each result and `-` where PyTorch raises an error. It is the result of `table` for PyTorch; the `oracle` test
keeps it up to date. `C` marks results of PyTorch's 32-bit complex dtype: NumPy lacks it, and cygrad returns its next
larger one, complex64, or raises an error, as PyTorch does for many ops with that dtype.
"""

import json
import operator
from pathlib import Path

import pytest

import cygrad

TABLE = Path(__file__).with_name("promotion.json")

LETTERS = {
    "bool": "?",
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "l",
    "float16": "e",
    "bfloat16": "G",
    "float32": "f",
    "float64": "d",
    "complex32": "C",
    "complex64": "F",
    "complex128": "D",
}
DTYPES = [name for name in LETTERS if name != "complex32"]
try:
    import ml_dtypes  # noqa: F401

    ABSENT: tuple[str, ...] = ()
except ImportError:
    ABSENT = ("bfloat16",)
NUMBERS = [True, 2, 2.5, 1 + 2j]

BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "lt": operator.lt,
    "iadd": operator.iadd,
    "imul": operator.imul,
    "idiv": operator.itruediv,
}
TENSORS_ONLY = {
    "maximum": lambda torch, a, b: torch.maximum(a, b),
    "where": lambda torch, a, b: torch.where(torch.tensor([True]), a, b),
    "cat": lambda torch, a, b: torch.cat([a.reshape(1), b.reshape(1)]),
    "stack": lambda torch, a, b: torch.stack([a.reshape(1), b.reshape(1)]),
    "promote_types": lambda torch, a, b: torch.promote_types(a.dtype, b.dtype),
    "copy_": lambda torch, a, b: a.copy_(b),
}
UNARY = {
    "neg": operator.neg,
    "abs": operator.abs,
    "exp": lambda x: x.exp(),
    "sqrt": lambda x: x.sqrt(),
    "sin": lambda x: x.sin(),
    "sigmoid": lambda x: x.sigmoid(),
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(),
    "sum along": lambda x: x.sum(0),
    "prod": lambda x: x.prod(),
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(),
    "norm": lambda x: x.norm(),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "softmax": lambda x: x.softmax(0),
    "float": lambda x: x.float(),
    "double": lambda x: x.double(),
    "clamp": lambda x: x.clamp(0, 1.5),
}


def letter(function, *args):
    """The letter of the result's dtype, or `-` for an error."""
    try:
        result = function(*args)
    except (RuntimeError, TypeError, NotImplementedError):
        return "-"
    name = str(getattr(result, "dtype", result)).removeprefix("torch.")
    return LETTERS[name]


def pair_letter(torch, function, a, b):
    """The letter of the result for two operands, or `C` where they promote to 32-bit complex."""
    found = letter(function, a, b)
    if found != "-" or not hasattr(torch, "complex32"):
        return found
    return "C" if letter(torch.result_type, a, b) == "C" else found


def operands(torch, kind):
    """Functions that create one operand each: 1-dim, 0-dim, or a Python number."""
    if kind == "number":
        return [lambda number=number: number for number in NUMBERS]
    shape = (1,) if kind == "dim" else ()
    names = [name for name in DTYPES if torch is not cygrad or name not in ABSENT]
    return [lambda name=name: torch.ones(shape, dtype=getattr(torch, name)) for name in names]


KINDS = [
    (left, right)
    for left in ("dim", "0-dim", "number")
    for right in ("dim", "0-dim", "number")
    if (left, right) != ("number", "number")
]


def rows(torch, function, left, right):
    return [
        "".join(pair_letter(torch, function, a(), b()) for b in operands(torch, right)) for a in operands(torch, left)
    ]


def binary_table(torch, op, left, right):
    return rows(torch, BINARY[op], left, right)


def tensors_table(torch, op, left, right):
    return rows(torch, lambda a, b: TENSORS_ONLY[op](torch, a, b), left, right)


def unary_table(torch, op):
    return ["".join(letter(UNARY[op], make()) for make in operands(torch, "dim"))]


def cases():
    """Map each part of the table to the function and arguments that compute it."""
    found = {}
    for op in BINARY:
        for left, right in KINDS:
            if not (op.startswith("i") and left == "number"):
                found[f"{op}: {left}, {right}"] = (binary_table, op, left, right)
    for op in TENSORS_ONLY:
        for left, right in KINDS:
            if "number" not in (left, right):
                found[f"{op}: {left}, {right}"] = (tensors_table, op, left, right)
    for op in UNARY:
        found[op] = (unary_table, op)
    return found


def table(torch):
    """Compute the whole table with `torch`."""
    return {name: function(torch, *args) for name, (function, *args) in cases().items()}


@pytest.fixture(scope="module")
def stored():
    return json.loads(TABLE.read_text())


def known(lines):
    """The rows and columns of dtypes that are available here."""
    missing = [DTYPES.index(name) for name in ABSENT]
    return [
        "".join(one for i, one in enumerate(line) if len(line) != len(DTYPES) or i not in missing)
        for k, line in enumerate(lines)
        if len(lines) != len(DTYPES) or k not in missing
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases())
def test_dtypes_of_results(name, stored):
    function, *args = cases()[name]
    for found, expected in zip(function(cygrad, *args), known(stored[name]), strict=True):
        allowed = [{"C": "CF-"}.get(one, one) for one in expected]
        wrong = [(a, b) for a, b in zip(found, allowed, strict=True) if a not in b]
        assert not wrong, f"{found} is not {expected}"


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_stored_table_is_what_pytorch_computes(stored):
    import torch

    assert table(torch) == stored


def test_default_dtype_decides_what_numbers_become():
    whole = cygrad.tensor([1, 2])
    assert (whole * 2.5).dtype is cygrad.float32
    cygrad.set_default_dtype(cygrad.float64)
    try:
        assert (whole * 2.5).dtype is cygrad.float64
        assert (whole / 2).dtype is cygrad.float64
        assert cygrad.tensor(1.5).dtype is cygrad.float64
    finally:
        cygrad.set_default_dtype(cygrad.float32)


def test_numbers_never_widen_a_tensor():
    half = cygrad.ones(2, dtype=cygrad.float16)
    assert (half * 1e-3).dtype is cygrad.float16
    assert (half + 100000).dtype is cygrad.float16
    assert (1 / half).dtype is cygrad.float16


def test_gradients_come_back_in_the_dtype_of_each_operand():
    a = cygrad.ones(2, dtype=cygrad.float16, requires_grad=True)
    b = cygrad.ones(2, dtype=cygrad.float64, requires_grad=True)
    c = cygrad.tensor(3.0, requires_grad=True)
    (a * b * c).sum().backward()
    assert (a.grad.dtype, b.grad.dtype, c.grad.dtype) == (
        cygrad.float16,
        cygrad.float64,
        cygrad.float32,
    )
    assert c.grad.shape == ()
