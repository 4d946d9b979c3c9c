"""Batched matrix products passed to cuBLAS without copies, and selection between bfloat16 arrays."""

from importlib import import_module

import numpy as np
import pytest

import cygrad as torch
from cygrad._kernels.gpu.runtime.matmul_precision import Precision


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


KINDS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}
STACK = np.random.default_rng(0).standard_normal((3, 4, 6, 6))
# (first, second) from dense stacks a and b
PAIRS = {
    "dense": lambda a, b: (a, b),
    "transposed": lambda a, b: (a.mT, b),
    "second transposed": lambda a, b: (a, b.mT),
    "both transposed": lambda a, b: (a.mT, b.mT),
    "sliced": lambda a, b: (a[..., 1:3, 2:5], b[..., 2:5, :4]),
    "every second": lambda a, b: (a[..., ::2], b[..., ::2, :]),
    "backwards": lambda a, b: (a.flip(0), b.flip(-1)),
    "heads": lambda a, b: (a.transpose(1, 2), b.permute(0, 2, 3, 1)),
    "one for all": lambda a, b: (a[:1, :1], b),
    "one for all, every second": lambda a, b: (a[:1, :1, :, ::2], b[:, :, ::2]),
    "one for all, backwards": lambda a, b: (a, b[:1, :1].flip(-1)),
    "one after": lambda a, b: (a, b[0, 0]),
    "one before": lambda a, b: (a[0, 0], b),
    "broadcast": lambda a, b: (a[:, :1], b[:1]),
    "vector after": lambda a, b: (a, b[0, 0, 0]),
    "vector before": lambda a, b: (a[0, 0, 0], b),
    "columns": lambda a, b: (a[..., :1], b[..., :1, :]),
    "rows": lambda a, b: (a[..., :1, :], b[..., :1]),
    "one element": lambda a, b: (a[0, 0, :1], b[0, 0, :, :1]),
    "vectors": lambda a, b: (a[0, 0, 0], b[0, 0, 1]),
    "expanded": lambda a, b: (a[:1].expand(3, 4, 6, 6), b),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PAIRS)
def test_stacks_however_they_lie(name, kind):
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    given = [torch.tensor(array).to(getattr(torch, kind)) for array in (STACK, STACK[::-1].copy())]
    first, second = PAIRS[name](*(a.cuda() for a in given))
    wanted = np.matmul(*(a.double().numpy() for a in PAIRS[name](*given)))
    found = torch.matmul(first, second)
    assert found.dtype is getattr(torch, kind)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.double().cpu().numpy(), wanted, KINDS[kind], KINDS[kind] * 3)


def test_long_sums_of_half_precision_are_added_up_in_single():
    ones = torch.full((70_000,), 1.0, dtype=torch.float16, device="cuda")
    assert (ones @ (ones * 0.5)).item() == 35_008  # accumulated in float16, the sum would stop at 2048
    assert torch.matmul(ones[None], (ones * 0.5)[:, None]).item() == 35_008


def test_stacks_are_multiplied_by_tf32_if_it_is_asked_for(monkeypatch):
    cublas, told = import_module("cupy_backends.cuda.libs.cublas"), []
    product = cublas.gemmStridedBatchedEx
    monkeypatch.setattr(cublas, "gemmStridedBatchedEx", lambda *args: (told.append(args[-2]), product(*args)))
    single = torch.ones(2, 3, 3, device="cuda")
    for asked, kind in (("highest", "float32"), ("high", "float32"), ("high", "float64"), ("high", "float16")):
        monkeypatch.setattr(Precision, "matmul", asked)
        _ = single.to(getattr(torch, kind)) @ single.to(getattr(torch, kind))
    plain, double, tf32 = (getattr(cublas, f"CUBLAS_COMPUTE_{n}") for n in ("32F", "64F", "32F_FAST_TF32"))
    assert told == [plain, tf32, double, plain]


def test_a_choice_of_bfloat16_stays_bfloat16():
    pytest.importorskip("ml_dtypes")
    x = torch.tensor([1.5, float("nan"), -2.0], dtype=torch.bfloat16, device="cuda")
    y, mask = torch.zeros_like(x), torch.tensor([True, False, True], device="cuda")
    for found, wanted in (
        (torch.where(mask, x, y), [1.5, 0, -2]),
        (torch.where(mask, x, 3.0), [1.5, 3, -2]),
        (torch.where(mask, y, x[0]), [0, 1.5, 0]),
        (x.masked_fill(~mask, 4), [1.5, 4, -2]),
        (y.masked_scatter(mask, x), [1.5, 0, float("nan")]),
        (x.nansum(), -0.5),
        (y.logsumexp(0), 1.1015625),
    ):
        assert found.dtype is torch.bfloat16
        np.testing.assert_array_equal(found.float().cpu().numpy(), np.float32(wanted))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_added_up_in_single(kind):
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = torch.full((2, 65_536), 2.0, device="cuda", dtype=getattr(torch, kind))
    y = torch.full((1024,), 1000.0, device="cuda", dtype=getattr(torch, kind))
    for found, wanted in (
        (x.mean(), 2),
        (x.mean(1), [2, 2]),
        ((x / 4).sum(1), [32768, 32768]),
        (y.norm(), 32000),
        (y.var(), 0),
        (x.std(1), [0, 0]),
    ):
        assert found.dtype is x.dtype
        assert found.float().tolist() == wanted
