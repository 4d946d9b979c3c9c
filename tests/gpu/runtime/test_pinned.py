"""Pinned memory and asynchronous copies, on a GPU or the stand-in."""

from typing import NamedTuple

import cupy_standin
import pytest

import cygrad as torch
from cygrad._kernels.gpu.runtime import pinned_memory
from cygrad.utils.data import DataLoader, TensorDataset


@pytest.fixture(autouse=True)
def gpu(cupy):
    yield cupy
    pinned_memory._in_flight.clear()


def test_tensors_are_pinned():
    x = torch.arange(6.0).reshape(2, 3).t()
    y = x.pin_memory()
    assert y.is_pinned()
    assert y.pin_memory() is y
    assert y[1:].is_pinned()  # and so is a view of it
    assert not x.is_pinned()
    assert not x.cuda().is_pinned()
    assert y.stride() == x.stride()
    assert y.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="^cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()
    with pytest.raises(RuntimeError, match=r"^CPU device type not an accelerator\."):
        x.pin_memory("cpu")
    w = torch.ones(2, requires_grad=True)
    (w.pin_memory() * 3).sum().backward()
    assert w.grad.tolist() == [3, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: torch.empty(3, **how),
        lambda **how: torch.zeros(3, **how),
        lambda **how: torch.full((3,), 2, **how),
        lambda **how: torch.tensor([1.0, 2], **how),
        lambda **how: torch.ones_like(torch.zeros(3), **how),
        lambda **how: torch.zeros(3).new_ones(3, **how),
        lambda **how: torch.zeros(3).new_tensor([1.0], **how),
    ],
)
def test_new_tensors_are_pinned(make):
    x = make(pin_memory=True)
    assert x.is_pinned()
    assert not make().is_pinned()
    assert not make(pin_memory=False).is_pinned()
    if "empty" not in make.__code__.co_names:
        assert x.tolist() == make().tolist()
    with pytest.raises(RuntimeError, match="^Only dense CPU tensors can be pinned"):
        make(pin_memory=True, device="cuda")


def test_what_can_not_pin_says_so():
    with pytest.raises(RuntimeError, match=r"call \.pin_memory\(\)"):
        torch.arange(3, pin_memory=True)


def waits(call):
    with cupy_standin.watch() as seen:
        call()
    return list(seen.synchronizations)


def test_copies_do_not_wait():
    x = torch.arange(4.0)
    p, g = x.pin_memory(), torch.zeros(4, device="cuda")
    found = []
    assert not waits(lambda: found.append(p.to("cuda", non_blocking=True)))
    assert not waits(lambda: found.append(p.cuda(non_blocking=True)))
    assert not waits(lambda: found.append(p.cuda(non_blocking=True).to("cpu", non_blocking=True)))
    assert not waits(lambda: found.append(g.copy_(p, non_blocking=True)))
    assert not waits(lambda: found.append(torch.empty(4, pin_memory=True).copy_(g, non_blocking=True)))
    torch.cuda.synchronize()
    assert [each.tolist() for each in found] == [x.tolist()] * 5
    assert [each.is_cuda for each in found] == [True, True, False, True, False]
    assert found[2].is_pinned()
    assert p.to("cuda", torch.float64, non_blocking=True).dtype == torch.float64
    half = torch.ones(4, dtype=torch.float16).pin_memory()
    assert g.copy_(half, non_blocking=True).tolist() == [1, 1, 1, 1]  # converted


def test_memory_is_kept_until_it_is_copied(monkeypatch):
    sent = torch.ones(4).pin_memory()
    sent.to("cuda", non_blocking=True)
    address = sent.data_ptr()
    del sent
    assert any(held.ctypes.data == address for _, held in pinned_memory._in_flight)
    torch.cuda.synchronize()
    torch.ones(4).pin_memory().to("cuda", non_blocking=True)
    assert all(held.ctypes.data != address for _, held in pinned_memory._in_flight)  # the first copy has completed


class Pair(NamedTuple):
    x: object
    name: str


class Own:
    def pin_memory(self):
        return "pinned"


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_its_batches(workers):
    data = TensorDataset(torch.arange(6.0), torch.arange(6))
    for x, y in DataLoader(data, 2, pin_memory=True, num_workers=workers):
        assert x.is_pinned()
        assert y.is_pinned()
        assert x.to("cuda", non_blocking=True).tolist() == y.tolist()
    (x, _), *_ = DataLoader(data, 2)
    assert not x.is_pinned()

    def collate(samples):
        return {"pair": Pair(torch.stack([x for x, _ in samples]), "a"), "list": [1, None, Own()]}

    for batch in DataLoader(data, 3, pin_memory=True, num_workers=workers, collate_fn=collate):
        assert batch["pair"].x.is_pinned()
        assert batch["pair"].name == "a"
        assert batch["list"] == [1, None, "pinned"]


def test_a_number_in_pinned_memory_is_sent_without_waiting():
    assert torch.tensor(1.5).pin_memory().to("cuda", non_blocking=True).tolist() == 1.5
