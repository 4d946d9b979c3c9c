"""Matrix products and sums with them passed to cuBLAS as they are, and selection between bfloat16 arrays."""

from importlib import import_module

import cupy_standin
import numpy as np
import pytest
from cupy_standin import blas_lt

import cygrad as torch
from cygrad._kernels.gpu.libraries import cublas_lt
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


# --- Sums with products --------------------------------------------------------------------------


def operands(kind, *shapes):
    if kind == "bfloat16":
        pytest.importorskip("ml_dtypes")
    return [torch.randn(*shape).to(getattr(torch, kind)) for shape in shapes]


def launches_of(function, *given, **how):
    """The result of a function on the GPU, which has to be as on the CPU, and what was launched."""
    with cupy_standin.watch() as seen:
        found = function(*(t.cuda() for t in given), **how)
    wanted = function(*given, **how)
    near = KINDS[str(wanted.dtype).removeprefix("torch.")]
    torch.testing.assert_close(found.cpu(), wanted, rtol=near, atol=near)
    return seen.launches if cupy_standin.is_installed() else None


def none_or(*names):
    return None, list(names)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_is_added_in_the_launch_of_the_product(kind):
    x, w, b = operands(kind, (5, 7), (4, 7), (4,))
    linear = torch.nn.functional.linear
    for given in ((x, w), (x[:, 1:5], w[:, 2:6]), (x.t().contiguous().t(), w.t().contiguous().t()), (x[None], w)):
        assert launches_of(linear, *given, b) in none_or("cublasLtMatmul")
    assert launches_of(lambda x, w, b: torch.addmm(b, x, w.t()), x, w, b) in none_or("cublasLtMatmul")
    graph, on_gpu = torch.cuda.CUDAGraph(), [t.cuda() for t in (x, w, b)]
    with torch.cuda.graph(graph):
        found = linear(*on_gpu)
    graph.replay()
    torch.testing.assert_close(found.cpu(), linear(x, w, b), rtol=KINDS[kind], atol=KINDS[kind])


def test_what_cublaslt_does_not_add(monkeypatch):
    linear = torch.nn.functional.linear
    x, w, b = operands("float32", (5, 7), (4, 7), (4,))
    in_two, as_it_lies = ("gemmEx", "cygrad_add"), ("gemmEx", "cupy_add")
    assert launches_of(lambda x, w, b: linear(x, w, b[::2]), x, w, torch.randn(8)) in none_or(*as_it_lies)
    assert launches_of(linear, x[:1], w, b) in none_or(*in_two)
    assert launches_of(linear, x, w[:1], b[:1]) in none_or(*in_two)
    if cupy_standin.is_installed():
        monkeypatch.setattr(blas_lt.Library, "refuses", True)
        monkeypatch.setattr(cublas_lt, "_refused", set())
        assert launches_of(linear, x, w, b) == [*in_two]
        monkeypatch.setattr(blas_lt.Library, "refuses", False)
        assert launches_of(linear, x, w, b) == [*in_two]  # it is not asked again
        monkeypatch.setattr(cublas_lt, "_refused", set())
        monkeypatch.setattr(cublas_lt, "library", lambda: None)
        assert launches_of(linear, x, w, b) == [*in_two]
    x, w, b = operands("float16", (5, 7), (4, 7), (4,))
    monkeypatch.setattr(Precision, "fp16_accumulation", True)
    assert launches_of(linear, x, w, b) in none_or("copy", "gemmEx")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta, alpha", [(0.5, 2), (0, 3), (2, 1), (1, -1), (0, 1)])
def test_factors_are_left_to_cublas(kind, beta, alpha):
    base, a, b = operands(kind, (5, 4), (5, 7), (7, 4))
    wanted = none_or("gemmEx") if beta == 0 else none_or("copy", "gemmEx")
    factors = {"beta": beta, "alpha": alpha}
    for given in ((base, a, b), (base[:1], a, b), (base[:, 0:1], a, b), (base[0], a, b), (base, a[:, ::2], b[::2])):
        launched = launches_of(torch.addmm, *given, **factors)
        assert launched in wanted or given[1] is not a  # every second element is copied
    assert launches_of(torch.addmv, base[:, 0], a, b[:, 1], **factors)[-1:] in (["gemmEx"], None)
    stacks = operands(kind, (3, 5, 4), (3, 5, 7), (3, 7, 4))
    assert launches_of(torch.baddbmm, *stacks, **factors) in wanted
    if beta == 0:  # nothing of it is read
        assert not torch.addmm(base.cuda() * float("nan"), a.cuda(), b.cuda(), **factors).isnan().any()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sums_with_products_of_half_precision_are_rounded_once(kind):
    base, a, b = operands(kind, (33, 40), (33, 70), (70, 40))
    for factors in ({}, {"beta": 0.3, "alpha": 1.7}):
        on_gpu = torch.addmm(base.cuda(), a.cuda(), b.cuda(), **factors).cpu()
        wanted = torch.addmm(base.double(), a.double(), b.double(), **factors)
        error = (on_gpu.double() - wanted).abs() / wanted.abs().clamp(min=1e-2)
        assert error.max() <= torch.finfo(on_gpu.dtype).eps * 0.51


def test_gradients_and_complex_factors():
    given = [torch.randn(*shape, dtype=torch.complex64) for shape in ((5, 4), (5, 7), (7, 4))]

    def gradients(device):
        leaves = [t.to(device).requires_grad_() for t in given]
        found = torch.addmm(*leaves, beta=2 + 1j, alpha=1 - 0.5j)
        return [found, *torch.autograd.grad(found.abs().sum(), leaves)]

    for found, wanted in zip(gradients("cuda"), gradients("cpu")):
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-5, atol=1e-5)
    assert torch.addmm(torch.ones(2, 2).cuda(), *[torch.eye(2).cuda()] * 2, beta=2 + 0j).tolist() == [[3, 2], [2, 3]]
    whole = [torch.ones(2, 2, dtype=torch.int64, device="cuda")] * 3
    assert torch.addmm(*whole, beta=2, alpha=3).tolist() == [[8, 8], [8, 8]]
    with pytest.raises(RuntimeError):
        torch.addmm(torch.ones(3, 3).cuda(), torch.ones(2, 2).cuda(), torch.ones(2, 2).cuda(), beta=2)
