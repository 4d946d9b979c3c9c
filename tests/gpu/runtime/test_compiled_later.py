"""Compiled functions on a GPU whose backward pass comes later: all that holds for those in main memory, and the rest."""

import itertools
import weakref

import pytest
from compile import test_later_backward as later
from cupy_standin import compiler

import cygrad as torch
from cygrad import nn
from cygrad._core.replay.parts import pass_over
from cygrad._kernels.device import cupy_library, gpu_forms

pytestmark = pytest.mark.skipif(
    compiler.compiler() is None and not cupy_library.is_available(),
    reason="kernels run by a C++ compiler: there is none",
)

on_cpu = later.bits
MAKERS = ("rand", "randn", "ones", "full", "zeros", "tensor")


def bits(tensor):
    """What tells two tensors apart."""
    return tensor.device, tensor.shape, on_cpu(tensor.detach().cpu())


class OnGpu:
    """The package, with a GPU as the place where tensors are made and random numbers drawn."""

    def __init__(self):
        self.get_rng_state, self.set_rng_state = torch.cuda.get_rng_state, torch.cuda.set_rng_state

    def __getattr__(self, name):
        found = getattr(torch, name)
        return (lambda *args, **kwargs: found(*args, device="cuda", **kwargs)) if name in MAKERS else found


class GpuPair(later.Pair):
    def __init__(self, make=later.network, optimizer="SGD"):
        super().__init__(lambda: make().cuda(), optimizer)


@pytest.fixture(autouse=True)
def gpu(cupy, monkeypatch):
    monkeypatch.setattr(later, "Pair", GpuPair)
    monkeypatch.setattr(later, "cygrad", OnGpu())
    monkeypatch.setattr(later, "bits", bits)
    yield cupy
    torch.compiler.reset()
    assert not gpu_forms.captures


def cases():
    """All tests of functions in main memory, with their parameters."""
    for name, function in vars(later).items():
        if not name.startswith("test_"):
            continue
        marks = [mark.args[:2] for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
        for values in itertools.product(*(list(found) for _, found in marks)):
            given = dict(zip((key for key, _ in marks), values))
            yield pytest.param(function, given, id="-".join([name, *(getattr(v, "__name__", str(v)) for v in values)]))


@pytest.mark.parametrize(("function", "given"), list(cases()))
def test_as_in_main_memory(function, given):
    function(**given)
