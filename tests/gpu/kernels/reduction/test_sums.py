"""Sums of integers, of arrays in other memory orders, and of losses: as on the CPU, in our own launches."""

import cupy_standin
import pytest
from cuda_kernels import runs_kernels

import cygrad as torch
import cygrad.nn.functional as F

pytestmark = runs_kernels


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def launches(function):
    with cupy_standin.watch() as seen:
        function()
    if not seen.launches:
        pytest.skip("only the stand-in tells of launches")
    return seen.launches


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("dims", [None, 0, 1])
def test_whole_numbers_are_summed_as_int64(dtype, dims):
    x = torch.randint(0, 100, (70, 301)).to(getattr(torch, dtype))
    found, expected = (t.sum() if dims is None else t.sum(dims) for t in (x.cuda(), x))
    assert found.dtype == torch.int64 and torch.equal(found.cpu(), expected)


def test_sums_of_large_whole_numbers():
    x = torch.full((3, 5000), 2**31 - 1, dtype=torch.int32, device="cuda")
    assert x.sum(1).tolist() == [5000 * (2**31 - 1)] * 3
    assert (x > 0).sum().item() == 15000
    assert set(launches(lambda: (x.sum(), (x > 0).sum(0)))) <= {"fold_rows", "fold_columns", "cupy_greater"}


@pytest.mark.parametrize("dims", [None, (0,), (1,), (2,), (0, 2), (1, -1), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0, 2), (2, 1, 0)])
def test_axes_in_another_order(dims, keepdim, order):
    x = torch.randn(5, 6, 7).permute(order)
    given = () if dims is None else (dims, keepdim)
    for name in ("sum", "mean", "amax"):
        found, expected = (getattr(t, name)(*given) for t in (x.cuda(), x))
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
        assert found.stride() == expected.stride()
    assert not [name for name in launches(lambda: x.cuda().sum(*given)) if name.startswith("cupy_sum")]


def test_parts_of_arrays_go_to_cupy():
    x = torch.randn(6, 8)
    for part in (lambda t: t[:, ::2], lambda t: t[1].expand(3, 8), lambda t: t.flip(1)[:, 1:5]):
        torch.testing.assert_close(part(x.cuda()).sum(0).cpu(), part(x).sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 33, 5000, 20_000])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_many_rows(rows, reduction):
    x, target = torch.randn(rows, 3), torch.arange(rows) % 4
    target[target == 3] = -100
    weight, found = torch.tensor([0.5, 1.0, 2.0]), []
    for device in ("cpu", "cuda"):
        given = x.to(device, copy=True).requires_grad_()
        loss = F.cross_entropy(given, target.to(device), weight.to(device), reduction=reduction)
        loss.sum().backward()
        found.append((loss.detach().cpu(), given.grad.cpu()))
    for mine, other in zip(*found):
        torch.testing.assert_close(other, mine, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_a_loss_takes_two_launches():
    x, target = torch.randn(50, 3, device="cuda"), torch.zeros(50, dtype=torch.int64, device="cuda")
    assert launches(lambda: F.nll_loss(x, target)) == ["nll", "reduce_losses"]
