"""DLPack of elements that NumPy does not know: bfloat16 and float8."""

import numpy as np
import pytest

import cygrad as torch
from cygrad.utils.dlpack import from_dlpack, to_dlpack

TYPES = [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("is_capsule", [False, True])
def test_memory_is_shared(dtype, is_capsule):
    x = torch.tensor([[1.0, 2.0], [4.0, 0.5]]).to(dtype)
    found = from_dlpack(to_dlpack(x.t()) if is_capsule else x.t())
    assert found.dtype is dtype and found.stride() == (1, 2) and found.data_ptr() == x.data_ptr()
    assert found.float().tolist() == [[1, 4], [2, 0.5]]
    x.fill_(2)
    assert found.float().tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("dtype", TYPES)
def test_copies_and_parts(dtype):
    x = torch.arange(6).to(torch.float32).to(dtype)
    copied = from_dlpack(x[2:5], copy=True)
    x.zero_()
    assert copied.float().tolist() == [2, 3, 4]
    assert from_dlpack(x[:0]).shape == (0,) and from_dlpack(x[0]).shape == ()


def test_capsules_are_used_once():
    x = torch.ones(2, dtype=torch.bfloat16)
    capsule = to_dlpack(x)
    assert from_dlpack(capsule).dtype is torch.bfloat16
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        from_dlpack(capsule)


def test_numpy_does_not_know_them():
    x = torch.ones(2, dtype=torch.bfloat16)
    with pytest.raises((RuntimeError, BufferError, TypeError)):
        np.from_dlpack(x)
    assert x.float().tolist() == [1, 1]
