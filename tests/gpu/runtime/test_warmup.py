"""Kernels are compiled ahead of time, on a GPU or the stand-in."""

import cupy_standin
import pytest

import cygrad as torch
from cygrad.cuda import warming
from cygrad.cuda.warming import _ACTIVATIONS, _CALLS


@pytest.fixture(autouse=True)
def gpu(cupy):
    return cupy


def launched(call):
    if not cupy_standin.is_installed():
        pytest.skip("only the stand-in tells of launches")
    with cupy_standin.watch() as seen:
        call()
    return set(seen.launches)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_all_that_it_names_runs(dtype, monkeypatch):
    monkeypatch.setattr(warming, "_SHAPES", {})
    names = launched(lambda: torch.cuda.warmup(dtypes=[dtype]))
    assert len(names) > len(_CALLS)


def test_what_is_run_later_is_compiled():
    x = torch.full((5, 7), 0.5, device="cuda", requires_grad=True)
    warm = launched(lambda: torch.cuda.warmup(["gelu", "softmax", "layer_norm"]))
    later = launched(lambda: torch.softmax(torch.nn.functional.gelu(x), -1).sum().backward())
    kernels = {name for name in later if "cygrad" in name}
    assert kernels
    assert kernels <= warm


def test_rows_of_any_length_are_compiled(gpu, monkeypatch):
    torch.cuda.warmup(["softmax"])
    monkeypatch.setattr(gpu, "RawKernel", None)  # nothing is compiled again
    for length in (8, 5_000, 17_000, 66_000):
        x = torch.zeros(1, length, device="cuda", requires_grad=True)
        torch.softmax(x, -1).backward(torch.ones(1, length, device="cuda"))


def test_random_numbers_are_those_without():
    torch.cuda.manual_seed(3)
    expected = torch.rand(4, device="cuda").tolist()
    torch.cuda.manual_seed(3)
    torch.cuda.warmup(["dropout"])
    assert torch.rand(4, device="cuda").tolist() == expected


def test_names():
    with torch.no_grad():
        torch.cuda.warmup(["square", "Adam"], [torch.float64], "cuda:0")
    with pytest.raises(ValueError, match=r"^warmup\(\): there is no op named 'sotfmax'"):
        torch.cuda.warmup(["sotfmax"])
    for name in _ACTIVATIONS:
        assert hasattr(torch.nn.functional, name) or hasattr(torch, name)
