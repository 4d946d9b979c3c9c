"""Convolution, pooling and interpolation against PyTorch beyond the samples: errors of functions named like methods,
warnings, results in pairs, dtypes.
"""

import math

import numpy as np
import pytest
from oracle.answers import answer, check, lines

import cygrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

EXPRESSIONS = lines("""
    F.unfold(x, 2)
    F.unfold(x[0], (2, 3), 1, 1, 2)
    F.unfold(x, (2, 3, 4))
    F.unfold(x, 0)
    F.unfold(x, 2, 0)
    F.unfold(x, 2, 1, -1)
    F.unfold(x, 2, stride=0)
    F.unfold(x, 9)
    F.unfold(x.long(), 2)
    F.unfold(x > 0, 2)
    F.unfold(x[:0], 2)
    F.unfold(x[:, :0], 2)
    F.unfold(3, 2)
    F.upsample(x, scale_factor=2)
    F.upsample_nearest(x, 3)
    F.upsample_bilinear(x, scale_factor=2)
    F.max_pool1d(x[0], 2, return_indices=True)
    F.max_pool2d(x, 2, return_indices=True)
    F.max_pool2d(x[0], 2, 1, return_indices=True)
    F.max_pool2d(x, (2,), [])
    F.max_pool2d(x.half(), 2)
    F.max_pool3d(x, 2, return_indices=True)
    torch.adaptive_max_pool1d(x[0], 2)
    F.adaptive_max_pool1d(x[0], 2)
    F.adaptive_max_pool2d(x, 3, True)
    F.avg_pool2d(x.long(), 3)
    F.avg_pool2d(x.half(), 2)
    F.fractional_max_pool2d(x, 2, 3, _random_samples=r, return_indices=True)
    F.fractional_max_pool2d(x, (1, 2), output_ratio=(0.6, 0.8), _random_samples=r)
    F.fractional_max_pool3d(x, (1, 2, 1), (1, 2, 3), _random_samples=s, return_indices=True)
    F.affine_grid(theta, (1, 3, 2, 4))
    F.affine_grid(theta, (1, 3, 2, 1), align_corners=True)
    F.affine_grid(theta, (1, 3, 2, 4), align_corners=False)
    F.affine_grid(theta, (1, 3, 4))
    F.affine_grid(theta, (1, 3, 4, 0))
    F.affine_grid(theta, (1, 3, 4, 5, 6))
    F.affine_grid(theta.long(), (1, 3, 4, 5))
    F.grid_sample(x, F.affine_grid(theta, (1, 3, 2, 4), True))
    F.grid_sample(x, F.affine_grid(theta, (1, 3, 2, 4), True), "nearest", "border", True)
    F.grid_sample(x, F.affine_grid(theta, (1, 3, 2, 4), True), "bicubic", "reflection", False)
    F.grid_sample(x, F.affine_grid(theta, (1, 3, 2, 4), True), "other")
    F.grid_sample(x, F.affine_grid(theta, (1, 3, 2, 4), True), padding_mode="other")
    F.grid_sample(x, far, align_corners=True)
    F.interpolate(x[0], 3, mode="bicubic")
    F.interpolate(x, 3, mode="linear")
    F.grid_sample(x, far, "bilinear", "border", True)
    F.grid_sample(x, far, "bilinear", "reflection", True)
    F.grid_sample(x, far, "nearest", "reflection", False)
    F.conv1d(x[0], x[0, :, :, :3])
    F.conv2d(x.half(), x.half())
    F.conv2d(x.double(), x[:, :, 1:], r[0, 0, :1])
    F.conv2d(x.double(), x[:, :, 1:])
    F.conv2d(x, x, r[0, 0, :1].half())
    F.conv2d(x.long(), x, r[0, 0, :1])
    F.conv_transpose2d(x.double(), x.transpose(0, 1), r[0, 0, :1])
    F.interpolate(x.half(), 3, mode="bilinear")
""")


def names(library):
    x = library.linspace(-4, 4, 48).reshape(1, 3, 4, 4)
    r = library.tensor([[[0.1, 0.9], [0.4, 0.7], [0.8, 0.3]]])
    s = library.tensor([[[0.1, 0.9, 0.5]]])
    theta = library.tensor([[[0.8, -0.3, 0.1], [0.4, 1.1, -0.2]]])
    far = library.tensor([[[[math.nan, 0.0], [0.3, math.nan], [31.3, -7.0], [2.0, -5.0]]]])
    return {"F": library.nn.functional, "x": x, "r": r, "s": s, "theta": theta, "far": far}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_as_pytorch(expression):
    check(expression, names)


def test_weight_of_another_type_than_half():
    """PyTorch's message differs on processors with half-precision convolutions."""
    expression = "F.conv2d(x.half(), x, r[0, 0, :1].half())"
    found, expected = (answer(library, expression, names, False)[0] for library in (cygrad, torch))
    assert found == ("RuntimeError", "expected scalar type Half but found Float")
    if not expected[1].startswith("Input type (torch.HalfTensor) and weight type (torch.FloatTensor)"):
        assert found == expected


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("nan", [math.nan, math.inf, -math.inf])
def test_volumes_at_nan(mode, padding, align_corners, nan):
    """For images, PyTorch reads out of bounds here."""
    found: list = []
    places = [[nan, 0.3, 0.2], [0.3, nan, 0.1], [0.3, 0.2, nan], [0.1, 0.2, 0.3], [nan, nan, nan]]
    for library in (cygrad, torch):
        x = library.arange(1.0, 49).reshape(1, 2, 2, 3, 4).requires_grad_()
        points = library.tensor(places).reshape(1, 1, 5, 1, 3).requires_grad_()
        y = library.nn.functional.grid_sample(x, points, mode, padding, align_corners)
        (y * y).sum().backward()
        found.append([a.detach().numpy() for a in (y, x.grad, points.grad)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_gradients_of_grid_sample(mode, padding, align_corners):
    """PyTorch has no second-order gradients, so the samples cannot compare them."""
    found = []
    for library in (cygrad, torch):
        x = library.linspace(-4, 4, 48).reshape(1, 3, 4, 4).sin().requires_grad_()
        points = (library.arange(24.0).reshape(1, 3, 4, 2) / 8).sin().mul(1.7).requires_grad_()
        y = library.nn.functional.grid_sample(x, points, mode, padding, align_corners)
        (y * y).sum().backward()
        found.append((x.grad.numpy(), points.grad.numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes(mode, align_corners, antialias):
    """Equal bit for bit: 16-bit weights, rounding half up after each dimension."""
    rng = np.random.default_rng(0)
    for shape, size in (((4, 4), (5, 5)), ((7, 3), (4, 9)), ((11, 10), (5, 3)), ((2, 5), (13, 4))):
        image = rng.integers(0, 256, (2, 3, *shape), np.uint8)
        found, expected = (
            library.nn.functional.interpolate(
                library.from_numpy(image), size, mode=mode, align_corners=align_corners, antialias=antialias
            )
            for library in (cygrad, torch)
        )
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
