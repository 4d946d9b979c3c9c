"""Modules on the device "meta": creation at any size, forward passes, and loading of weights."""

import copy
import tracemalloc

import pytest

import cygrad as torch
from cygrad import nn


def test_a_large_module_takes_no_memory():
    tracemalloc.start()
    try:
        with torch.device("meta"):
            layers = nn.ModuleList(nn.TransformerEncoderLayer(8192, 64, 4 * 8192, batch_first=True) for _ in range(80))
            wide = nn.Linear(10**5, 10**5)
        x = torch.empty(4, 2048, 8192, device="meta")
        for layer in layers[:2]:
            x = layer(x)
        loss = wide(torch.empty(3, 10**5, device="meta")).sum()
        loss.backward()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(p.numel() for p in layers.parameters()) > 60e9
    assert x.shape == (4, 2048, 8192) and wide.weight.grad.shape == (10**5, 10**5)
    assert most < 30e6


def test_forward_passes():
    image = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 5)
    ).to("meta")
    assert image(torch.empty(2, 3, 8, 8, device="meta")).shape == (2, 5)
    out, (h, c) = nn.LSTM(4, 6, 2, device="meta")(torch.empty(5, 2, 4, device="meta"))
    assert out.shape == (5, 2, 6) and h.shape == c.shape == (2, 2, 6)
    words = torch.empty(2, 7, dtype=torch.int64, device="meta")
    scores = nn.Embedding(10, 4, device="meta")(words) @ torch.empty(4, 10, device="meta")
    assert nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten()).shape == ()


def test_moving():
    module = nn.Linear(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        module.to("cpu")
    assert module.weight.is_meta
    assert module.to_empty(device="cpu").weight.is_cpu
    moved = nn.BatchNorm1d(3).to("meta")
    assert all(t.is_meta for t in (*moved.parameters(), *moved.buffers()))


def test_tied_parameters_stay_tied():
    module = nn.Sequential(nn.Linear(3, 3, device="meta"), nn.Linear(3, 3, device="meta"))
    module[1].weight = module[0].weight
    assert copy.deepcopy(module)[1].weight.is_meta
    module.to_empty(device="cpu")
    assert module[0].weight is module[1].weight


def test_loading():
    source, module = nn.Linear(2, 3), nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        module.load_state_dict({"weight": source.weight}, strict=False)
    assert module.weight.is_meta  # copying into it does nothing
    module.load_state_dict(source.state_dict(), assign=True)
    assert torch.equal(module.weight, source.weight) and module.weight.requires_grad
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor"):
        source.load_state_dict(nn.Linear(2, 3, device="meta").state_dict())


def test_skip_init():
    state = torch.get_rng_state()
    module = nn.utils.skip_init(nn.Linear, 2, 3)
    assert module.weight.is_cpu and module.weight.shape == (3, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert nn.utils.skip_init(nn.Linear, 2, 3, device="meta").weight.is_meta


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p),
    ],
)
def test_optimizers_step(make):
    real, meta = nn.Linear(2, 2), nn.Linear(2, 2, device="meta")
    optimizer = make([*real.parameters(), *meta.parameters()])
    before = real.weight.detach().clone()
    for module in (real, meta):
        module(torch.ones(1, 2, device=module.weight.device)).sum().backward()
    optimizer.step()
    assert not torch.equal(real.weight, before)
