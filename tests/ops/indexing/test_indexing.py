"""Indexed reads and writes in plain code. test_index_gradients.py covers all forms of `x[...]` and their gradients;
this file covers the functions, and the consistency between reads and writes.
"""

import pytest

import cygrad as torch
from helpers import fails, leaf

pytestmark = pytest.mark.usefixtures("by_default")


def numbered(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).clone()


# Indices, and the elements of a numbered 3 x 4 tensor that they select.
INDICES = {
    "int": (1, [4, 5, 6, 7]),
    "negative int": (-1, [8, 9, 10, 11]),
    "slice": (slice(0, 2), [[0, 1, 2, 3], [4, 5, 6, 7]]),
    "step": ((slice(None), slice(None, None, 3)), [[0, 3], [4, 7], [8, 11]]),
    "empty slice": (slice(2, 1), []),
    "dots": ((..., 0), [0, 4, 8]),
    "None": ((None, 0), [[0, 1, 2, 3]]),
    "list": ([0, 2], [[0, 1, 2, 3], [8, 9, 10, 11]]),
    "lists": (([0, 2], [1, -1]), [1, 11]),
    "lists that broadcast": (([[0], [2]], [1, 3]), [[1, 3], [9, 11]]),
    "int and list": ((1, [0, 0]), [4, 4]),
    "list and slice": (([2, 0], slice(1, 3)), [[9, 10], [1, 2]]),
    "slice and list": ((slice(1, 3), [3, 0]), [[7, 4], [11, 8]]),
    "tensor": (torch.tensor([1, 1]), [[4, 5, 6, 7], [4, 5, 6, 7]]),
    "tensor of two dimensions": ((0, torch.tensor([[0, 1], [2, 3]])), [[0, 1], [2, 3]]),
    "mask of rows": (torch.tensor([True, False, True]), [[0, 1, 2, 3], [8, 9, 10, 11]]),
    "mask and int": ((torch.tensor([True, False, True]), 1), [1, 9]),
    "True": (True, [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]]),
    "False": (False, []),
    "empty list": ([], []),
}


@pytest.mark.parametrize(("index", "elements"), INDICES.values(), ids=INDICES)
def test_what_is_read_is_what_is_written(index, elements):
    x = numbered(3, 4)
    assert x[index].tolist() == elements
    flat = set(x[index].flatten().tolist())
    x[index] = -1.0
    assert x.flatten().tolist() == [-1 if number in flat else number for number in range(12)]
    assert x._version == (0 if index is False else 1)  # an index of False writes nothing


@pytest.mark.parametrize(("index", "elements"), INDICES.values(), ids=INDICES)
def test_reading_back_what_was_written(index, elements):
    x = numbered(3, 4)
    values = x[index] * 10 + 1
    x[index] = values
    assert x[index].tolist() == values.tolist()


@pytest.mark.parametrize(("index", "elements"), INDICES.values(), ids=INDICES)
def test_gradients_of_reads_and_writes(index, elements):
    x = numbered(3, 4).requires_grad_()
    x[index].sum().backward()
    expected = torch.zeros(3, 4)
    for number in x.detach()[index].flatten().tolist():
        expected.view(12)[int(number)] += 1
    assert x.grad.tolist() == expected.tolist()
    y = x * 1
    y[index] = 0.0
    x.grad = None
    y.sum().backward()  # overwritten elements get no gradient
    assert x.grad.tolist() == (expected == 0).float().tolist()


def test_gather_picks_one_element_of_each_line():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = torch.gather(x, 1, torch.tensor([[0, 0], [1, 0]]))
    assert y.tolist() == [[1, 1], [4, 3]]
    y.sum().backward()
    assert x.grad.tolist() == [[2, 0], [1, 1]]
    assert x.gather(0, torch.tensor([[1, 0]])).tolist() == [[3, 2]]


def test_index_select_takes_whole_lines():
    x = numbered(2, 3).requires_grad_()
    y = x.index_select(1, torch.tensor([2, 2, 0]))
    assert y.tolist() == [[2, 2, 0], [5, 5, 3]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 0, 2], [1, 0, 2]]
    assert not y._is_view()


def test_index_put_writes_and_adds():
    x = torch.zeros(4)
    where = (torch.tensor([1, 1, 3]),)
    values = torch.tensor([1.0, 2.0, 5.0])
    assert x.index_put_(where, values, accumulate=True) is x
    assert x.tolist() == [0, 3, 0, 5]
    assert torch.ones(4).index_put(where, torch.tensor(0.0)).tolist() == [1, 0, 1, 0]
    w = leaf(1.0, 2.0, 3.0)
    torch.zeros(4).index_put(where, w, accumulate=True)[1].backward()
    assert w.grad.tolist() == [1, 1, 0]


def test_index_add_and_masked_fill():
    x = leaf(1.0, 2.0, 3.0)
    added = leaf(10.0, 20.0)
    y = x.index_add(0, torch.tensor([0, 0]), added, alpha=2)
    assert y.tolist() == [61, 2, 3]
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert added.grad.tolist() == [2, 2]
    x.grad = None
    z = x.masked_fill(torch.tensor([True, False, True]), -1.0)
    assert z.tolist() == [-1, 2, -1]
    z.sum().backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_where_and_nonzero():
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    assert torch.nonzero(x).tolist() == [[0, 1], [1, 0]]
    rows, columns = torch.where(x > 0)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    assert x[rows, columns].tolist() == [2, 3]
    assert torch.where(x > 0, x, -1.0).tolist() == [[-1, 2], [3, -1]]


def test_indices_are_not_changed_and_hold_until_backward():
    x = leaf(1.0, 2.0)
    index = torch.tensor([1, 0])
    y = x[index]
    index.fill_(0)
    with fails(RuntimeError, "one of the variables needed for gradient computation has been modified..."):
        y.sum().backward()


ERRORS = {
    "int": (lambda x: x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    "negative int": (lambda x: x[-4], IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "list": (lambda x: x[[0, 3]], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    "lists that do not broadcast": (
        lambda x: x[[0, 1], [0, 1, 2]],
        IndexError,
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    "mask": (
        lambda x: x[torch.tensor([True, False])],
        IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0",
    ),
    "real numbers": (
        lambda x: x[torch.tensor([0.5])],
        IndexError,
        "tensors used as indices must be long, int, byte or bool tensors",
    ),
    "step": (lambda x: x[::-1], ValueError, "step must be greater than zero"),
    "gather": (
        lambda x: x.gather(0, torch.tensor([[5]])),
        RuntimeError,
        "index 5 is out of bounds for dimension 0 with size 3",
    ),
    "gather with real numbers": (
        lambda x: x.gather(0, torch.tensor([[1.0]])),
        RuntimeError,
        "gather(): Expected dtype int32/int64 for index",
    ),
    "index_select": (
        lambda x: x.index_select(0, torch.tensor([3])),
        IndexError,
        "index out of range in self",
    ),
    "index_select along dimension 1": (
        lambda x: torch.ones(2, 3).index_select(1, torch.tensor([0, 7])),
        RuntimeError,
        "INDICES element is out of DATA bounds, id=7 axis_dim=3",
    ),
    "index_select of nothing": (
        lambda x: torch.ones(0, 3).index_select(1, torch.tensor([0, -1])),
        RuntimeError,
        "INDICES element is out of DATA bounds, id=-1 axis_dim=3",
    ),
    "index_select with a matrix": (
        lambda x: x.index_select(0, torch.tensor([[0]])),
        IndexError,
        "index_select(): Index is supposed to be a vector",
    ),
    "masked_fill": (
        lambda x: x.masked_fill_(torch.tensor([1, 0, 1, 1]), 0),
        RuntimeError,
        "masked_fill_ only supports boolean masks, but got mask with dtype long int",
    ),
    "write": (
        lambda x: x.__setitem__(0, torch.ones(3)),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0.  Target "
        "sizes: [4].  Tensor sizes: [3]",
    ),
    "write by list": (
        lambda x: x.__setitem__([0, 1], torch.ones(3, 4)),
        RuntimeError,
        "shape mismatch: value tensor of shape [3, 4] cannot be broadcast to indexing result of shape [2, 4]",
    ),
    "write out of range": (
        lambda x: x.__setitem__([0, 7], 1.0),
        IndexError,
        "index 7 is out of bounds for dimension 0 with size 3",
    ),
    "write what is no number": (
        lambda x: x.__setitem__(0, "a"),
        TypeError,
        "can't assign a str to a torch.FloatTensor",
    ),
}


@pytest.mark.parametrize(("call", "error", "line"), ERRORS.values(), ids=ERRORS)
def test_errors(call, error, line):
    x = numbered(3, 4)
    with fails(error, line):
        call(x)
    assert x.tolist() == numbered(3, 4).tolist()
    assert x._version == 0


def test_a_mask_that_is_overwritten_while_it_is_read():
    mask = torch.tensor([True, False, True, True])
    with fails(RuntimeError, "unsupported operation: some elements of the input tensor and the written-to tensor ..."):
        mask[1:].masked_fill_(mask[:-1], False)
    assert mask.tolist() == [True, False, True, True]
    assert mask.masked_fill_(mask, False).tolist() == [False] * 4


@pytest.mark.parametrize("make", [float, torch.tensor])
def test_filling_expanded_memory_by_index_warns(make):
    x, value = torch.zeros(1).expand(3), make(2.0)
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors"):
        x.index_fill_(0, torch.tensor([1]), value)
    assert x.tolist() == [2.0] * 3
    base = torch.zeros(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        (base * 1).expand(3).index_fill_(0, torch.tensor([1]), value)
