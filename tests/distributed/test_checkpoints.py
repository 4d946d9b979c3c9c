"""Checkpoints of worlds of several ranks, read by worlds of other sizes."""

import os

import pytest
from support import checkpoint_checks as checks

import cygrad as torch
import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp
from cygrad.distributed._fake import simulate


@pytest.mark.parametrize("kind", ["sharded", "zero", "replicated"])
def test_other_numbers_of_ranks_go_on(kind, tmp_path):
    simulate(checks.trains_and_saves, 4, kind, tmp_path)
    files = sorted(os.listdir(tmp_path))
    assert sum(name.endswith(".safetensors") for name in files) == 4 and "index.json" in files
    results = {size: simulate(checks.loads, size, kind, tmp_path)[0] for size in (4, 3, 2, 1)}
    for size, result in results.items():
        assert result.keys() == results[4].keys()
        for name, value in result.items():
            torch.testing.assert_close(value, results[4][name], rtol=1e-4, atol=1e-4, msg=f"{name} with {size}")


def test_kinds_of_training_read_each_other(tmp_path):
    simulate(checks.trains_and_saves, 2, "replicated", tmp_path)
    a = simulate(checks.loads, 3, "sharded", tmp_path)[0]
    b = simulate(checks.loads, 3, "replicated", tmp_path)[0]
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_saving_in_another_thread(size, tmp_path):
    simulate(checks.trains_and_saves, size, "sharded", tmp_path / "a", 3, True)
    simulate(checks.trains_and_saves, size, "sharded", tmp_path / "b", 3, False)
    names = os.listdir(tmp_path / "a")
    assert not [name for name in names if name.endswith((".done", ".end", ".seen", ".part"))]
    a, b = (simulate(checks.loads, 2, "sharded", tmp_path / name)[0] for name in "ab")
    assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("size", [2, 3])
def test_a_rank_that_fails(size, tmp_path):
    simulate(checks.fails_in_one_rank, size, tmp_path)


def test_an_unfinished_checkpoint_is_none(tmp_path, monkeypatch):
    dcp.save({"w": torch.ones(2)}, checkpoint_id=tmp_path / "step-1")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        dcp.save({"w": torch.zeros(2)}, checkpoint_id=tmp_path / "step-2")
    with pytest.raises(KeyboardInterrupt):
        dcp.save({"w": torch.zeros(2)}, checkpoint_id=tmp_path / "step-1")
    monkeypatch.undo()
    assert dcp.latest(tmp_path) == str(tmp_path / "step-1") and dcp.latest(tmp_path / "none") is None
    state = {"w": torch.zeros(2)}
    dcp.load(state, checkpoint_id=tmp_path / "step-1")
    assert state["w"].tolist() == [1, 1]
    with pytest.raises(dcp.CheckpointException, match="index.json, which is written last, is missing"):
        dcp.load(state, checkpoint_id=tmp_path / "step-2")
    dcp.save({"w": torch.zeros(2)}, checkpoint_id=tmp_path / "step-1")
    assert len(os.listdir(tmp_path / "step-1")) == 2  # of what was given up nothing is left


@pytest.mark.parametrize(("shape", "dim"), [((7, 3), 0), ((5, 4), 1), ((2,), 0)])
def test_parts_for_all_numbers_of_ranks(shape, dim, tmp_path):
    sizes = (1, 2, 3, 5, 8)
    for a in sizes:
        simulate(checks.saves_rows, a, tmp_path / str(a), shape, dim)
        for b in sizes:
            simulate(checks.loads_rows, b, tmp_path / str(a), shape, dim)


def test_parts_of_large_worlds(tmp_path):
    simulate(checks.saves_rows, 256, tmp_path / "256", (300, 2), 0)
    simulate(checks.loads_rows, 64, tmp_path / "256", (300, 2), 0)
    simulate(checks.loads_rows, 3, tmp_path / "256", (300, 2), 0)


def test_odd_values(tmp_path):
    state = {
        "complex": torch.tensor([1j], dtype=torch.complex128),
        "half": torch.ones(2, dtype=torch.bfloat16),
        "none": None,
        "empty": {},
        "nested": {1: {"a": torch.tensor(3)}, "list": [torch.ones(1), {"b": 2}]},
        "strided": torch.arange(6).view(2, 3).T,
    }
    dcp.save(state, checkpoint_id=tmp_path)
    loaded: dict = {}
    dcp.load(loaded, checkpoint_id=tmp_path, planner=dcp._planning._EmptyStateDictLoadPlanner())
    assert str(loaded) == str(state)
    assert not dist.is_initialized()
