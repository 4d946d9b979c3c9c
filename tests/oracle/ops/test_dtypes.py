"""Dtypes of results and numeric limits against PyTorch: all pairs of dtypes, and all kinds of operands."""

import itertools
import operator

import pytest

import cygrad
from helpers import class_of, first_line

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

try:
    import ml_dtypes  # noqa: F401

    HALVES = ["float16", "bfloat16"]
except ImportError:
    HALVES = ["float16"]
UNSIGNED = ["uint16", "uint32", "uint64"]
NAMES = "bool uint8 int8 int16 int32 int64 float32 float64 complex64 complex128".split() + HALVES
KINDS = {"tensor": lambda t, d: t.ones(2, dtype=d), "0-dim": lambda t, d: t.ones((), dtype=d)}
NUMBERS = [True, 2, 2.5, 1j]


def attempt(function, *args):
    """A result's dtype as text, or the error."""
    try:
        result = function(*args)
    except Exception as error:
        return class_of(error), first_line(error)
    # half-precision complex: NumPy has none, and cygrad returns its next larger dtype
    return str(getattr(result, "dtype", result)).replace("complex32", "complex64")


@pytest.mark.parametrize("a", NAMES + UNSIGNED)
def test_pairs_of_types(a):
    for b in NAMES + UNSIGNED:
        for name in ("promote_types", "can_cast"):
            found, expected = (
                attempt(getattr(library, name), getattr(library, a), getattr(library, b)) for library in (cygrad, torch)
            )
            assert found == expected, (name, a, b)


def operands(library, name):
    kind = getattr(library, name)
    return [make(library, kind) for make in KINDS.values()]


@pytest.mark.parametrize("default", ["float32", "float64", "float16"])
@pytest.mark.parametrize("a", NAMES + UNSIGNED)
def test_kinds_of_operands(a, default):
    try:
        for library in (cygrad, torch):
            library.set_default_dtype(getattr(library, default))
        for i, b in itertools.product(range(2), NAMES + UNSIGNED):
            for k in range(2):
                found, expected = (
                    attempt(library.result_type, operands(library, a)[i], operands(library, b)[k])
                    for library in (cygrad, torch)
                )
                assert found == expected, (a, i, b, k)
            for number in NUMBERS:
                for swap in (False, True):
                    pair = [(operands(library, a)[i], number)[:: -1 if swap else 1] for library in (cygrad, torch)]
                    found, expected = attempt(cygrad.result_type, *pair[0]), attempt(torch.result_type, *pair[1])
                    assert found == expected, (a, i, number)
    finally:
        cygrad.set_default_dtype(cygrad.float32)
        torch.set_default_dtype(torch.float32)


OPERATORS = [operator.add, operator.mul, operator.truediv, operator.pow, operator.eq, operator.floordiv]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("a", NAMES)
def test_operators(a, function):
    ours, theirs = operands(cygrad, a), operands(torch, a)
    for i in range(2):
        for b in NAMES:
            others = zip(operands(cygrad, b), operands(torch, b))
            for k, (our, their) in enumerate(others):
                found, expected = attempt(function, ours[i], our), attempt(function, theirs[i], their)
                # PyTorch supports few ops for half-precision complex
                assert found == expected or "ComplexHalf" in str(expected), (a, i, b, k)
        for number in NUMBERS:
            for swap in (False, True):
                found = attempt(function, *(ours[i], number)[:: -1 if swap else 1])
                expected = attempt(function, *(theirs[i], number)[:: -1 if swap else 1])
                assert found == expected or "ComplexHalf" in str(expected), (a, i, number, swap)


@pytest.mark.parametrize("name", NAMES + UNSIGNED + ["bfloat16"])
def test_attributes_and_limits(name):
    ours, theirs = getattr(cygrad, name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert repr(ours) == repr(theirs)
    assert attempt(ours.to_complex) == attempt(theirs.to_complex)
    assert attempt(ours.to_real) == attempt(theirs.to_real)
    for info in ("finfo", "iinfo"):
        found, expected = (attempt(getattr(library, info), d) for library, d in ((cygrad, ours), (torch, theirs)))
        assert found == expected
        if isinstance(found, str):
            a, b = getattr(cygrad, info)(ours), getattr(torch, info)(theirs)
            for attribute in ("bits", "max", "min", "eps", "tiny", "smallest_normal", "resolution", "dtype"):
                assert getattr(a, attribute, None) == pytest.approx(getattr(b, attribute, None)), attribute
            assert repr(a) == repr(b)
