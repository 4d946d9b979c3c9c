"""In-place resizing: memory is kept as far as it reaches."""

import numpy as np
import pytest

import cygrad as torch
from helpers import fails


def test_memory_is_kept():
    base = torch.arange(6.0)
    address = base.data_ptr()
    assert base.resize_(2).data_ptr() == address and base.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    grown = torch.arange(3.0).resize_(5)
    assert grown[:3].tolist() == [0, 1, 2] and grown.shape == (5,)
    tail = torch.arange(6.0)[4:].resize_(2, 1)
    assert tail.tolist() == [[4], [5]]


def test_resizing_is_counted():
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    product = (x * w).sum()
    x.resize_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_read_only_memory_stays_read_only():
    array = np.arange(6.0)
    array.flags.writeable = False
    t = torch.from_numpy(array).resize_(3)
    with pytest.raises(RuntimeError, match="read-only"):
        t.zero_()
    assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_sparse_tensors_become_dense_after_resizing():
    assert torch.arange(4.0).resize_(2).tolist() == [0, 1]
    assert torch.eye(2).to_sparse().to_dense().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("size", "error"),
    [
        ([2, 4, 2**29, 2**29], r"Storage size calculation overflowed with sizes=\[2, 4, 536870912, 536870912\]"),
        ([8, 8, 2**29, 2**29], "numel: integer multiplication overflow"),
        ([0, 4, 2**61], "Stride calculation overflowed"),
    ],
)
def test_sizes_beyond_64_bits(size, error):
    x = torch.empty((), dtype=torch.float64)
    with pytest.raises(RuntimeError, match=error):
        x.resize_(size)
    assert x.shape == ()


def test_resize_as_keeps_the_memory_format():
    like = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    found = torch.randn(like.numel()).resize_as_(like, memory_format=torch.preserve_format)
    assert found.stride() == like.stride() and torch.zeros(96).resize_as_(like).is_contiguous()
    with pytest.raises(RuntimeError, match="Unsupported memory formatPreserve"):
        torch.zeros(4).resize_(2, 2, memory_format=torch.preserve_format)


@pytest.mark.parametrize(
    "shape, check, is_clear",
    [
        ((2, 3, 4), True, True),
        ((2, 3, 4), False, True),
        ((2, 1, 4), True, False),
        ((2, 1, 4), False, True),
        ((2, 1, 4), [torch.contiguous_format], True),
        ((2, 1, 4), [], False),
        ((2, 1, 3, 1), [torch.contiguous_format], True),
        ((2, 1, 3, 1), [torch.contiguous_format, torch.channels_last], False),
    ],
)
def test_orders_of_which_there_are_several(shape, check, is_clear):
    t = torch.empty(shape)
    if is_clear:
        assert t.dim_order(ambiguity_check=check) == tuple(range(len(shape)))
        return
    with fails(RuntimeError, "The tensor does not have unique dim order, or cannot map to exact one of the given ..."):
        t.dim_order(ambiguity_check=check)


@pytest.mark.parametrize("check", ["ABC", [torch.strided], 3])
def test_wrong_checks_of_the_order(check):
    with fails(TypeError, "The ambiguity_check argument must be a bool or a list of memory formats."):
        torch.empty(2, 3).dim_order(ambiguity_check=check)
