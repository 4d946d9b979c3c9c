"""Indexed reads and writes: values against NumPy, gradients, history, error messages."""

import numpy as np
import pytest

import cygrad as torch
from helpers import fails, kind, leaf

SHAPE = (3, 4, 5)

BASIC = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    (0, slice(None), -1),
    slice(None),
    slice(1, None),
    slice(None, -1),
    slice(-2, None),
    slice(0, 3, 2),
    slice(5, 9),
    slice(2, 1),
    ...,
    (..., 0),
    (..., 0, slice(1, 3)),
    (0, ..., 1),
    None,
    (None, 0),
    (slice(None), None, 1),
    (..., None),
    (),
    (slice(None), slice(1, 4, 2), slice(None, None, 3)),
    (1, None, slice(0, 2), 2),
]

ADVANCED = [
    [0, 2],
    [2, 2, 0],
    [-1, -3],
    ([0, 1], [1, 2]),
    ([0, 1], [1, 2], [3, 4]),
    (slice(None), [0, 3]),
    (slice(None), [0, 3], [1, 1]),
    ([0, 1], slice(None), [1, 2]),
    (..., [4, 0]),
    (slice(0, 2), [1, 1], slice(1, 3)),
    ([0, 1], None),
    ([[0], [2]], [1, 3]),
    np.array([[0, 1], [2, 0]]),
    np.array([True, False, True]),
    (slice(None), np.array([True, False, True, False])),
    (np.array([True, False, True]), [1, 2]),
    np.zeros(3, dtype=bool),
    np.array([], dtype=np.int64),
]


def tensor_index(index):
    """The same index with tensors in place of lists and arrays."""
    if isinstance(index, tuple):
        return tuple(tensor_index(part) for part in index)
    return torch.tensor(index) if isinstance(index, list | np.ndarray) else index


def numbered(dtype=torch.float64):
    values = np.arange(60.0).reshape(SHAPE)
    return values, torch.tensor(values, dtype=dtype)


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_index_gives_what_numpy_gives_as_a_view(index):
    values, x = numbered()
    got = x[index]
    assert got.shape == values[index].shape
    assert got.tolist() == values[index].tolist()
    assert got._is_view() and got._base is x


@pytest.mark.parametrize("index", ADVANCED, ids=str)
def test_advanced_index_gives_what_numpy_gives_as_a_copy(index):
    values, x = numbered()
    for form in (index, tensor_index(index)):
        got = x[form]
        assert got.shape == values[index].shape
        assert got.tolist() == values[index].tolist()
        assert not got._is_view()


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_gradient_counts_how_often_an_element_was_read(index):
    _, x = numbered()
    x.requires_grad_()
    x[index].sum().backward()
    expected = np.zeros(SHAPE)
    np.add.at(expected, index, 1)
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_second_derivative_through_an_index(index):
    _, x = numbered()
    x.requires_grad_()
    picked = x[index]
    (first,) = torch.autograd.grad((picked * picked * picked).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    counts = np.zeros(SHAPE)
    np.add.at(counts, index, 1)
    assert second.tolist() == (6 * np.arange(60.0).reshape(SHAPE) * counts).tolist()


def test_mask_of_the_whole_shape():
    values, x = numbered()
    x.requires_grad_()
    got = x[x > 40]
    assert got.tolist() == values[values > 40].tolist()
    got.sum().backward()
    assert x.grad.tolist() == (values > 40).astype(float).tolist()


def test_zero_dim_tensor_as_index_selects():
    x = torch.ones(2, 3, requires_grad=True)
    assert x[torch.tensor(1)].shape == (3,)
    assert kind(x[torch.tensor(1)].grad_fn) == "SelectBackward0"
    assert x[np.int64(1), torch.tensor(2)].shape == ()


def test_tensors_as_bounds_of_a_slice():
    x = torch.tensor([0.0, 1.0, 2.0])
    assert x[torch.tensor(1) : torch.tensor(3)].tolist() == [1.0, 2.0]


def test_int_beside_a_separated_list_is_selected_first():
    x = torch.ones(2, 3, 4)
    assert x[0, None, :, [1, 2]].shape == (1, 3, 2)


def test_bools_add_a_dimension():
    x = torch.ones(2, 3)
    assert x[True].shape == (1, 2, 3)
    assert x[False].shape == (0, 2, 3)
    assert torch.tensor(1.0)[True].shape == (1,)


def test_index_of_a_zero_dim_tensor():
    x = torch.tensor(5.0)
    assert x[...].shape == () and x[()].shape == ()
    assert x[None].shape == (1,)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_index_tensors_of_integer_dtypes(dtype):
    x = torch.tensor([0.0, 1.0, 2.0])
    assert x[torch.tensor([0, 2], dtype=getattr(torch, dtype))].tolist() == [0.0, 2.0]


def test_integer_tensors_can_be_indexed_by_themselves():
    order = torch.tensor([2, 0, 1])
    assert order[order].tolist() == [1, 2, 0]
    assert order[order > 0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "SelectBackward0"),
        ((0, 1), "SelectBackward0"),
        (slice(0, 1), "SliceBackward0"),
        (slice(None), "SliceBackward0"),
        (None, "UnsqueezeBackward0"),
        (..., "AliasBackward0"),
        ([0], "IndexBackward0"),
        ((slice(0, 1), [0, 1]), "IndexBackward0"),
    ],
)
def test_grad_fn_of_an_index(index, name):
    assert torch.ones(2, 3, requires_grad=True)[index].grad_fn.name() == name


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_writing_a_number(index):
    values, x = numbered()
    values[index] = -1.0
    x[index] = -1.0
    assert x.tolist() == values.tolist()
    assert x._version == 1


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_writing_a_tensor_and_its_gradients(index):
    values, x = numbered()
    x.requires_grad_()
    value = torch.full(values[index].shape[-1:], 7.0, dtype=torch.float64, requires_grad=True)
    y = x * 1
    y[index] = value
    written = values.copy()
    written[index] = 7.0
    assert y.tolist() == written.tolist()
    y.sum().backward()
    touched = np.zeros(SHAPE)
    touched[index] = 1.0
    assert x.grad.tolist() == (1 - touched).tolist()
    if len(np.unique(np.arange(60).reshape(SHAPE)[index])) == values[index].size:
        assert float(value.grad.sum()) == touched.sum()


def test_writing_broadcasts_and_drops_leading_ones():
    x = torch.zeros(2, 3)
    x[0] = torch.tensor([[1.0, 2.0, 3.0]])
    x[:, 0] = torch.tensor([9.0])
    x[1, 1] = torch.tensor([[5.0]])
    assert x.tolist() == [[9.0, 2.0, 3.0], [9.0, 5.0, 0.0]]


def test_writing_through_a_mask():
    x = torch.tensor([1.0, -1.0, 2.0, -2.0])
    x[x < 0] = 0.0
    assert x.tolist() == [1.0, 0.0, 2.0, 0.0]
    x[x > 0] = torch.tensor([8.0, 9.0])
    assert x.tolist() == [8.0, 0.0, 9.0, 0.0]


def test_writing_converts_to_the_dtype_of_the_tensor():
    whole = torch.tensor([1, 2, 3])
    whole[0] = 2.7
    whole[1] = torch.tensor(3.9)
    whole[2] = True
    assert whole.tolist() == [2, 3, 1]
    x = torch.zeros(2)
    x[0] = torch.tensor(3)
    assert x.tolist() == [3.0, 0.0]


def test_augmented_assignment_to_an_index():
    x = torch.ones(3)
    x[0] += 5
    x[1:] *= 3
    x[[0, 0]] += 1
    assert x.tolist() == [7.0, 3.0, 3.0]


def test_augmented_assignment_differentiates():
    x, w = leaf(1.0, 2.0, 3.0), leaf(10.0)
    y = x * 1
    y[1:] *= w
    y[0] += w[0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]
    assert w.grad.tolist() == [6.0]


def test_writing_through_lists_is_an_index_put():
    x, value = leaf(1.0, 2.0, 3.0), leaf(8.0, 9.0)
    y = x * 1
    y[[0, 2]] = value * 1
    assert y.grad_fn.name() == "IndexPutBackward0"
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 0.0]
    assert value.grad.tolist() == [16.0, 18.0]


def test_writing_a_row_of_a_view():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    row = y[0]
    row[1] = 7.0
    assert y.tolist() == [[1.0, 7.0, 1.0], [1.0, 1.0, 1.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]]


def test_writing_one_element_of_an_expanded_tensor_reaches_all_its_copies():
    x = torch.ones(2, 1).expand(2, 3)
    x[0, 0] = 5.0
    assert x.tolist() == [[5.0] * 3, [1.0] * 3]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("index", "error", "line"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 7), IndexError, "index 7 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        ([5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (([0, 1], [5, 0]), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        (
            ([0, 1], [0, 1, 2]),
            IndexError,
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
        ),
        (
            np.array([True, False, True]),
            IndexError,
            "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
        ),
        (
            (slice(None), np.array([True, False])),
            IndexError,
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [2, 3] at index 1",
        ),
        (
            np.array([1.0]),
            IndexError,
            "tensors used as indices must be long, int, byte or bool tensors",
        ),
        (
            1.0,
            IndexError,
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices (got float)",
        ),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (
            slice(0, 1.5),
            TypeError,
            "slice indices must be integers or None or have an __index__ method",
        ),
    ],
    ids=str,
)
def test_bad_index(index, error, line):
    x = torch.ones(2, 3)
    with fails(error, line):
        x[tensor_index(index)]
    with pytest.raises(error):
        x[tensor_index(index)] = 5.0
    assert x.tolist() == [[1.0] * 3] * 2


def test_index_into_a_zero_dim_tensor():
    with fails(
        IndexError,
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
        "C++ to convert a 0-dim tensor to a number",
    ):
        torch.tensor(1.0)[0]


@pytest.mark.parametrize(
    ("index", "value", "error", "line"),
    [
        (0, "text", TypeError, "can't assign a str to a torch.FloatTensor"),
        (0, [1, 2], TypeError, "can't assign a list to a torch.FloatTensor"),
        (0, None, TypeError, "can't assign a NoneType to a torch.FloatTensor"),
        (
            slice(0, 2),
            "ones 3",
            RuntimeError,
            "The expanded size of the tensor (2) must match the existing size (3) at non-singleton "
            "dimension 0.  Target sizes: [2].  Tensor sizes: [3]",
        ),
        (
            0,
            "ones 2",
            RuntimeError,
            "expand(torch.FloatTensor{[2]}, size=[]): the number of sizes provided (0) must be "
            "greater or equal to the number of dimensions in the tensor (1)",
        ),
        (
            [0, 1],
            "ones 3",
            RuntimeError,
            "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
        ),
    ],
)
def test_bad_value(index, value, error, line):
    x = torch.zeros(3)
    if isinstance(value, str) and value.startswith("ones"):
        value = torch.ones(int(value[-1]))
    with fails(error, line):
        x[index] = value
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_items_cannot_be_deleted():
    x = torch.ones(3)
    with fails(TypeError, "Tensor does not support deleting items"):
        del x[0]


def test_select_method():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert x.select(1, -1).tolist() == [2.0, 4.0]
    x.select(0, 1).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    with fails(
        IndexError,
        "select(): index 5 out of range for tensor of size [2, 2] at dimension 0",
    ):
        x.select(0, 5)
