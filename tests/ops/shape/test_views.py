"""Views: memory sharing, shapes and strides, and the error messages for invalid calls.

Histories of views and in-place changes are the subject of tests/core/graph/test_views.py.
"""

import pytest

import cygrad as torch
from helpers import fails

pytestmark = pytest.mark.usefixtures("by_default")


def numbered(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).clone()


# Each view: how it is created from a 2 x 3 x 4 tensor with numbered elements, its shape, strides and offset.
VIEWS = {
    "view": (lambda x: x.view(6, 4), (6, 4), (4, 1), 0),
    "view with a length to be found": (lambda x: x.view(-1, 2), (12, 2), (2, 1), 0),
    "view_as": (lambda x: x.view_as(torch.zeros(4, 6)), (4, 6), (6, 1), 0),
    "reshape": (lambda x: x.reshape(24), (24,), (1,), 0),
    "flatten": (lambda x: x.flatten(1), (2, 12), (12, 1), 0),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), (2, 3, 2, 2), (12, 4, 2, 1), 0),
    "transpose": (lambda x: x.transpose(0, 2), (4, 3, 2), (1, 4, 12), 0),
    "swapaxes": (lambda x: x.swapaxes(0, 1), (3, 2, 4), (4, 12, 1), 0),
    "permute": (lambda x: x.permute(2, 0, 1), (4, 2, 3), (1, 12, 4), 0),
    "movedim": (lambda x: x.movedim(0, -1), (3, 4, 2), (4, 1, 12), 0),
    "mT": (lambda x: x.mT, (2, 4, 3), (12, 1, 4), 0),
    "unsqueeze": (lambda x: x.unsqueeze(-1), (2, 3, 4, 1), (12, 4, 1, 1), 0),
    "squeeze": (lambda x: x[:1].squeeze(), (3, 4), (4, 1), 0),
    "squeeze of a dimension that is longer": (lambda x: x.squeeze(1), (2, 3, 4), (12, 4, 1), 0),
    "expand": (lambda x: x[:1].expand(5, 3, 4), (5, 3, 4), (0, 4, 1), 0),
    "expand in front": (lambda x: x.expand(2, -1, -1, -1), (2, 2, 3, 4), (0, 12, 4, 1), 0),
    "broadcast_to": (lambda x: torch.broadcast_to(x[0, 0], (3, 4)), (3, 4), (0, 1), 0),
    "select": (lambda x: x.select(1, 2), (2, 4), (12, 1), 8),
    "select from the end": (lambda x: x.select(-1, -1), (2, 3), (12, 4), 3),
    "narrow": (lambda x: x.narrow(2, 1, 2), (2, 3, 2), (12, 4, 1), 1),
    "index": (lambda x: x[1, 2], (4,), (1,), 20),
    "slice with a step": (lambda x: x[:, ::2, 1::2], (2, 2, 2), (12, 8, 2), 1),
    "slice beyond the end": (lambda x: x[1:100], (1, 3, 4), (12, 4, 1), 12),
    "None and dots": (lambda x: x[None, ..., 0], (1, 2, 3), (24, 12, 4), 0),
    "split": (lambda x: x.split(2, 1)[1], (2, 1, 4), (12, 4, 1), 8),
    "split by lengths": (lambda x: x.split([1, 3], 2)[1], (2, 3, 3), (12, 4, 1), 1),
    "chunk": (lambda x: x.chunk(2, 2)[1], (2, 3, 2), (12, 4, 1), 2),
    "unbind": (lambda x: x.unbind(1)[1], (2, 4), (12, 1), 4),
    "iteration": (lambda x: list(x)[1], (3, 4), (4, 1), 12),
    "as_strided": (lambda x: x.as_strided((3, 3), (1, 2), 4), (3, 3), (1, 2), 4),
    "diagonal": (lambda x: x[0].diagonal(), (3,), (5,), 0),
    "unfold": (lambda x: x.unfold(2, 2, 1), (2, 3, 3, 2), (12, 4, 1, 1), 0),
    "alias by dots": (lambda x: x[...], (2, 3, 4), (12, 4, 1), 0),
}


@pytest.mark.parametrize(("take", "shape", "strides", "offset"), VIEWS.values(), ids=VIEWS)
def test_shape_strides_and_memory(take, shape, strides, offset):
    x = numbered(2, 3, 4)
    v = take(x)
    assert (tuple(v.shape), v.stride(), v.storage_offset()) == (shape, strides, offset)
    assert v._is_view()
    assert v._base is x
    assert v.data_ptr() == x.data_ptr() + 4 * offset
    with torch.no_grad():
        x.neg_()
    assert v.flatten()[0].item() == -offset  # because the elements are numbered
    assert v._version == x._version == 1


@pytest.mark.parametrize(("take", "shape", "strides", "offset"), VIEWS.values(), ids=VIEWS)
def test_gradient_goes_to_the_elements_that_are_seen(take, shape, strides, offset):
    x = numbered(2, 3, 4).requires_grad_()
    take(x).sum().backward()
    seen = [0.0] * 24
    for number in take(numbered(2, 3, 4)).flatten().tolist():
        seen[int(number)] += 1
    assert x.grad.flatten().tolist() == seen


# Each of these returns the tensor itself or a tensor with its own memory, although it reads like a view.
def test_reshape_of_what_has_no_such_view_is_a_copy():
    x = numbered(2, 3)
    y = x.t().reshape(6)
    assert not y._is_view()
    assert y.tolist() == [0, 3, 1, 4, 2, 5]
    y.zero_()
    assert x.sum().item() == 15


def test_what_needs_no_copy_is_the_tensor_itself():
    x = numbered(2, 3)
    assert x.contiguous() is x
    assert x.to(torch.float32) is x
    assert x.float() is x
    assert x.expand_as(x).data_ptr() == x.data_ptr()
    one = numbered(3)
    assert one.flatten() is one
    assert x.t().contiguous().stride() == (2, 1)


def test_views_of_tensors_without_dimensions_and_without_elements():
    zero = torch.tensor(5.0)
    assert zero.view(1, 1).tolist() == [[5]]
    assert zero.flatten().shape == (1,)
    assert zero.squeeze().shape == ()
    assert zero.expand(2).tolist() == [5, 5]
    assert zero.t() is not None
    empty = torch.zeros(0, 3)
    assert empty.view(3, 0).shape == (3, 0)
    assert empty.reshape(0).shape == (0,)
    assert [part.shape for part in empty.split(2, 1)] == [(0, 2), (0, 1)]
    assert empty.t().shape == (3, 0)
    assert empty.expand(2, 0, 3).shape == (2, 0, 3)
    assert [row.shape for row in torch.zeros(2, 0)] == [(0,), (0,)]


def test_parts_of_an_uneven_split():
    x = numbered(5)
    assert [part.tolist() for part in x.split(2)] == [[0, 1], [2, 3], [4]]
    assert [part.tolist() for part in x.chunk(2)] == [[0, 1, 2], [3, 4]]
    assert [part.tolist() for part in x.chunk(4)] == [[0, 1], [2, 3], [4]]  # three chunks, as in PyTorch
    assert [part.tolist() for part in x.split([2, 0, 3])] == [[0, 1], [], [2, 3, 4]]


def test_in_place_forms_look_otherwise_at_the_same_memory():
    x = numbered(2, 3)
    address = x.data_ptr()
    assert x.t_() is x
    assert x.shape == (3, 2)
    assert x.stride() == (1, 3)
    assert x.unsqueeze_(0).shape == (1, 3, 2)
    assert x.transpose_(1, 2).shape == (1, 2, 3)
    assert x.squeeze_().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.data_ptr() == address


def test_in_place_through_a_view_changes_what_shares_its_memory():
    x = numbered(2, 3)
    column, row = x[:, 1], x[1]
    column.fill_(9)
    assert row.tolist() == [3, 9, 5]
    row += 1
    assert x.tolist() == [[0, 9, 2], [4, 10, 6]]
    assert column._version == row._version == x._version == 2


ERRORS = {
    "view to another number": (
        lambda x: x.view(5),
        RuntimeError,
        "shape '[5]' is invalid for input of size 6",
    ),
    "view with two open lengths": (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    "view with an impossible length": (
        lambda x: x.view(-1, 4),
        RuntimeError,
        "shape '[-1, 4]' is invalid for input of size 6",
    ),
    "view with a negative length": (lambda x: x.view(-2, 3), RuntimeError, "invalid shape dimension -2..."),
    "view of what lies otherwise": (
        lambda x: x.t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.",
    ),
    "reshape": (lambda x: x.reshape(4), RuntimeError, "shape '[4]' is invalid for input of size 6"),
    "transpose": (
        lambda x: x.transpose(0, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "permute twice the same": (lambda x: x.permute(0, 0), RuntimeError, "permute(): duplicate dims are not allowed."),
    "permute too few": (
        lambda x: x.permute(0),
        RuntimeError,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
    ),
    "t": (
        lambda x: x.view(1, 2, 3).t(),
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    "expand": (
        lambda x: x.expand(4, 3),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0.  "
        "Target sizes: [4, 3].  Tensor sizes: [2, 3]",
    ),
    "expand to fewer": (
        lambda x: x.expand(3),
        RuntimeError,
        "expand(torch.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be greater or equal to the "
        "number of dimensions in the tensor (2)",
    ),
    "unsqueeze": (
        lambda x: x.unsqueeze(3),
        IndexError,
        "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
    ),
    "squeeze": (
        lambda x: x.squeeze(2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "select": (
        lambda x: x.select(0, 2),
        IndexError,
        "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
    ),
    "narrow": (lambda x: x.narrow(1, 2, 2), RuntimeError, "start (2) + length (2) exceeds dimension size (3)."),
    "split of nothing": (
        lambda x: x.split(0),
        RuntimeError,
        "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
    ),
    "split by lengths": (
        lambda x: x.split([1, 2]),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at dimension 0), but got "
        "split_sizes=[1, 2]",
    ),
    "chunk": (lambda x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    "flatten": (
        lambda x: x.flatten(1, 0),
        RuntimeError,
        "flatten() has invalid args: start_dim cannot come after end_dim",
    ),
    "as_strided": (
        lambda x: x.as_strided((7,), (1,)),
        RuntimeError,
        "setStorage: sizes [7], strides [1], storage offset 0, and itemsize 4 requiring a storage size of 28 are out "
        "of bounds for storage of size 24",
    ),
    "writing into an expanded tensor": (
        lambda x: x[:1].expand(2, 3).add_(1),
        RuntimeError,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.",
    ),
    "writing while reading beside": (
        lambda x: x.view(6)[1:].add_(x.view(6)[:-1]),
        RuntimeError,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
}


@pytest.mark.parametrize(("call", "error", "line"), ERRORS.values(), ids=ERRORS)
def test_errors(call, error, line):
    x = numbered(2, 3)
    with fails(error, line):
        call(x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x._version == 0


def test_strides_of_empty_tensors_seen_as_another_dtype():
    assert torch.empty(0, 4).view(torch.float64).stride() == (2, 1)
    assert torch.empty(0, 4).view(torch.int16).stride() == (8, 1)
    assert torch.empty(3, 0, 2).view(torch.int16).stride() == (4, 4, 1)
    assert torch.empty(4, 5, 10)[:, :0].view(torch.int8).stride() == (200, 40, 1)


def test_strides_of_what_has_no_elements():
    x = torch.ones(4, requires_grad=True)
    for size, stride in (((0, 2), (1, 5)), ((0,), (7,)), ((2, 0, 3), (3, 9, 1))):
        found = torch.as_strided(x, size, stride)
        assert found.shape == size and found.stride() == stride
        found.sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="^Storage size calculation overflowed with sizes="):
        torch.as_strided(x, (2, 2), (2**61, 1))


@pytest.mark.parametrize("plane", [(2, 0), (0, 2), (-3, 0), (5, 5)])
def test_planes_of_rotations_that_there_are_not(plane):
    with pytest.raises(IndexError, match="^Dimension out of range"):
        torch.ones(2, 2).rot90(1, plane)
    for same in ((0, 0), (1, -1)):
        with pytest.raises(RuntimeError, match="^expected rotation dims to be different"):
            torch.ones(2, 2).rot90(1, same)
