"""Gradients of max pooling and of biases on GPUs: as on the CPU, in one launch each."""

import cupy_standin
import numpy as np
import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels.device.cupy_library import switches


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def both(function, *shapes, dtype=torch.float32, quantum=None):
    """Run a function on both devices; compare gradients, and return the launches of the GPU's backward pass."""
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        given = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
        given = [t if quantum is None else (t / quantum).round() * quantum for t in given]  # so that some are equal
        given = [t.to(dtype).to(device).requires_grad_() for t in given]
        result = function(*given)
        g = torch.randn(result.shape, generator=torch.Generator().manual_seed(2)).to(dtype).to(device)
        with cupy_standin.watch() as seen:
            result.backward(g)
        found.append([result.detach().cpu(), *[t.grad.cpu() for t in given]])
    bound = {torch.float16: 2e-2, torch.float32: 2e-5}.get(dtype, 1e-11)
    for expected, one in zip(*found, strict=True):
        assert one.dtype == expected.dtype
        np.testing.assert_allclose(one, expected, bound, bound)
    return seen.launches


POOLS = {
    "without overlap": lambda x: F.max_pool2d(x, 2),
    "with overlap": lambda x: F.max_pool2d(x, 3, 2, 1),
    "with gaps": lambda x: F.max_pool2d(x, 2, 3),
    "dense": lambda x: F.max_pool2d(x, (3, 2), 1, 1),
    "ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "ceil with padding": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "the whole image": lambda x: F.max_pool2d(x, (9, 11)),
    "dilated": lambda x: F.max_pool2d(x, 2, 1, 1, dilation=3),
    "adaptive": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=["half", "single", "double"])
@pytest.mark.parametrize("how", POOLS)
def test_max_pooling(how, dtype):
    launches = both(POOLS[how], (2, 3, 9, 11), dtype=dtype, quantum=0.5)
    if launches and switches.own_launches and how not in ("dilated", "adaptive"):
        assert launches[0] == "to_maxima" and set(launches[1:]) <= {"setitem"}  # the copy for the leaf


def test_other_dimensions_and_layouts():
    both(lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 10), quantum=0.5)
    both(lambda x: F.max_pool3d(x, (2, 3, 2), 2, 1), (2, 2, 5, 6, 7), quantum=0.5)
    both(lambda x: F.max_pool2d(x, 2), (3, 9, 11))
    both(lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), 3, 1, 1), (2, 6, 5, 3), quantum=0.5)
    both(lambda x: F.max_pool2d(x, 2), (0, 3, 4, 4))
    both(lambda x: F.max_pool2d(x, 3, 2, return_indices=True)[0] ** 2, (2, 3, 7, 7))


def test_second_derivatives_and_nan():
    def slope(x):
        return torch.autograd.grad(F.max_pool2d(x, 3, 2, 1).sin().sum(), x, create_graph=True)[0]

    both(slope, (1, 2, 6, 6), dtype=torch.float64, quantum=0.5)
    y = torch.zeros(1, 1, 4, 4, device="cuda")
    y[0, 0, 1, 1] = float("nan")
    y.requires_grad_()
    F.max_pool2d(y, 2).sum().backward()
    assert y.grad[0, 0, :2, :2].tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize(
    "shape", [(3, 5, 4, 8), (3, 5, 3, 7), (2, 40, 130, 33), (70, 2, 16, 16), (1, 4, 1, 5)], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=["half", "single", "double"])
def test_biases_of_convolutions(dtype, shape):
    filters = torch.randn(shape[1], 1, 1, 1).to(dtype)
    both(lambda x, b: F.conv2d(x, filters.to(x.device), b, groups=shape[1]), shape, (shape[1],), dtype=dtype)
    both(lambda x, b: x * b[:, None, None], shape, (shape[1],), dtype=dtype)


@pytest.mark.parametrize("channels", [3, 40])
def test_sums_of_channels_take_one_launch(channels):
    x = torch.randn(4, channels, 9, 20, device="cuda")
    for function in (torch.sum, torch.mean, torch.amax, torch.amin):
        with cupy_standin.watch() as seen:
            found = function(x, (0, 2, 3))
        np.testing.assert_allclose(found.cpu(), function(x.cpu(), (0, 2, 3)), 1e-5, 1e-5)
        if seen.launches and switches.own_launches:
            assert seen.launches == ["fold_planes"]
    spread = x.std((0, 2, 3)), torch.linalg.vector_norm(x, dim=(0, 2, 3)), x.logsumexp((0, 2, 3))
    expected = x.cpu().std((0, 2, 3)), torch.linalg.vector_norm(x.cpu(), dim=(0, 2, 3)), x.cpu().logsumexp((0, 2, 3))
    for one, other in zip(spread, expected):
        np.testing.assert_allclose(one.cpu(), other, 1e-5, 1e-5)
