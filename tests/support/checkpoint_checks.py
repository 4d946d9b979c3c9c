"""Saving and loading by worlds of different sizes: functions that every rank runs."""

import os

import numpy as np
import pytest
from support import data_parallel_checks as base
from support import sharding_checks

import cygrad as torch
import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp
from cygrad.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from cygrad.distributed.optim import ZeroRedundancyOptimizer
from cygrad.nn.parallel import DistributedDataParallel


def made(kind, seed=0):
    """A model and its optimizer, spread in some way."""
    model = base.transformer(seed)
    if kind == "sharded":
        model = sharding_checks.sharded(lambda: model)
        return model, torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    model = DistributedDataParallel(model) if dist.is_initialized() else model
    if kind == "zero":
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01, eps=1e-3)
    return model, torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)


def step(model, optimizer, number, batches=12):
    """A step with this rank's part of a batch of 12, so that worlds of 1, 2, 3 and 4 do the same."""
    rank, size = dist.get_rank(), dist.get_world_size()
    g = np.random.default_rng(number)
    x, y = g.integers(0, 11, (batches, 6)), g.integers(0, 11, (batches, 6))
    own = slice(rank * batches // size, (rank + 1) * batches // size)
    optimizer.zero_grad()
    base.loss_of(model(torch.from_numpy(x[own])), torch.from_numpy(y[own].reshape(-1))).backward()
    optimizer.step()


def state_of(model, optimizer, number):
    model_state, optim_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optim": optim_state, "step": number, "note": ["a", 1]}


def trains_and_saves(kind, directory, steps=3, is_async=False):
    model, optimizer = made(kind)
    for number in range(steps):
        step(model, optimizer, number)
    state = state_of(model, optimizer, steps)
    if is_async:
        future = dcp.async_save(state, checkpoint_id=directory)
        step(model, optimizer, 99)  # goes on meanwhile; what is saved is what was
        assert future.result() is not None
        dist.barrier()
    else:
        dcp.save(state, checkpoint_id=directory)


def loads(kind, directory, steps=3):
    """Load, check, and go on for a step; returns the whole state after it, in rank 0."""
    model, optimizer = made(kind, seed=7)
    step(model, optimizer, 50)  # so that the optimizer has a state
    state = state_of(model, optimizer, 0)
    dcp.load(state, checkpoint_id=directory)
    assert state["step"] == steps and state["note"] == ["a", 1]
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    step(model, optimizer, steps)
    options = StateDictOptions(full_state_dict=True)
    if kind == "zero":
        optimizer.consolidate_state_dict()
        return {name: value.clone() for name, value in model.module.state_dict().items()}
    full, optim = get_state_dict(model, optimizer, options=options)
    return {**full, **{f"{n}.{k}": v for n, values in optim["state"].items() for k, v in values.items()}}


def fails_in_one_rank(directory):
    class Broken(dcp.FileSystemWriter):
        def write_part(self, rank, token, tensors, values):
            if rank == dist.get_world_size() - 1:
                raise OSError(28, "No space left on device")
            return super().write_part(rank, token, tensors, values)

    dcp.save({"w": torch.ones(3), "v": torch.ones(4)}, checkpoint_id=directory)
    before = sorted(os.listdir(directory))
    with pytest.raises(dcp.CheckpointException, match="No space left") as caught:
        dcp.save({"w": torch.zeros(3), "v": torch.zeros(4)}, storage_writer=Broken(directory))
    assert list(caught.value.failures) == [dist.get_world_size() - 1]
    dist.barrier()
    state = {"w": torch.zeros(3), "v": torch.zeros(4)}
    dcp.load(state, checkpoint_id=directory)
    assert state["w"].tolist() == [1] * 3 and set(before) <= set(os.listdir(directory))
    with pytest.raises(dcp.CheckpointException, match="w has shape|shape"):
        dcp.save({"w": torch.ones(3 + dist.get_rank())}, checkpoint_id=directory)
    missing = {"w": torch.zeros(3), "other" if dist.get_rank() else "v": torch.zeros(4)}
    with pytest.raises(dcp.CheckpointException, match="Missing key"):
        dcp.load(missing, checkpoint_id=directory)
    assert missing["w"].tolist() == [0] * 3


def saves_rows(directory, shape, size_of_rows):
    from cygrad.distributed.tensor import Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.arange(float(np.prod(shape))).view(shape)
    dcp.save({"x": distribute_tensor(whole, mesh, [Shard(size_of_rows)])}, checkpoint_id=directory)


def loads_rows(directory, shape, dim):
    from cygrad.distributed.tensor import Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.arange(float(np.prod(shape))).view(shape)
    state = {"x": distribute_tensor(torch.zeros(shape), mesh, [Shard(dim)])}
    dcp.load(state, checkpoint_id=directory)
    expected = distribute_tensor(whole, mesh, [Shard(dim)])
    assert torch.equal(state["x"].to_local(), expected.to_local())
