"""Convolutions without cuDNN and tensor cores: one product per image or per several, in chunks."""

import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels.gpu.image import convolution
from cygrad._kernels.gpu.libraries import cublas

pytestmark = runs_kernels
CASES = {  # images, filters, options
    "many places": ((2, 3, 12, 12), (4, 3, 3, 3), {"padding": 1}),
    "few places": ((3, 5, 4, 4), (6, 5, 3, 3), {"padding": 1}),
    "uneven places": ((3, 5, 9, 7), (2, 5, 2, 3), {"stride": (2, 1), "dilation": (1, 2)}),
    "even rows alone": ((2, 3, 5, 8), (4, 3, 1, 3), {"padding": (0, 1)}),
    "steps": ((3, 4, 16, 16), (5, 4, 3, 3), {"stride": 2, "padding": 1}),
    "one tap": ((3, 6, 8, 8), (4, 6, 1, 1), {}),
    "one tap in steps": ((3, 6, 8, 8), (4, 6, 1, 1), {"stride": 2}),
    "groups": ((3, 6, 8, 8), (4, 3, 3, 3), {"padding": 1, "groups": 2}),
    "one dimension": ((2, 3, 40), (4, 3, 5), {"padding": 2}),
    "three dimensions": ((2, 2, 4, 5, 8), (3, 2, 2, 2, 3), {"padding": 1}),
}


@pytest.fixture(autouse=True)
def by_cublas(cupy, monkeypatch):
    monkeypatch.setattr(convolution.implicit_convolution.tensor_cores, "takes", lambda dtype: False)
    with torch.backends.cudnn.flags(enabled=False, allow_tf32=False):
        yield


def results(case, device, dtype):
    torch.manual_seed(0)
    images, filters, options = CASES[case]
    x, w = (torch.randn(*shape).to(dtype).to(device).requires_grad_() for shape in (images, filters))
    out = getattr(F, f"conv{len(images) - 2}d")(x, w, **options)
    out.square().mean().backward()
    return [t.detach().cpu() for t in (out, x.grad, w.grad)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("scratch", [convolution._SCRATCH, 5000])
def test_as_on_the_cpu(monkeypatch, case, dtype, scratch):
    monkeypatch.setattr(convolution, "_SCRATCH", scratch)
    bound = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 1e-2}[dtype]
    for mine, other in zip(results(case, "cuda", dtype), results(case, "cpu", dtype), strict=True):
        torch.testing.assert_close(mine, other, rtol=bound, atol=bound)


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("case", ["many places", "few places", "steps", "one tap"])
def test_products_follow_the_setting_of_convolutions(monkeypatch, allowed, case):
    seen, multiply = [], cublas.multiply

    def watched(x, of_x, y, of_y, out, inner, in_half, in_tf32, *factors):
        seen.append(in_tf32)
        multiply(x, of_x, y, of_y, out, inner, in_half, in_tf32, *factors)

    monkeypatch.setattr(cublas, "multiply", watched)
    with torch.backends.cudnn.flags(enabled=False, allow_tf32=allowed):
        results(case, "cuda", torch.float32)
    assert seen == [allowed] * 3
