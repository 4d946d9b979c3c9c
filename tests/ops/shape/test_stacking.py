"""Joining tensors: shapes, dtypes, memory, gradients, and the error messages for invalid calls."""

import itertools

import pytest

import cygrad as torch
from helpers import fails, leaf


def test_cat_along_each_dimension():
    a, b = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]])
    assert torch.cat([a, b]).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert torch.cat([a, b], 1).tolist() == [[1, 2, 5, 6], [3, 4, 7, 8]]
    assert torch.cat([a, b], dim=-1).tolist() == torch.cat((a, b), axis=1).tolist()
    assert torch.concat([a, b]).tolist() == torch.concatenate([a, b]).tolist() == torch.cat([a, b]).tolist()


def test_stack_makes_a_dimension():
    a, b = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])
    assert torch.stack([a, b]).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert torch.stack([a, b], 1).tolist() == torch.stack([a, b], -1).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert torch.stack([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1, 2]


def test_results_have_memory_of_their_own():
    a = torch.zeros(2)
    for joined in (torch.cat([a]), torch.cat([a, a]), torch.stack([a])):
        assert not joined._is_view()
        assert joined.is_contiguous()
        joined.fill_(7)
    assert a.tolist() == [0, 0]


def test_types_are_promoted():
    whole, real = torch.tensor([1, 2]), torch.tensor([0.5])
    assert torch.cat([whole, real]).dtype is torch.float32
    assert torch.cat([torch.tensor([True]), whole]).tolist() == [1, 1, 2]
    assert torch.cat([real, real.double()]).dtype is torch.float64
    assert torch.stack([whole[0], real[0]]).dtype is torch.float32
    assert torch.cat([whole, torch.tensor([1j])]).dtype is torch.complex64


def test_an_empty_tensor_of_one_dimension_fits_all():
    a = torch.ones(2, 3)
    assert torch.cat([torch.tensor([]), a]).shape == (2, 3)
    assert torch.cat([a, torch.zeros(0, 3)]).shape == (2, 3)
    assert torch.cat([torch.zeros(0), torch.zeros(0)]).shape == (0,)
    assert torch.stack([torch.zeros(0), torch.zeros(0)]).shape == (2, 0)


def test_gradients_are_the_parts():
    x, y = leaf(1.0, 2.0), leaf(3.0)
    joined = torch.cat([x, y, x])
    assert joined.grad_fn.name() == "CatBackward0"
    assert len(joined.grad_fn.next_functions) == 3
    joined.backward(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert x.grad.tolist() == [5, 7]
    assert y.grad.tolist() == [3]
    x.grad = None
    stacked = torch.stack([x, torch.ones(2)])
    assert stacked.grad_fn.name() == "StackBackward0"
    assert stacked.grad_fn.next_functions[1][0] is None
    stacked.backward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.grad.tolist() == [1, 2]


def test_gradients_come_in_the_type_of_each_operand():
    x, y = leaf(1.0), leaf(2.0, dtype=torch.float64)
    torch.cat([x, y]).sum().backward()
    assert x.grad.dtype is torch.float32
    assert y.grad.dtype is torch.float64


def test_out():
    out = torch.empty(0)
    assert torch.cat([torch.ones(2), torch.zeros(1)], out=out) is out
    assert out.tolist() == [1, 1, 0]
    with fails(
        RuntimeError,
        "cat(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.",
    ):
        torch.cat([leaf(1.0), leaf(2.0)], out=out)
    assert out.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    "call", [lambda x, out: torch.cat([x, x], out=out), lambda x, out: torch.add(x, x.double(), out=out)]
)
def test_refused_out_keeps_its_shape(call):
    out = torch.empty(0)
    with fails(RuntimeError, "...functions with out=... arguments don't support automatic differentiation..."):
        call(leaf(1.0), out)
    assert out.shape == (0,)
    assert out._version == 0


def test_joining_what_lies_backwards_and_apart():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.cat([x.t(), x.t()], 1).tolist() == [[0, 3, 0, 3], [1, 4, 1, 4], [2, 5, 2, 5]]
    assert torch.stack([x[:, 0], x[:, 2]]).tolist() == [[0, 3], [2, 5]]
    assert torch.cat([x[:1].expand(2, 3), x[:, :1]], 1).tolist() == [[0, 1, 2, 0], [0, 1, 2, 3]]


def test_splitting_undoes_joining():
    parts = [torch.arange(float(n)) for n in (2, 1, 3)]
    again = torch.cat(parts).split([2, 1, 3])
    assert [part.tolist() for part in again] == [part.tolist() for part in parts]
    assert [part.tolist() for part in torch.stack(parts[:1] * 3).unbind()] == [[0, 1]] * 3


A, B = (2, 3), (2, 4)
ERRORS = {
    "cat of nothing": (lambda: torch.cat([]), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    "stack of nothing": (lambda: torch.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
    "cat of other lengths": (
        lambda: torch.cat([torch.ones(A), torch.ones(B)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the "
        "list.",
    ),
    "cat of other dimensions": (
        lambda: torch.cat([torch.ones(A), torch.ones(2)]),
        RuntimeError,
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    "cat of numbers": (
        lambda: torch.cat([torch.tensor(1), torch.tensor(2)]),
        RuntimeError,
        "zero-dimensional tensor (at position 0) cannot be concatenated",
    ),
    "cat along what is not there": (
        lambda: torch.cat([torch.ones(A)], 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "stack of other shapes": (
        lambda: torch.stack([torch.ones(A), torch.ones(B)]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [2, 4] at entry 1",
    ),
    "stack along what is not there": (
        lambda: torch.stack([torch.ones(A)], 3),
        IndexError,
        "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
    ),
    "cat of a tensor": (
        lambda: torch.cat(torch.ones(A)),
        TypeError,
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    ),
    "cat of other things": (
        lambda: torch.cat([torch.ones(1), 2]),
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
    ),
}


@pytest.mark.parametrize(("call", "error", "line"), ERRORS.values(), ids=ERRORS)
def test_errors(call, error, line):
    with fails(error, line):
        call()


@pytest.mark.parametrize(
    "length, r, with_replacement",
    [(10**4, 5, False), (10**6, 5 * 10**5, False), (10**6, 10**6 - 1, False), (3, 2**40, True)],
)
def test_more_combinations_than_memory_can_hold(length, r, with_replacement):
    """The call is rejected before any work is done."""
    with pytest.raises(MemoryError):
        torch.combinations(torch.arange(length), r, with_replacement)


@pytest.mark.parametrize("with_replacement", [False, True])
def test_combinations_of_any_number(with_replacement):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    for length, r in itertools.product(range(6), range(1, 6)):
        found = torch.combinations(torch.arange(length), r, with_replacement)
        assert found.shape[1] == r and found.tolist() == [list(c) for c in choose(range(length), r)]


def test_cat_of_skipped_tensors_alone_takes_any_dimension():
    empty = torch.empty(0)
    assert torch.cat([empty, empty], dim=5).shape == torch.cat([empty], dim=1).shape == (0,)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.cat([torch.empty(0, 3), torch.empty(0, 3)], dim=2)
