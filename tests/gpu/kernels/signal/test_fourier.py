"""Fourier transforms of what begins at any address: cuFFT wants pairs of real numbers at multiples of their size."""

import pytest

import cygrad as torch


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["rfft", "rfftn", "fft", "ihfft", "ihfftn", "rfft2"])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_any_offset(name, dtype, offset):
    block = torch.linspace(-1, 2, 40, dtype=dtype)
    part, there = block[offset : offset + 36].view(6, 6), block.cuda()[offset : offset + 36].view(6, 6)
    there.requires_grad_()
    found = getattr(torch.fft, name)(there)
    assert torch.allclose(found.detach().cpu(), getattr(torch.fft, name)(part), rtol=1e-4, atol=1e-4)
    found.abs().sum().backward()
    assert there.grad.isfinite().all()
