"""Direct launches of elementwise functions: their results, and which calls are left to CuPy's own functions."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels
from cupy_standin import functions_in_c

import cygrad as torch
import cygrad.nn.functional as F

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "number": lambda x, y: (x * 2.5 + 1) / 3 - 0.25,
    "number first": lambda x, y: 2.5 / y - 1.5,
    "exp": lambda x, y: x.exp(),
    "log": lambda x, y: y.log(),
    "sqrt": lambda x, y: y.sqrt(),
    "tanh": lambda x, y: x.tanh(),
    "neg": lambda x, y: -x,
    "relu": lambda x, y: F.relu(x),
    "clamp": lambda x, y: x.clamp(-0.5, 0.25) + x.clamp(min=0.1) * x.clamp(max=-0.1),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.1),
    "hardtanh": lambda x, y: F.hardtanh(x, -0.4, 0.6),
    "softplus": lambda x, y: F.softplus(x, 2.0),
    "gelu": lambda x, y: F.gelu(x),
}


def operands(dtype, device, how):
    torch.manual_seed(0)
    x, y = torch.randn(6, 35), torch.rand(6, 35) + 0.5
    x[0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    x, y = (t.to(dtype).to(device) for t in (x, y))
    if how == "transposed":
        return x.t(), y.t()
    if how == "strided":
        return x[:, ::2], y[:, ::2]
    if how == "sliced":  # misaligned with respect to 16 bytes
        return x.flatten()[1:], y.flatten()[1:]
    if how == "broadcast":
        return x, y[:1]
    if how == "empty":
        return x[:0], y[:0]
    return x, y


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", ["dense", "sliced", "transposed", "strided", "broadcast", "empty"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=["single", "double", "half"])
def test_as_on_the_cpu(name, how, dtype):
    found, expected = ([FUNCTIONS[name](*operands(dtype, device, how))][0] for device in ("cuda", "cpu"))
    assert found.dtype == expected.dtype == dtype and found.shape == expected.shape
    bound = {torch.float16: 4e-3, torch.float32: 2e-6, torch.float64: 1e-12}[dtype]
    a, b = (t.detach().cpu().double().numpy() for t in (found, expected))
    np.testing.assert_allclose(a, b, bound, bound, equal_nan=True)


def test_one_launch_for_dense_arrays_of_one_type():
    x, y = (torch.ones(3, 4, device="cuda") for _ in range(2))
    whole = torch.ones(3, 4, device="cuda", dtype=torch.int64)
    with cupy_standin.watch() as seen:
        x * y
        x * y.double()
        x.t() * y.t()
        x * y[:1]
        whole * whole
        x * 2
        x * torch.tensor(2.0)
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in tells of launches")
    own = [name for name in seen.launches if name.startswith("cygrad_")]
    assert own == ["cygrad_multiply"] * 4 + ["cygrad_multiply_number"] * 2  # the second of these after a cast


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dims", [(0, 3, 1, 2), (2, 0, 3, 1), (3, 2, 1, 0)], ids=str)
def test_results_lie_as_operands_without_gaps_do(name, dims):
    x, y = (torch.rand(3, 4, 5, 6) + 0.5 for _ in range(2))
    expected = FUNCTIONS[name](x.permute(dims), y.permute(dims))
    found = FUNCTIONS[name](x.cuda().permute(dims), y.cuda().permute(dims))
    assert found.stride() == expected.stride() == x.permute(dims).stride()
    np.testing.assert_allclose(found.cpu(), expected, 2e-6, 2e-6)


def test_operands_in_different_orders_or_with_gaps():
    x, y = (torch.rand(3, 4, 5) for _ in range(2))
    for make in (
        lambda t: (t.permute(2, 0, 1), t.permute(2, 0, 1)[:, :, :]),
        lambda t: (t.permute(2, 0, 1)[:, :, 1:], t.permute(2, 0, 1)[:, :, 1:]),
        lambda t: (t.permute(2, 0, 1), t.reshape(5, 3, 4)),
        lambda t: (t.permute(2, 0, 1)[:1], t.permute(2, 0, 1)[:1]),
        lambda t: (t[:1].expand(3, 4, 5), t[:1].expand(3, 4, 5)),
    ):
        (a, _), (_, b) = make(x), make(y)
        (c, _), (_, d) = make(x.cuda()), make(y.cuda())
        np.testing.assert_array_equal((c * d).cpu(), a * b)


LAYOUTS = {  # of an operand next to a dense one with the shape of y
    "a number": lambda y: y[0, 0, 0],
    "a number, expanded": lambda y: y[1, 0, 3].expand(y.shape),
    "a number of three dimensions": lambda y: y[:1, :1, 1:2],
    "a row": lambda y: y[2, 1],
    "a row that begins at no multiple of 16 bytes": lambda y: y.flatten()[3 : 3 + y.shape[2]],
    "a row, expanded": lambda y: y[:1, 2:3].expand(y.shape),
    "rows": lambda y: y[3],
    "rows of more dimensions": lambda y: y[None, :1],
}
OTHERS = {
    "a column": lambda y: y[:, :, :1],
    "rows that are repeated": lambda y: y[:, :1],
    "every other element": lambda y: torch.cat([y, y], 2)[:, :, ::2],
}


@pytest.mark.parametrize("shape", [(9, 5, 64), (9, 77, 7)], ids=str)  # some exceed a block
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=["single", "double", "half"])
@pytest.mark.parametrize("name", [*LAYOUTS, *OTHERS])
def test_one_launch_for_numbers_and_rows_beside_dense_arrays(name, dtype, shape):
    torch.manual_seed(1)
    x, y = (torch.randn(shape).to(dtype) for _ in range(2))
    beside = {**LAYOUTS, **OTHERS}[name]
    one, other = x.cuda(), beside(y.cuda())
    with cupy_standin.watch() as seen:
        found = one - other, other - one
    for result, expected in zip(found, (x - beside(y), beside(y) - x)):
        assert result.shape == expected.shape and result.is_contiguous()
        np.testing.assert_array_equal(result.cpu(), expected)
    if name in LAYOUTS and seen.launches:
        assert seen.launches == ["cygrad_subtract"] * 2


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", ["dense", "broadcast"])
def test_by_functions_of_cupys_in_c(name, how, gpu, monkeypatch):
    if hasattr(gpu.cuda.stream, "__pyx_capi__"):
        pytest.skip("this is the real CuPy, whose functions all tests use")
    with functions_in_c.installed(monkeypatch) as launched:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            found = FUNCTIONS[name](*operands(torch.float32, "cuda", how))
        stream.synchronize()
    assert launched and {one.stream for one in launched} == {stream.cuda_stream}
    expected = FUNCTIONS[name](*operands(torch.float32, "cpu", how))
    np.testing.assert_allclose(found.cpu(), expected, 2e-6, 2e-6, equal_nan=True)


def test_programs_by_functions_of_cupys_in_c(gpu, monkeypatch):
    if hasattr(gpu.cuda.stream, "__pyx_capi__"):
        pytest.skip("this is the real CuPy, whose functions all tests use")

    def step(device):
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.LayerNorm(24), torch.nn.Linear(24, 5)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        x, y = torch.randn(6, 16).to(device), torch.arange(6) % 5
        F.cross_entropy(model(x), y.to(device)).backward()
        optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    with functions_in_c.installed(monkeypatch) as launched:
        found = step("cuda")
    assert {"adam", "nll", "normalize_rows"} <= {one.name for one in launched}
    for one, other in zip(found, step("cpu")):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_kernels_are_kept_by_type_and_not_made_anew(gpu, monkeypatch):
    x = torch.ones(5, device="cuda", requires_grad=True)
    ((x * x + 1).exp() / 3).sum().backward()
    monkeypatch.setattr(gpu, "RawKernel", None)  # nothing is compiled again
    monkeypatch.setattr(gpu, "ElementwiseKernel", None)
    x.grad = None
    ((x * x + 1).exp() / 3).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * 7.389056 / 3] * 5, rel=1e-5)


def test_shapes_that_do_not_go_together():
    with pytest.raises(
        RuntimeError, match=r"^The size of tensor a \(3\) must match the size of tensor b \(4\) at non-s"
    ):
        torch.ones(2, 3, device="cuda") + torch.ones(4, device="cuda")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", ["dense", "strided"])
def test_bfloat16_is_computed_in_single_precision(name, how):
    pytest.importorskip("ml_dtypes")
    found, expected = (FUNCTIONS[name](*operands(torch.bfloat16, device, how)) for device in ("cuda", "cpu"))
    assert found.dtype == torch.bfloat16
    np.testing.assert_allclose(found.float().cpu(), expected.float(), 2e-2, 2e-2, equal_nan=True)


def test_distances_of_bfloat16():
    pytest.importorskip("ml_dtypes")
    x = torch.arange(12.0).reshape(4, 3).to(torch.bfloat16)
    assert torch.cdist(x.cuda(), x.cuda(), p=1).tolist() == torch.cdist(x, x, p=1).tolist()


def test_the_first_gradient_of_a_leaf_is_taken_over_unless_others_hold_it():
    x = torch.ones(3, 4, device="cuda", requires_grad=True)
    y, g = x.sigmoid(), torch.ones(3, 4, device="cuda")
    with cupy_standin.watch() as seen:
        y.backward(g)
    assert not seen.launches or seen.launches == ["cygrad_sigmoid_backward"]
    z = torch.ones(3, 4, device="cuda", requires_grad=True)
    z.view(12).backward(g.view(12))
    z.grad.zero_()
    assert g.sum().item() == 12  # the caller's gradient must not become `.grad` itself
