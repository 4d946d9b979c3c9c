"""Convolutions on tensor cores without cuDNN: each tile, type and geometry against the CPU's in double precision."""

import math
import random

import cupy_standin
import numpy as np
import pytest
from cupy_standin import compiler

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels.device import cupy_library
from cygrad._kernels.gpu.image import implicit_convolution

pytestmark = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)
TYPES = ("float16", "bfloat16", "float32")
BOUNDS = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2e-6}  # of the largest result
CASES = {  # images, filters, options
    "even": ((2, 16, 6, 6), (8, 16, 3, 3), {"padding": 1}),
    "few channels": ((3, 1, 7, 5), (5, 1, 3, 3), {"padding": 1}),
    "odd channels": ((2, 11, 6, 5), (9, 11, 3, 2), {"padding": (1, 0)}),
    "several tiles": ((3, 9, 12, 9), (70, 9, 3, 3), {"padding": 1}),
    "steps": ((2, 8, 9, 8), (10, 8, 3, 3), {"stride": 2, "padding": 1}),
    "longer steps than windows": ((2, 3, 11, 10), (4, 3, 2, 2), {"stride": (3, 4)}),
    "one tap in steps": ((2, 6, 8, 7), (4, 6, 1, 1), {"stride": 2}),
    "dilation": ((2, 4, 11, 9), (5, 4, 3, 3), {"dilation": (2, 3), "padding": 2}),
    "steps and dilation with a common factor": ((2, 4, 13, 12), (5, 4, 3, 4), {"dilation": 2, "stride": (4, 2)}),
    "steps and dilation without one": ((2, 4, 13, 12), (5, 4, 3, 3), {"dilation": 3, "stride": 2, "padding": 3}),
    "windows of padding alone": ((1, 2, 2, 3), (3, 2, 2, 2), {"padding": 3}),
    "groups": ((2, 12, 6, 6), (9, 4, 3, 3), {"padding": 1, "groups": 3}),
    "groups of one channel": ((2, 4, 6, 6), (8, 1, 3, 3), {"groups": 4}),
    "one dimension": ((2, 5, 40), (4, 5, 5), {"padding": 2, "stride": 3}),
    "three dimensions": ((2, 3, 4, 5, 6), (3, 3, 2, 2, 3), {"padding": 1, "stride": (1, 2, 1)}),
}


@pytest.fixture(autouse=True)
def without_cudnn(cupy):
    with torch.backends.cudnn.flags(enabled=False, allow_tf32=True):
        yield


def rounded(values, name):
    """The values as float64 of what tensor cores multiply: float32 is rounded to TF32, to nearest, away from zero."""
    if name != "float32":
        return values.double()
    bits = values.numpy().view(np.int32)
    return torch.from_numpy(((bits + 0x1000) & ~0x1FFF).view(np.float32)).double()


def bilinear(images, filters, options, grad, transposed):
    """Return (results, gradients of images and filters)."""
    x, w = (t.detach().requires_grad_() for t in (images, filters))
    name = f"conv{'_transpose' if transposed else ''}{images.ndim - 2}d"
    out = getattr(F, name)(x, w, **options)
    return [t.detach() for t in (out, *torch.autograd.grad(out, (x, w), grad(out)))]


def check(name, images, filters, options, transposed=False):
    """Compare a convolution and its gradients with those of the CPU in double precision."""
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype, drawn = getattr(torch, name), {}
    x, w = (torch.randn(*shape).to(dtype) for shape in (images, filters))

    def grad(out):
        if "grad" not in drawn:
            drawn["grad"] = torch.randn(*out.shape).to(dtype)
        return drawn["grad"].to(out.device) if out.is_cuda else rounded(drawn["grad"], name)

    with cupy_standin.watch() as seen:
        found = bilinear(x.cuda(), w.cuda(), options, grad, transposed)
    if torch.cuda.get_device_name().startswith("Stand-in"):
        assert seen.launches.count("implicit_product") == 2 and seen.launches.count("implicit_filters") == 1
    wanted = bilinear(rounded(x, name), rounded(w, name), options, grad, transposed)
    for a, b in zip(found, wanted, strict=True):
        bound = BOUNDS[name] * max(1, b.abs().max().item())
        torch.testing.assert_close(a.cpu().double(), b, rtol=0, atol=bound)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_as_on_the_cpu(case, name):
    torch.manual_seed(0)
    check(name, *CASES[case])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("tile", implicit_convolution._TILES, ids=lambda tile: "x".join(map(str, tile)))
def test_every_tile(monkeypatch, tile, name):
    """Tiles that are partly empty, several along each side, and sums split among blocks and not."""
    torch.manual_seed(1)
    monkeypatch.setattr(implicit_convolution, "_tile", lambda rows, columns, others: tile)
    check(name, (2, 20, 9, 11), (tile[0] + 5, 20, 3, 3), {"padding": 1})
    monkeypatch.setattr(implicit_convolution, "_slices", lambda steps, blocks, size: 1)
    check(name, (2, 20, 9, 11), (7, 20, 3, 3), {"padding": 1, "stride": 2})


@pytest.mark.parametrize("name", ["float16", "float32"])
@pytest.mark.parametrize("case", ["even", "steps", "groups", "one dimension"])
def test_transposed(case, name):
    torch.manual_seed(2)
    images, filters, options = CASES[case]
    check(name, (images[0], filters[0], *images[2:]), filters, options, transposed=True)


def drawn_case(seed):
    """Random shapes and options for which there are results."""
    draw = random.Random(seed)
    dims, groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2, 3])
    kernel = [draw.randint(1, 4) for _ in range(dims)]
    stride, dilation = ([draw.randint(1, 3) for _ in range(dims)] for _ in range(2))
    padding = [draw.randint(0, 3) for _ in range(dims)]
    image = [
        max(1, d * (k - 1) + 1 - 2 * p) + draw.randint(0, 9 // dims)
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    ]
    channels, filters = groups * draw.randint(1, 20), groups * draw.randint(2, 40)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    is_plain = math.prod(kernel) == math.prod(stride) == 1 and not any(padding)
    if is_plain:
        options["padding"] = [1] * dims
    return (draw.randint(1, 3), channels, *image), (filters, channels // groups, *kernel), options


@pytest.mark.parametrize("seed", range(24))
def test_random_geometries(seed):
    torch.manual_seed(seed)
    check(TYPES[seed % 3], *drawn_case(seed))


def test_biases_are_added_on_the_way():
    torch.manual_seed(3)
    x, w, b = torch.randn(2, 5, 6, 6).half(), torch.randn(7, 5, 3, 3).half(), torch.randn(7).half()
    on_gpu = x.cuda(), w.cuda(), b.cuda()
    with cupy_standin.watch() as seen:
        found = F.conv2d(*on_gpu, padding=1)
    if torch.cuda.get_device_name().startswith("Stand-in"):
        assert seen.launches == ["channels_last", "rows_of_filters", "implicit_product"]
    wanted = F.conv2d(x.double(), w.double(), b.double(), padding=1)
    torch.testing.assert_close(found.cpu().double(), wanted, rtol=2**-10, atol=2**-9)


def test_more_images_than_a_grid_has_blocks(monkeypatch):
    monkeypatch.setattr(implicit_convolution, "_MOST_GROUPS", 2)
    torch.manual_seed(4)
    check("float16", (5, 3, 6, 6), (4, 3, 3, 3), {})


def test_infinities_and_nan_stay_what_they_are():
    x = torch.zeros(1, 1, 1, 4)
    x[0, 0, 0] = torch.tensor([3.4e38, float("inf"), float("nan"), 1.0])
    x[0, 0, 0, 2] = torch.tensor(0x7F800001, dtype=torch.int32).view(torch.float32)  # nan in the last bit alone
    w = torch.zeros(1, 1, 1, 2)
    w[0, 0, 0, 0] = 1.0
    found = F.conv2d(x.cuda(), w.cuda(), padding=(0, 1)).cpu().flatten()
    assert found[0] == 0 and found[2:4].isnan().all() and found[1].isinf() | found[1].isnan()


@pytest.mark.parametrize("change", ["double", "no TF32", "older GPU", "one tap"])
def test_what_goes_to_cublas(monkeypatch, change):
    """What tensor cores do not multiply, and products that need no rearranging."""
    x, w = torch.randn(1, 4, 5, 5), torch.randn(3, 4, 3, 3)
    if change == "double":
        x, w = x.double(), w.double()
    if change == "older GPU":
        monkeypatch.setattr(implicit_convolution.tensor_cores, "takes", lambda dtype: False)
    if change == "one tap":
        w = w[:, :, :1, :1].contiguous()
    with (
        torch.backends.cudnn.flags(enabled=False, allow_tf32=change != "no TF32"),
        cupy_standin.watch() as seen,
    ):
        found = F.conv2d(x.cuda(), w.cuda())
    assert "implicit_product" not in seen.launches
    torch.testing.assert_close(found.cpu(), F.conv2d(x, w), rtol=1e-4, atol=1e-4)


def test_scratch_memory_does_not_grow_with_the_window():
    """Where windows were unfolded, a window of 49 places took 49 times the images' memory."""
    x, w = torch.randn(4, 8, 32, 32).cuda().half(), torch.randn(8, 8, 7, 7).cuda().half()
    F.conv2d(x, w, padding=3)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    F.conv2d(x, w, padding=3)
    assert torch.cuda.max_memory_allocated() - before < 3 * x.nbytes
