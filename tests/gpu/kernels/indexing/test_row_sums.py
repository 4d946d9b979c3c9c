"""Row-wise functions for rows of every length: held in registers or not, loaded in 16 bytes or by element."""

import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F
from cygrad._kernels.gpu.launch.row_program import RowProgram

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def cross_entropy(x):
    return F.cross_entropy(x, torch.tensor([1, 7, -100], device=x.device), reduction="none")


def layer_norm(x):
    n = x.shape[-1]
    weight = torch.linspace(0.5, 2.0, n, dtype=x.dtype, device=x.device)
    return F.layer_norm(x, (n,), weight, weight - 1)


def batch_norm(x):
    return F.batch_norm(x[None], None, None, training=True)


def softmax(x):
    return x.softmax(-1)


FUNCTIONS = softmax, layer_norm, cross_entropy, batch_norm
LENGTHS = {softmax: (12, 13, 4097, 16400), layer_norm: (9001,), cross_entropy: (13,), batch_norm: (9, 90)}
CASES = [(function, 600, dtype) for function in FUNCTIONS for dtype in (torch.float32, torch.float16)]
CASES += [(function, n, torch.float32) for function in FUNCTIONS for n in LENGTHS[function]]


@pytest.mark.parametrize("function, n, dtype", CASES)
def test_rows_are_those_of_the_cpu(function, n, dtype):
    given = torch.randn(3, n).to(dtype)
    weights = torch.linspace(-1, 1, 3 * n).reshape(3, n)
    found = []
    for device in ("cpu", "cuda"):
        x = given.to(device, copy=True).requires_grad_()
        y = function(x).float()
        (y * (weights.to(device) if y.ndim > 1 else weights[:, 0].to(device))).sum().backward()
        found += [(y.detach().cpu(), x.grad.float().cpu())]
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 5e-3}
    for mine, other in zip(*found):
        torch.testing.assert_close(other, mine, **tolerance)


LONG = 1 << 16


def rms_norm(x):
    n = x.shape[-1]
    return F.rms_norm(x, (n,), torch.linspace(0.5, 2.0, n, dtype=x.dtype, device=x.device))


def nll(x):
    weight = torch.linspace(0.5, 2.0, x.shape[-1], dtype=x.dtype, device=x.device)
    return F.nll_loss(x, torch.tensor([1, LONG - 1, -100], device=x.device), weight)


def weighted(x):
    weight = torch.linspace(0.5, 2.0, x.shape[-1], dtype=x.dtype, device=x.device)
    return F.cross_entropy(x, torch.tensor([LONG - 1, -100, 7], device=x.device), weight)


OF_LONG_ROWS = {
    "softmax": softmax,
    "log_softmax": lambda x: x.log_softmax(-1),
    "columns": lambda x: x.t().softmax(0).t(),
    "planes": lambda x: x.view(1, 3, -1).swapaxes(1, 2).contiguous().log_softmax(1)[0].t(),
    "layer_norm": layer_norm,
    "layer_norm alone": lambda x: F.layer_norm(x, x.shape[1:]),
    "rms_norm": rms_norm,
    "rms_norm alone": lambda x: F.rms_norm(x, x.shape[1:]),
    "cross_entropy": cross_entropy,
    "weighted": weighted,
    "nll": nll,
    "group_norm": lambda x: F.group_norm(x.view(1, 3, -1), 3)[0],
}


@pytest.mark.parametrize("name", OF_LONG_ROWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_few_long_rows_are_shared_by_blocks(name, dtype, monkeypatch):
    """Neither forward nor backward uses a program with a single block for a long row."""
    launch = RowProgram.launch

    def with_short_rows(self, dtype, blocks, threads, args, **macros):
        *_, length = args
        assert length <= 1 << 12, f"one block: {self.name}"
        return launch(self, dtype, blocks, threads, args, **macros)

    monkeypatch.setattr(RowProgram, "launch", with_short_rows)
    given = (torch.randn(3, LONG) * 2).to(dtype)
    weights, found = torch.linspace(-1, 1, LONG), []
    for device in ("cpu", "cuda"):
        x = given.to(device, torch.float64 if device == "cpu" else dtype, copy=True).requires_grad_()
        y = OF_LONG_ROWS[name](x).float()
        (y * weights.to(device) if y.ndim > 1 else y).sum().backward()
        found += [(y.detach().cpu(), x.grad.float().cpu())]
    bound = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    for mine, other in zip(*found):
        torch.testing.assert_close(other, mine, rtol=bound, atol=bound * float(mine.abs().max()))


def test_rows_that_begin_anywhere(monkeypatch):
    """Threads add the same elements wherever rows begin; only how these are loaded depends on that."""
    seen, launch = [], RowProgram.launch

    def noted(self, *args, **macros):
        seen.append((macros["PACK"], macros["ALIGNED"]))
        return launch(self, *args, **macros)

    monkeypatch.setattr(RowProgram, "launch", noted)
    base = torch.randn(2 * 600 + 1)
    for start in (0, 1):
        x = base[start : start + 1200].reshape(2, 600)
        on_gpu = base.cuda()[start : start + 1200].reshape(2, 600)
        torch.testing.assert_close(on_gpu.softmax(-1).cpu(), x.softmax(-1))
        assert seen == [(4, int(start == 0))]
        seen.clear()
