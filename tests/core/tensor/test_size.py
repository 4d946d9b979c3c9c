"""torch.Size: a tuple of ints that remains a Size when sliced, added and repeated."""

import copy
import pickle

import numpy as np
import pytest

import cygrad as torch
from cygrad._core.types.size import Size

pytestmark = pytest.mark.interpreter


@pytest.fixture
def size():
    return Size([2, 3, 4])


def assert_size(value, expected):
    assert type(value) is Size
    assert tuple(value) == expected
    assert all(type(length) is int for length in value)


def test_is_public():
    assert torch.Size is Size
    assert_size(torch.zeros(2, 3).shape, (2, 3))
    assert_size(torch.zeros(2, 3).size(), (2, 3))
    assert_size(torch.tensor(1.0).shape, ())


@pytest.mark.parametrize(
    ("iterable", "expected"),
    [
        ([2, 3], (2, 3)),
        ((), ()),
        (range(3), (0, 1, 2)),
        (iter([5]), (5,)),
        ([-1], (-1,)),
        ([True, False], (1, 0)),
        ([np.int64(3), np.uint8(4)], (3, 4)),
        (np.array([2, 3]), (2, 3)),
        (Size([1]), (1,)),
    ],
)
def test_new(iterable, expected):
    assert_size(Size(iterable), expected)


def test_new_of_nothing():
    assert_size(Size(), ())


def test_new_of_tensors():
    assert_size(Size([torch.tensor(3), 4]), (3, 4))
    assert_size(Size(torch.tensor([2, 3])), (2, 3))
    with pytest.raises(TypeError, match=r"\(item 1 is 'Tensor'\)$"):
        Size([2, torch.tensor(3.0)])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([2.5],), "torch.Size() takes an iterable of 'int' (item 0 is 'float')"),
        (([1, "a"],), "torch.Size() takes an iterable of 'int' (item 1 is 'str')"),
        (([[2]],), "torch.Size() takes an iterable of 'int' (item 0 is 'list')"),
        (([2, None],), "torch.Size() takes an iterable of 'int' (item 1 is 'NoneType')"),
        (("23",), "torch.Size() takes an iterable of 'int' (item 0 is 'str')"),
        ((2,), "'int' object is not iterable"),
        ((2, 3), "tuple expected at most 1 argument, got 2"),
    ],
)
def test_new_of_other_things(arguments, text):
    with pytest.raises(TypeError) as caught:
        Size(*arguments)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([2, 3], "torch.Size([2, 3])"),
        ([4], "torch.Size([4])"),
        ([], "torch.Size([])"),
        ([np.int64(3)], "torch.Size([3])"),
    ],
)
def test_repr(lengths, text):
    assert repr(Size(lengths)) == text
    assert str(Size(lengths)) == text
    assert f"{Size(lengths)}" == text


@pytest.mark.parametrize(
    ("lengths", "count"),
    [([2, 3, 4], 24), ([], 1), ([0, 3], 0), ([-1, 3], -3)],
)
def test_numel(lengths, count):
    assert Size(lengths).numel() == count


def test_slices_are_sizes(size):
    assert_size(size[:2], (2, 3))
    assert_size(size[::-1], (4, 3, 2))
    assert_size(size[5:], ())


def test_items_are_ints(size):
    assert size[0] == 2 and type(size[0]) is int
    assert size[-1] == 4
    assert size[np.int64(1)] == 3
    with pytest.raises(IndexError, match=r"^tuple index out of range$"):
        size[3]
    with pytest.raises(TypeError, match=r"^tuple indices must be integers or slices, not str$"):
        size["a"]


def test_sums_are_sizes(size):
    assert_size(size + (1,), (2, 3, 4, 1))
    assert_size((1,) + size, (1, 2, 3, 4))
    assert_size(size + Size([5]), (2, 3, 4, 5))
    assert_size(size + (np.int64(1),), (2, 3, 4, 1))
    assert_size(sum([size, size], ()), (2, 3, 4, 2, 3, 4))
    size += (9,)
    assert_size(size, (2, 3, 4, 9))


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (Size([2]), [1], "can only concatenate tuple (not list) to torch.Size"),
        (Size([2]), 1, "can only concatenate tuple (not int) to torch.Size"),
        (Size([2]), (1.5,), "torch.Size() takes an iterable of 'int' (item 1 is 'float')"),
        ((1.5,), Size([2]), "torch.Size() takes an iterable of 'int' (item 0 is 'float')"),
    ],
)
def test_sums_that_are_none(left, right, text):
    with pytest.raises(TypeError) as caught:
        left + right
    assert str(caught.value) == text


def test_a_list_takes_no_size(size):
    with pytest.raises(TypeError, match="^can only concatenate list"):
        [1] + size


def test_another_type_may_take_a_size(size):
    class Collector:
        def __radd__(self, other):
            return "collected", other

    assert size + Collector() == ("collected", size)


def test_products_are_sizes(size):
    assert_size(size * 2, (2, 3, 4, 2, 3, 4))
    assert_size(2 * size, (2, 3, 4, 2, 3, 4))
    assert_size(size * np.int64(1), (2, 3, 4))
    assert_size(size * -1, ())
    assert_size(size * torch.tensor(2), (2, 3, 4, 2, 3, 4))


@pytest.mark.parametrize("times", [2.0, "a", None])
def test_products_that_are_none(size, times):
    name = type(times).__name__
    with pytest.raises(TypeError) as caught:
        size * times
    assert str(caught.value) == f"can't multiply sequence by non-int of type '{name}'"
    with pytest.raises(TypeError):
        times * size


def test_arrays_compute_with_the_lengths(size):
    ones = np.ones(3, int)
    for result, expected in [
        (size + ones, [3, 4, 5]),
        (ones + size, [3, 4, 5]),
        (size * (ones + 1), [4, 6, 8]),
        ((ones + 1) * size, [4, 6, 8]),
        (np.array(2) * size, [4, 6, 8]),
        (size * np.array(2), [4, 6, 8]),
    ]:
        assert isinstance(result, np.ndarray)
        assert result.tolist() == expected
    assert np.zeros(size).shape == size


def test_is_the_tuple_of_its_lengths(size):
    assert size == (2, 3, 4)
    assert size != [2, 3, 4]
    assert size < (3,)
    assert hash(size) == hash((2, 3, 4))
    assert {size: "found"}[2, 3, 4] == "found"
    first, *rest = size
    assert (first, rest) == (2, [3, 4])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(size, protocol):
    text = pickle.dumps(size, protocol)
    assert b"_core" not in text  # the module of the class may change
    assert_size(pickle.loads(text), (2, 3, 4))


def test_copies(size):
    assert_size(copy.copy(size), (2, 3, 4))
    assert_size(copy.deepcopy(size), (2, 3, 4))


def test_nothing_can_be_added(size):
    with pytest.raises(AttributeError):
        size.extra = 1
    with pytest.raises(TypeError, match=r"^type 'torch\.Size' is not an acceptable base type$"):
        type("Subclass", (Size,), {})
