"""Sums and extrema of many elements, including few results: as on the CPU, in two launches at most."""

import cupy_standin
import numpy as np
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels.gpu.launch import reduction_program

pytestmark = [pytest.mark.filterwarnings("ignore:var"), runs_kernels]


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def drawn(shape, dtype=torch.float32, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(values.astype(np.float32)).to(dtype)


# Few and many rows and columns, for each way of building a grid.
SHAPES = {
    "few long rows": ((2, 70_003), (1,)),
    "many short rows": ((300, 7), (1,)),
    "many rows": ((40, 5_000), (1,)),
    "few columns": ((30_011, 3), (0,)),
    "columns": ((500, 200), (0,)),
    "in the middle": ((3, 400, 5), (1,)),
    "channels": ((4, 3, 50, 6), (0, 2, 3)),
    "ones": ((1, 6, 1), (0, 2)),
    "no axis of more than one": ((5, 1), (1,)),
    "all": ((17, 1_001), (0, 1)),
}
FUNCTIONS = {
    "sum": lambda x, dims: x.sum(dims),
    "mean": lambda x, dims: x.mean(dims, keepdim=True),
    "var": lambda x, dims: x.var(dims),
    "norm": lambda x, dims: torch.linalg.vector_norm(x, 2, dims),
    "norm 1": lambda x, dims: torch.linalg.vector_norm(x, 1, dims, keepdim=True),
    "norm 0": lambda x, dims: torch.linalg.vector_norm(x, 0, dims),
    "norm inf": lambda x, dims: torch.linalg.vector_norm(x, float("inf"), dims),
    "norm -inf": lambda x, dims: torch.linalg.vector_norm(x, -float("inf"), dims),
    "norm 3": lambda x, dims: torch.linalg.vector_norm(x, 3, dims),
    "logsumexp": lambda x, dims: x.logsumexp(dims),
    "amax": lambda x, dims: x.amax(dims),
    "amin": lambda x, dims: x.amin(dims, keepdim=True),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_on_the_cpu(name, shape):
    lengths, dims = SHAPES[shape]
    x = drawn(lengths)
    found, expected = FUNCTIONS[name](x.cuda(), dims), FUNCTIONS[name](x, dims)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    bound = 1e-4 * max(1, float(expected.abs().max())) if expected.isfinite().all() else 1e-4
    np.testing.assert_allclose(found.cpu(), expected, 1e-5, bound, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", ["few long rows", "few columns", "channels"])
def test_other_types(dtype, shape):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    lengths, dims = SHAPES[shape]
    x = drawn(lengths, getattr(torch, dtype))
    for name in ("sum", "var", "amax"):
        found, expected = FUNCTIONS[name](x.cuda(), dims), FUNCTIONS[name](x.double(), dims)
        assert found.dtype == x.dtype
        bound = {"float16": 2e-3, "bfloat16": 2e-2}[dtype]
        largest = max(1, float(expected.abs().max()))
        np.testing.assert_allclose(found.cpu().double(), expected, bound, bound * largest, err_msg=name)


def test_sums_of_float16_do_not_stop_at_2048():
    ones = torch.ones(3, 60_000, dtype=torch.float16, device="cuda")
    assert ones.sum(1).tolist() == [60_000.0] * 3 and ones.t().contiguous().sum(0).tolist() == [60_000.0] * 3


@pytest.mark.parametrize("first", [1, 2, 3])
def test_memory_that_begins_anywhere_and_orders_that_do_not_depend_on_it(first):
    x = drawn((3 * 9_001 + 4,)).cuda()
    part = x[first : first + 3 * 9_001]
    assert torch.equal(part.reshape(3, -1).sum(1), part.clone().reshape(3, -1).sum(1))
    assert torch.equal(part.sum(), part.clone().sum())
    rows = part[:27_000].reshape(27, -1)
    for function in (torch.sum, torch.softmax, torch.logsumexp, torch.std):
        assert torch.equal(function(rows, 1), function(rows.clone(), 1))
    assert torch.equal(rows.sum(), rows.clone().sum())


def test_nan_and_infinity():
    x = drawn((2, 20_000))
    x[0, 15_000] = float("nan")
    for name in ("amax", "amin", "sum", "norm inf"):
        found = FUNCTIONS[name](x.cuda(), (1,))
        assert found.reshape(-1).isnan().tolist() == [True, False]
    x[:] = -float("inf")
    assert x.cuda().amax(1).tolist() == x.cuda().logsumexp(1).tolist() == [-float("inf")] * 2
    assert torch.ones(1, device="cuda").var().isnan() and torch.empty(0, device="cuda").mean().isnan()
    assert torch.zeros(2, 0, device="cuda").sum(1).tolist() == [0.0, 0.0]


def test_two_launches_where_few_results_have_many_elements():
    x, rows = torch.ones(2, 1 << 17, device="cuda"), torch.ones(64, 64, device="cuda")
    with cupy_standin.watch() as seen:
        x.sum(1), x.t().contiguous().sum(0), rows.sum(1)
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in tells of launches")
    assert seen.launches.count("fold_rows") == 2 and seen.launches.count("fold_columns") == 2
    assert seen.launches[-1] == "row_sums"


def test_parts_cover_every_element_once(gpu):
    for n in (8_191, 8_192, 16_384, 40_000, 100_001):
        x = gpu.ones((1, n), np.float32)
        assert (
            reduction_program.folded(x, (1,), "sum").tolist()
            == reduction_program.folded(x.reshape(n, 1), (0,), "sum").tolist()
            == [n]
        )
        three = gpu.ones((n, 3), np.float32)
        assert reduction_program.folded(three, (0,), "sum", scale=0.5).tolist() == [n / 2] * 3


LONG = {
    "softmax": lambda x: x.reshape(3, -1).softmax(-1) * 1000,
    "log_softmax": lambda x: x.reshape(3, -1).log_softmax(-1),
    "batch norm": lambda x: F.batch_norm(x, None, None, x.new_ones(3) * 2, x.new_ones(3), True),
    "group norm": lambda x: F.group_norm(x, 3),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("images", [1, 2])
def test_few_long_rows_forward_and_backward(name, images):
    x, grads = drawn((images, 3, 257, 256)), []
    expected = LONG[name](x)
    for device in ("cuda", "cpu"):
        own = x.to(device).requires_grad_()
        found = LONG[name](own)
        np.testing.assert_allclose(found.detach().cpu(), expected, 1e-4, 1e-4)
        found.backward(drawn(found.shape, seed=1).to(device))
        grads.append(own.grad.cpu())
    np.testing.assert_allclose(*grads, 1e-3, 1e-3 * float(grads[1].abs().max()))
