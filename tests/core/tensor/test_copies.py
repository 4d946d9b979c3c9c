"""Copies and pickles of tensors."""

import copy
import pickle

import pytest

import cygrad as torch
from helpers import fails, leaf


def test_copy_shares_memory():
    x = leaf(1.0, 2.0)
    y = copy.copy(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    assert y.requires_grad and y.is_leaf


def test_deepcopy_of_a_leaf():
    x = leaf(1.0, 2.0)
    x.grad = torch.tensor([3.0, 4.0])
    x.note = ["kept"]
    y = copy.deepcopy(x)
    assert y.tolist() == [1.0, 2.0]
    assert y.requires_grad and y.is_leaf
    assert y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == [3.0, 4.0] and y.grad is not x.grad
    assert y.note == ["kept"] and y.note is not x.note


def test_deepcopy_keeps_identity_within_one_structure():
    x = torch.ones(2)
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_deepcopy_of_a_non_leaf_is_refused():
    with fails(
        RuntimeError,
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
        "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
        "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001",
    ):
        copy.deepcopy(leaf(1.0) * 2)


def test_deepcopy_keeps_strides():
    assert copy.deepcopy(torch.ones(2, 3).t()).stride() == (1, 3)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_of_a_leaf(protocol):
    x = leaf(1.0, 2.0, dtype=torch.float64)
    x.grad = torch.ones(2, dtype=torch.float64)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.tolist() == [1.0, 2.0]
    assert y.dtype is torch.float64
    assert y.requires_grad and y.is_leaf
    assert y.grad is None


def test_pickle_of_a_non_leaf_gives_a_leaf():
    y = pickle.loads(pickle.dumps(leaf(1.0) * 2))
    assert y.tolist() == [2.0]
    assert y.requires_grad and y.is_leaf


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(1.5),
        lambda: torch.ones(0, 3),
        lambda: torch.tensor([True, False]),
        lambda: torch.tensor([[1, 2], [3, 4]]).t(),
        lambda: torch.ones(4)[1:3],
    ],
)
def test_pickle_keeps_values_shape_and_dtype(make):
    x = make()
    y = pickle.loads(pickle.dumps(x))
    assert (y.tolist(), y.shape, y.dtype) == (x.tolist(), x.shape, x.dtype)


def test_pickle_of_a_parameter():
    parameter = torch.nn.Parameter(torch.ones(2))
    copied = pickle.loads(pickle.dumps(parameter))
    assert type(copied) is torch.nn.Parameter
    assert copied.requires_grad
    assert type(copy.deepcopy(parameter)) is torch.nn.Parameter


def test_dtypes_sizes_and_devices_are_pickled():
    for value in (torch.float32, torch.bool, torch.Size([2, 3]), torch.device("cpu")):
        copied = pickle.loads(pickle.dumps(value))
        assert copied == value and type(copied) is type(value)
    assert pickle.loads(pickle.dumps(torch.float64)) is torch.float64
