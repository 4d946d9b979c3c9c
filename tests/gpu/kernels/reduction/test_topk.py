"""The first elements of long rows, found without a full sort."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch

pytestmark = runs_kernels
TYPES = "float16 float32 float64 int8 uint8 int16 int32 int64".split()


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def drawn(name, *shape):
    """Many equal values, plus zeros of both signs, infinities and NaN if the dtype has them."""
    x = torch.randint(0 if name == "uint8" else -60, 60, shape).to(getattr(torch, name))
    if x.is_floating_point():
        special = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0, 0.0], dtype=x.dtype)
        x.flatten()[torch.randperm(x.numel())[:50]] = special.repeat(10)
    return x


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("name", TYPES)
def test_first_elements_are_those_of_the_sorted_row(name, largest):
    for shape, dim, k in (((3, 1500), -1, 7), ((1100, 2), 0, 100), ((1024,), 0, 1)):
        x = drawn(name, *shape)
        with cupy_standin.watch() as seen:
            values, places = x.cuda().topk(k, dim, largest)
        if torch.cuda.get_device_name().startswith("Stand-in"):
            assert "first_of_rows" in seen.launches
        expected = x.sort(dim, descending=largest, stable=True)
        for found, whole in ((values, expected.values), (places, expected.indices)):
            np.testing.assert_array_equal(found.cpu().numpy(), whole.narrow(dim, 0, k).numpy())


def test_gradients_go_to_the_first():
    x = torch.randn(2, 1100).cuda().requires_grad_()
    x.topk(3).values.sum().backward()
    assert x.grad.sum(1).tolist() == [3, 3]
    assert (x.detach()[x.grad > 0].cpu() >= x.detach().cpu().sort(1).values[:, -3:].min()).all()


def test_a_nan_with_a_sign_comes_last_too():
    x = torch.tensor(np.copysign(np.float32([3, np.nan, 1, np.nan, 2]), np.float32([1, -1, 1, 1, -1])), device="cuda")
    values, places = x.sort()
    assert values[:3].tolist() == [-2, 1, 3]
    assert places.tolist() == [4, 2, 0, 1, 3]
    assert x.median().isnan().item()
    assert x.nanmedian().item() == 1
    assert torch.isin(torch.tensor([1.0, 5.0], device="cuda"), x).tolist() == [True, False]
    assert x.unique()[:3].tolist() == [-2, 1, 3]
