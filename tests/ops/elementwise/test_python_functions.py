"""Elements replaced by Python functions, and in-place resizing."""

import numpy as np
import pytest

import cygrad as torch


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
    with pytest.raises(RuntimeError, match="read-only"):
        t.apply_(lambda v: v + 1)
    assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_failing_function_changes_nothing():
    x = torch.arange(3.0)
    with pytest.raises(ZeroDivisionError):
        x.apply_(lambda v: 1 / (2 - v))
    with pytest.raises(TypeError):
        x.map_(x, lambda a, b: None)
    assert x.tolist() == [0, 1, 2] and x._version == 0
