"""Checks of conditions, and symbolic numbers."""

import math

import numpy as np
import pytest

import cygrad as torch

UNEXPLAINED = "Expected cond to be True, but got False"


def test_assert():
    torch._assert(True, "no")
    torch._assert(torch.tensor(1), "no")
    with pytest.raises(AssertionError, match="^why$"):
        torch._assert(torch.tensor(0), "why")
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        torch._assert(torch.ones(2), "no")


def test_assert_async():
    torch._assert_async(torch.tensor(2))
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
        torch._assert_async(torch.tensor(0.0))
    with pytest.raises(RuntimeError, match="^why$"):
        torch._assert_async(torch.tensor(False), "why")
    with pytest.raises(TypeError, match=r"_assert_async\(\): argument 'input' \(position 1\) must be Tensor, not bool"):
        torch._assert_async(True)


CHECKS = {
    torch._check: RuntimeError,
    torch._check_index: IndexError,
    torch._check_value: ValueError,
    torch._check_type: TypeError,
    torch._check_not_implemented: NotImplementedError,
}


@pytest.mark.parametrize("check", CHECKS)
def test_check(check):
    check(True)
    check(True, lambda: pytest.fail("a message is made although the condition holds"))
    with pytest.raises(CHECKS[check], match=UNEXPLAINED) as caught:
        check(False)
    assert type(caught.value) is CHECKS[check]
    with pytest.raises(CHECKS[check], match="^7$"):
        check(False, lambda: 7)
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        check(1)
    with pytest.raises(TypeError, match="cond must be a bool, but got a Tensor"):
        check(torch.tensor(True))
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "text")


def test_check_with():
    torch._check_with(KeyError, True, None)
    with pytest.raises(KeyError, match="why"):
        torch._check_with(KeyError, False, lambda: "why")
    with pytest.raises(AssertionError, match="error_type must be a subclass of Exception but not Warning"):
        torch._check_with(UserWarning, False, None)


def test_check_of_tensors():
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match=UNEXPLAINED):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(ValueError, match="^why$"):
        torch._check_tensor_all_with(ValueError, torch.tensor([False]), lambda: "why")
    with pytest.raises(TypeError, match="cond tensor must have dtype torch.bool, but got torch.int64"):
        torch._check_tensor_all(torch.tensor([1]))
    with pytest.raises(TypeError, match="cond must be a tensor, but got <class 'bool'>"):
        torch._check_tensor_all(True)


@pytest.mark.filterwarnings("ignore:_check_is_size:FutureWarning")
def test_check_is_size():
    torch._check_is_size(0)
    torch._check_is_size(3, max=3)
    for size, limits in ((-1, {}), (4, {"max": 3})):
        with pytest.raises(RuntimeError, match=UNEXPLAINED):
            torch._check_is_size(size, **limits)


def test_check_is_size_is_deprecated():
    with pytest.warns(FutureWarning, match="_check_is_size will be removed"):
        torch._check_is_size(1)


def test_functions_of_plain_numbers():
    assert [torch.sym_int(x) for x in (3.7, -3.7, True, "3", torch.tensor(2.5))] == [3, -3, 1, 3, 2]
    assert [torch.sym_float(x) for x in (3, "2.5", torch.tensor(2))] == [3.0, 2.5, 2.0]
    assert [torch.sym_not(x) for x in (True, 0, 3)] == [False, True, False]
    for found, expected in [
        (torch.sym_max(1, 2), 2),
        (torch.sym_max(3, 2.5), 3.0),
        (torch.sym_min(1, 2.5), 1.0),
        (torch.sym_min(np.float64(1), 2), 1.0),
        (torch.sym_sum([1, 2.5]), 3.5),
        (torch.sym_sum(1, 2), 3),
        (torch.sym_sum([]), 0),
        (torch.sym_ite(True, 1, 2), 1),
        (torch.sym_ite(False, "a", "b"), "b"),
        (torch.sym_fresh_size(3), 3),
    ]:
        assert found == expected and type(found) is type(expected)
    for name in "acos asin atan cos cosh log2 sin sinh sqrt tan tanh".split():
        function = getattr(torch, f"_sym_{name}")
        assert function(0.5) == getattr(math, name)(0.5) and function.__name__ == f"_sym_{name}"
    assert torch.sym_sqrt(4) == 2


def test_wrong_kinds():
    with pytest.raises(AssertionError, match="expected .*, got <class 'str'>"):
        torch.sym_max("a", 2)
    with pytest.raises(AssertionError, match="expected SymBool or bool, got <class 'int'>"):
        torch.sym_ite(1, 1, 2)
    with pytest.raises(AssertionError, match="type mismatch: <class 'int'> vs <class 'float'>"):
        torch.sym_ite(True, 1, 2.0)


def test_ranges():
    torch.sym_constrain_range(3, min=1, max=5)
    torch.sym_constrain_range(-3)
    torch.sym_constrain_range_for_size(0)
    for call, text in [
        (lambda: torch.sym_constrain_range(3, min=4), r"Invalid value range for 3 between \[4, 9223372036854775807\]."),
        (
            lambda: torch.sym_constrain_range(3, min=5, max=2),
            "Max must be greater than or equal to min. Got min=5",
        ),
        (lambda: torch.sym_constrain_range_for_size(-1), r"Invalid value range for -1 between \[0, "),
        (lambda: torch.sym_constrain_range_for_size(3, max=2), "Max value to constrain_range_for_size must be greater"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()


class Node:
    """A number that counts the operations that it took."""

    def __init__(self, value, steps=0):
        self.value, self.steps = value, steps

    def is_int(self):
        return type(self.value) is int

    def is_bool(self):
        return type(self.value) is bool

    def is_float(self):
        return type(self.value) is float

    def wrap_int(self, value):
        return Node(value)

    def _of(self, value, other):
        return Node(value, self.steps + getattr(other, "steps", 0) + 1)

    def add(self, other):
        return self._of(self.value + getattr(other, "value", other), other)

    def sub(self, other):
        return self._of(self.value - getattr(other, "value", other), other)

    def gt(self, other):
        return self._of(self.value > getattr(other, "value", other), other)

    def sym_not(self):
        return self._of(not self.value, None)

    def int_(self):
        return self.value

    def bool_(self):
        return self.value

    def guard_float(self, file, line):
        return self.value

    def _graph_repr(self):
        return f"s{self.value}"


def test_symbolic_numbers_of_a_program():
    size = torch.SymInt(Node(3))
    more = 10 - (size + 1)
    assert type(more) is torch.SymInt and int(more) == 6 and more.node.steps == 2 and repr(more) == "s6"
    assert list(range(9))[size] == 3
    larger = size > 2
    assert type(larger) is torch.SymBool and bool(larger) is True
    assert type(torch.sym_not(larger)) is torch.SymBool and not torch.sym_not(larger)
    assert torch.sym_int(size) is size
    torch._check(larger)
    assert torch.sym_ite(larger, 1, 2) == 1
    assert float(torch.SymFloat(Node(2.5))) == 2.5
    assert not isinstance(torch.ones(2).shape[0], torch.SymInt)
