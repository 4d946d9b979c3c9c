"""Fourier transforms by cuFFT: any address and dimensions, inputs that are left alone, plans of their own for streams.

cuFFT wants pairs of real numbers at multiples of their size, works in the input of transforms to real numbers, and has
a work area in each plan. The stand-in's does all of that, too.
"""

import itertools

import cupy_standin
import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.cpu.signal import fourier as on_cpu
from cygrad._kernels.gpu.libraries import cufft
from cygrad._kernels.gpu.signal import fourier as on_gpu


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


LAYOUTS = {
    "dense": lambda a: a,
    "columns first": lambda a: a.T,
    "reversed": lambda a: a[::-1, ..., ::-1],
    "swapped": lambda a: a.swapaxes(1, 2),
    "expanded": lambda a: a[:1].repeat(2, 0),
}
DIMS = [dims for count in (1, 2, 3, 4) for dims in itertools.permutations(range(4), count)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_any_dimensions_of_any_layout(gpu, kind, layout):
    """As on the CPU; and the input keeps its elements, in particular that of transforms to real numbers."""
    draw = np.random.default_rng(0).standard_normal
    whole = draw((2, 3, 4, 5)).astype("f") + (0 if kind == "r2c" else 1j * draw((2, 3, 4, 5)).astype("f"))
    cases = [dims for dims in DIMS if len(dims) < 4 or dims[-1] in (0, 3)]
    for i, dims in enumerate(cases):
        a = LAYOUTS[layout](whole)
        there = LAYOUTS[layout](gpu.asarray(whole))
        if layout == "expanded":
            there = gpu.broadcast_to(gpu.asarray(whole)[:1], whole.shape)
        norm = ("backward", "forward", "ortho")[i % 3]
        if kind == "c2c":
            args = dims, norm, bool(i % 2)
        elif kind == "r2c":
            args = dims, norm, bool(i % 4)
        else:
            args = dims, norm, 2 * a.shape[dims[-1]] - 2 + i % 2, (1, 0.5)[i % 5 == 0]
        wanted = getattr(on_cpu, kind)(a, *args)
        found = getattr(on_gpu, kind)(there, *args)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.get(), wanted, 1e-4, 1e-4, err_msg=f"{dims} {norm}")
        np.testing.assert_array_equal(there.get(), a)


def test_five_dimensions(gpu):
    x = torch.randn(2, 3, 2, 3, 4, dtype=torch.complex128)
    for name in ("fftn", "irfftn", "hfftn"):
        found = getattr(torch.fft, name)(x.cuda())
        assert torch.allclose(found.cpu(), getattr(torch.fft, name)(x))
    assert torch.allclose(torch.fft.rfftn(x.real.cuda()).cpu(), torch.fft.rfftn(x.real))


@pytest.mark.parametrize("name", ["irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"])
@pytest.mark.parametrize("is_complex", [True, False])
def test_transforms_to_real_numbers_leave_their_input_alone(name, is_complex):
    x = torch.randn(3, 4, 5, dtype=torch.complex64 if is_complex else torch.float32)
    there = x.cuda().requires_grad_()
    held = there.detach()
    first = getattr(torch.fft, name)(there)
    first.sum().backward()
    assert torch.equal(held.cpu(), x)
    assert torch.equal(getattr(torch.fft, name)(held), first)
    assert torch.allclose(first.detach().cpu(), getattr(torch.fft, name)(x), rtol=1e-4, atol=1e-4)


def test_the_standins_library_uses_up_its_input(gpu):
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in does so with certainty")
    a = gpu.ones((2, 3), "F")
    assert cufft.transform(a, 1, True, "c2r", 4, is_own=True).tolist() == [[4, 0, 0, 0]] * 2
    assert gpu.isnan(a).all()


# --- Plans -------------------------------------------------------------------------------------


def test_streams_share_no_work_area():
    """On the stand-in, using another stream's work area without waiting for it is an error."""
    x = torch.randn(3, 8, dtype=torch.complex64, device="cuda")
    torch.cuda.synchronize()
    found = []
    for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            found.append(torch.fft.fft(x))
    torch.cuda.synchronize()
    assert torch.equal(*found)


def test_plans_are_used_again_and_few_are_kept(monkeypatch):
    made, make = [], cufft._made
    monkeypatch.setattr(cufft, "_made", lambda arguments: made.append(1) or make(arguments))
    cufft._of_thread.plans.clear()
    x = torch.randn(3, 8, dtype=torch.complex64, device="cuda")
    for _ in range(3):
        torch.fft.fft(x)
    assert len(made) == 1
    for length in range(1, cufft.MOST_PLANS + 2):
        torch.fft.fft(x, 8 + length)
    assert len(cufft._of_thread.plans) == cufft.MOST_PLANS
    torch.fft.fft(x)
    assert len(made) == cufft.MOST_PLANS + 3


@pytest.mark.parametrize("warm", ["same stream", "other stream", "none"])
def test_a_graph_keeps_its_plans(warm):
    """On the stand-in, a replay that uses a work area whose memory others may have is an error."""
    x = torch.randn(3, 8, dtype=torch.complex64, device="cuda")
    stream, g = torch.cuda.Stream(), torch.cuda.CUDAGraph()

    def work():
        return torch.fft.irfftn(torch.fft.fft(x)), torch.fft.rfft(x.real)

    cufft._of_thread.plans.clear()
    if warm == "other stream":
        work()
    torch.cuda.synchronize()
    if warm == "same stream":
        with torch.cuda.stream(stream):
            work()
    with torch.cuda.graph(g, stream=stream):
        found = work()
    if warm == "other stream":
        assert not cufft._of_thread.plans, "the graph takes what it finds"
    for length in range(cufft.MOST_PLANS + 2):
        torch.fft.fft(x, 20 + length)
    x.copy_(torch.randn(3, 8, dtype=torch.complex64))
    g.replay()
    wanted = work()
    for one, other in zip(found, wanted):
        assert torch.allclose(one, other)
