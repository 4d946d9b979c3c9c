"""What the samples of convolutions, poolings and interpolations cannot say, against PyTorch: errors of functions
whose name is another method's, warnings, results that come in pairs, types of elements."""

import pytest
from oracle.answers import check, lines

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
    F.conv1d(x[0], x[0, :, :, :3])
    F.conv2d(x.half(), x.half())
    F.interpolate(x.half(), 3, mode="bilinear")
""")


def names(library):
    x = library.linspace(-4, 4, 48).reshape(1, 3, 4, 4)
    r = library.tensor([[[0.1, 0.9], [0.4, 0.7], [0.8, 0.3]]])
    s = library.tensor([[[0.1, 0.9, 0.5]]])
    return {"F": library.nn.functional, "x": x, "r": r, "s": s}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_as_pytorch(expression):
    check(expression, names)
