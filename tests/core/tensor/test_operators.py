"""Arithmetic, logic and comparisons with Python operators."""

import operator

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, leaf

OPERATORS = {
    "+": (operator.add, 7.0, 3.0),
    "-": (operator.sub, 7.0, 3.0),
    "*": (operator.mul, 7.0, 3.0),
    "/": (operator.truediv, 7.0, 3.0),
    "//": (operator.floordiv, 7.0, 3.0),
    "%": (operator.mod, 7.0, 3.0),
    "**": (operator.pow, 7.0, 3.0),
}


@pytest.mark.parametrize("sign", OPERATORS)
def test_arithmetic_in_all_combinations(sign):
    op, left, right = OPERATORS[sign]
    expected = op(left, right)
    a = torch.tensor(left, dtype=torch.float64)
    b = torch.tensor(right, dtype=torch.float64)
    for got in (op(a, b), op(a, right), op(left, b), op(a, int(right)), op(int(left), b)):
        assert got.item() == pytest.approx(expected)
        assert got.dtype is torch.float64


@pytest.mark.parametrize("sign", ["-7//2", "-7%3", "7//-2", "7%-3", "-7//-2"])
def test_floor_division_and_remainder_follow_python(sign):
    left, right = (int(part) for part in sign.replace("//", " ").replace("%", " ").split())
    op = operator.floordiv if "//" in sign else operator.mod
    for make in (torch.tensor, lambda v: torch.tensor(float(v))):
        assert op(make(left), make(right)).item() == op(left, right)


def test_in_place_operators():
    x = y = torch.tensor([8.0])
    x += 2
    x -= 1
    x *= 4
    x /= 2
    x **= 2
    assert x is y
    assert x.tolist() == [324.0]


def test_in_place_operators_on_integers():
    x = y = torch.tensor([7])
    x //= 2
    x %= 2
    assert x is y and x.tolist() == [1]
    with fails(RuntimeError, "result type Float can't be cast to the desired output type Long"):
        x /= 2


def test_unary_operators():
    x = torch.tensor([1.0, -2.0])
    assert (-x).tolist() == [-1.0, 2.0]
    assert abs(x).tolist() == [1.0, 2.0]
    assert (+x).tolist() == [1.0, -2.0]


def test_logic_on_bools_and_integers():
    a, b = torch.tensor([True, False]), torch.tensor([True, True])
    assert (~a).tolist() == [False, True]
    assert (a & b).tolist() == [True, False]
    assert (a | b).tolist() == [True, True]
    assert (a ^ b).tolist() == [False, True]
    assert (torch.tensor([6]) & 3).tolist() == [2]
    assert (~torch.tensor([5])).tolist() == [-6]


COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.__name__)
def test_comparisons(op):
    values = [1.0, 2.0, 3.0]
    x = torch.tensor(values, requires_grad=True)
    for got in (op(x, 2), op(x, torch.tensor(2.0)), op(x, torch.tensor([2, 2, 2]))):
        assert got.tolist() == [op(value, 2) for value in values]
        assert got.dtype is torch.bool
        assert not got.requires_grad and got.is_leaf
    assert op(2, x).tolist() == [op(2, value) for value in values]


def test_comparison_with_something_else():
    x = torch.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015
    with fails(TypeError, "can only concatenate list (not ..."):
        [1] + x


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.matmul])
def test_operators_hand_over_to_the_other_operand(op):
    class Other:
        def __radd__(self, left):
            return "reflected"

        __rmul__ = __rtruediv__ = __rmatmul__ = __radd__

    assert op(torch.ones(2), Other()) == "reflected"


def test_sequences_are_repeated_by_a_tensor():
    assert [0] * torch.tensor(2) == [0, 0]
    assert torch.tensor(2) * "ab" == "abab"


@pytest.mark.parametrize("dtype", [">f4", ">i2"])
def test_arrays_of_the_other_byte_order_as_operands(dtype):
    array = np.array([1, 2], dtype)
    assert (torch.ones(2) + array).tolist() == [2.0, 3.0]
    assert (array * torch.ones(2)).tolist() == [1.0, 2.0]


def test_negative_powers_of_integers():
    x = torch.tensor([2, 1, -1, -1, 0])
    assert (x ** torch.tensor([-1, -2, -3, -4, -1])).tolist() == [0, 1, -1, 1, 0]
    assert (2 ** torch.tensor([-1, 3])).tolist() == [0, 8]
    x **= torch.tensor(-1)
    assert x.tolist() == [0, 1, -1, -1, 0]


def test_numbers_too_large_for_a_float_become_infinite():
    assert (torch.ones(1) * 1e300).tolist() == [float("inf")]
    assert (torch.tensor([1]) + 1e300).tolist() == [float("inf")]
    half = torch.tensor([1.0, 2.0], dtype=torch.float16)
    assert torch.where(half > 1, half, -1e9).tolist() == [-float("inf"), 2.0]
    half[0] = 1e9
    assert half.tolist() == [float("inf"), 2.0]


def test_numpy_scalars_are_assigned():
    x = torch.zeros(4)
    x[0], x[1:2], x[[2]] = np.int64(3), np.float32(2.5), np.int8(-1)
    assert x.tolist() == [3.0, 2.5, -1.0, 0.0]


def test_numpy_scalars_as_operands():
    x = leaf(1.0)
    for got in (x * np.float64(2), np.float32(2) * x, x + np.int64(1)):
        assert got.tolist() == [2.0]
        assert got.dtype is torch.float32
        assert got.requires_grad


def test_matmul_operator_needs_tensors():
    with pytest.raises(TypeError):
        2 @ torch.ones(2)
    with pytest.raises(TypeError):
        torch.ones(2) @ 2
