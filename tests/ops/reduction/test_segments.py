"""Reductions of segments."""

import numpy as np
import pytest

import cygrad as torch

DATA = np.array([1.0, 2, 3, 4, 5])
LENGTHS = torch.tensor([2, 0, 3])
REDUCE = {
    "sum": (np.sum, 0.0),
    "mean": (np.mean, np.nan),
    "max": (np.max, -np.inf),
    "min": (np.min, np.inf),
    "prod": (np.prod, 1.0),
}


def data(**options):
    return torch.tensor(DATA, **options)


@pytest.mark.parametrize("kind", REDUCE)
def test_segments(kind):
    reduce, empty = REDUCE[kind]
    expected = [reduce(DATA[:2]), empty, reduce(DATA[2:])]
    for found in (
        torch.segment_reduce(data(), kind, lengths=LENGTHS),
        torch._segment_reduce(data(), kind, lengths=LENGTHS.int()),
        torch.segment_reduce(data(), kind, offsets=torch.tensor([0, 2, 2, 5])),
    ):
        np.testing.assert_array_equal(found.numpy(), expected)
        assert found.dtype is torch.float64


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", [4.5, 1.5, 13.5]),
        ("mean", [2.25, 1.5, 4.5]),
        ("max", [2.0, 1.5, 5.0]),
        ("min", [1.0, 1.5, 1.5]),
        ("prod", [3.0, 1.5, 90.0]),
    ],
)
def test_initial(kind, expected):
    assert torch.segment_reduce(data(), kind, lengths=LENGTHS, initial=1.5).tolist() == expected


def test_axes():
    table = torch.arange(12.0).reshape(2, 6)
    found = torch.segment_reduce(table, "sum", lengths=torch.tensor([[2, 4], [3, 3]]), axis=1)
    assert found.tolist() == [[1, 14], [21, 30]]
    found = torch.segment_reduce(table, "max", lengths=torch.tensor([0, 2]))
    assert found.tolist() == [[-np.inf] * 6, table[1].tolist()]
    cube = torch.arange(24.0).reshape(2, 3, 4)
    found = torch.segment_reduce(cube, "sum", lengths=torch.tensor([[1, 2], [3, 0]]), axis=1)
    assert found.tolist() == [[cube[0, 0].tolist(), cube[0, 1:].sum(0).tolist()], [cube[1].sum(0).tolist(), [0.0] * 4]]


def test_unsafe_and_short_offsets():
    assert torch.segment_reduce(data(), "sum", lengths=torch.tensor([2, 1]), unsafe=True).tolist() == [3, 3]
    assert torch.segment_reduce(data(), "sum", offsets=torch.tensor([1, 2, 4])).tolist() == [2, 7]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", [1, 1, 1, 1, 1]),
        ("mean", [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]),
        ("max", [0.5, 0.5, 0, 1, 0]),
        ("min", [0.5, 0.5, 0, 0, 1]),
        ("prod", [3, 3, 0, 0, 12]),
    ],
)
def test_gradients(kind, expected):
    x = torch.tensor([3.0, 3, 3, 4, 0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.segment_reduce(x, kind, lengths=LENGTHS).sum(), x)
    np.testing.assert_allclose(gradient.numpy(), expected)
    smooth = torch.tensor([0.5, 1.5, 2.5, 3.5, 4.5], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([2, 3])
    assert torch.autograd.gradcheck(lambda x: torch.segment_reduce(x, kind, lengths=lengths), smooth)
    assert torch.autograd.gradgradcheck(lambda x: torch.segment_reduce(x, kind, lengths=lengths), smooth)


@pytest.mark.parametrize(
    ("kind", "options", "error", "text"),
    [
        ("sum", {}, RuntimeError, "Either lengths or offsets must be defined"),
        (
            "foo",
            {"lengths": LENGTHS},
            RuntimeError,
            "reduce argument must be either sum, prod, mean, amax or amin, got foo",
        ),
        ("sum", {"lengths": torch.tensor([2, 2])}, RuntimeError, "Expected all rows of lengths along axis to sum"),
        ("sum", {"lengths": torch.tensor([2, -1, 4])}, RuntimeError, "lengths contains negative value!"),
        ("sum", {"lengths": torch.tensor([2.0, 3.0])}, NotImplementedError, "not implemented for 'Float'"),
        ("sum", {"indices": LENGTHS}, RuntimeError, "indices based reduction is not supported yet."),
        ("sum", {"lengths": torch.tensor([[5]])}, RuntimeError, "Expected axis to be the last dimension of lengths"),
        ("sum", {"lengths": torch.tensor([4, 4]), "unsafe": True}, RuntimeError, "to describe segments of 5 elements"),
        ("sum", {"offsets": torch.tensor([0, 3, 2])}, RuntimeError, "to describe segments of 5 elements"),
        ("sum", {"lengths": LENGTHS, "axis": 1}, IndexError, "Dimension out of range"),
    ],
)
def test_wrong_arguments(kind, options, error, text):
    with pytest.raises(error, match=text):
        torch.segment_reduce(data(), kind, **options)


def test_integers_have_no_kernel():
    with pytest.raises(NotImplementedError, match="\"_segment_reduce_cpu\" not implemented for 'Long'"):
        torch.segment_reduce(torch.tensor([1, 2]), "sum", lengths=torch.tensor([2]))


@pytest.mark.parametrize(
    ("kind", "initial", "expected"),
    [
        ("max", None, [1, 1, 0, 0, 0.5, 0.5, 1]),
        ("max", 5.0, [0, 1, 0, 0, 0.5, 0.5, 0]),  # what it starts with takes no share
        ("min", None, [1, 1, 0, 1, 0, 0, 1]),
        ("prod", None, [1, 3, np.nan, 25, 20, 20, 1]),
        ("prod", 2.0, [2, 6, np.nan, 50, 40, 40, 2]),
    ],
)
def test_gradients_beside_nan_are_those_of_pytorch(kind, initial, expected):
    x = torch.tensor([1, np.nan, 3, 4, 5, 5, 2], dtype=torch.float64, requires_grad=True)
    torch.segment_reduce(x, kind, lengths=torch.tensor([1, 2, 3, 0, 1]), initial=initial).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("kind", ["max", "prod"])
def test_gradients_of_a_transposed_table(kind):
    table = torch.arange(1.0, 7).reshape(2, 3).requires_grad_()
    torch.segment_reduce(table.T, kind, lengths=torch.tensor([1, 2])).sum().backward()
    assert table.grad.tolist() == {"max": [[1, 0, 1], [1, 0, 1]], "prod": [[1, 3, 2], [1, 6, 5]]}[kind]
