"""Training on two ranks against PyTorch's on gloo, from the same weights."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cygrad as torch
import cygrad.distributed as dist
from cygrad import nn
from cygrad.distributed._data_parallel.buckets import assignment_by_size
from cygrad.distributed._fake import simulate
from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from cygrad.distributed.fsdp import fully_shard
from cygrad.distributed.optim import ZeroRedundancyOptimizer
from cygrad.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.oracle

SIZE = 2
KINDS = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001},
    "unused": {"find_unused_parameters": True},
    "static": {"static_graph": True},
}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """What PyTorch's ranks make of random weights and data."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ranks")
    g = np.random.default_rng(0)
    shapes = [(16, 12), (16,), (16, 16), (16,), (4, 16), (4,)]
    given = {f"p{i}": g.standard_normal(shape, dtype=np.float32) * 0.3 for i, shape in enumerate(shapes)}
    given |= {"x": g.standard_normal((6, SIZE, 5, 12), dtype=np.float32), "y": g.integers(0, 4, (6, SIZE, 5))}
    given |= {"sizes": g.integers(1, 400, 40), "few": np.array([500, 3000]), "many": np.array([100, 200, 700, 50])}
    np.savez(folder / "given.npz", **given)
    program = Path(__file__).with_name("ranks_of_pytorch.py")
    ranks = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(SIZE), folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for rank in range(SIZE)
    ]
    try:
        for rank in ranks:
            output, _ = rank.communicate(timeout=100)
            assert rank.returncode == 0, output.decode()
    finally:
        for rank in ranks:
            rank.kill()
    return folder, given


def weights(folder, kind):
    stored = np.load(folder / f"{kind}.npz")
    return [stored[name] for name in stored.files]


def model(given):
    made = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    with torch.no_grad():
        for place, parameter in enumerate(made.parameters()):
            parameter.copy_(torch.from_numpy(given[f"p{place}"]))
    return made


def train(given, module, optimizer, steps=6):
    rank = dist.get_rank()
    for step in range(steps):
        x, y = torch.from_numpy(given["x"][step, rank]), torch.from_numpy(given["y"][step, rank])
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()


def compare(ours, theirs):
    for parameter, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(parameter, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_data_parallel(kind, theirs):
    folder, given = theirs

    def run():
        module = model(given)
        train(given, DistributedDataParallel(module, **KINDS[kind]), torch.optim.Adam(module.parameters(), lr=0.01))
        return [p.detach().numpy() for p in module.parameters()]

    for ours in simulate(run, SIZE):
        compare(ours, weights(folder, kind))


def test_zero(theirs):
    folder, given = theirs

    def run():
        module = DistributedDataParallel(model(given))
        train(given, module, ZeroRedundancyOptimizer(module.parameters(), torch.optim.Adam, lr=0.01))
        return [p.detach().numpy() for p in module.parameters()]

    for ours in simulate(run, SIZE):
        compare(ours, weights(folder, "zero"))


@pytest.mark.parametrize(
    ("kind", "options"), [("power", {}), ("power anew", {"warm_start": False, "use_error_feedback": False})]
)
def test_power_sgd(kind, options, theirs):
    """It starts at the same random numbers."""
    folder, given = theirs

    def run():
        module = model(given)
        wrapped = DistributedDataParallel(module)
        state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, random_seed=3, **options)
        wrapped.register_comm_hook(state, powerSGD_hook)
        train(given, wrapped, torch.optim.SGD(module.parameters(), lr=0.1))
        return [p.detach().numpy() for p in module.parameters()]

    for ours in simulate(run, SIZE):
        compare(ours, weights(folder, kind))


def test_join(theirs):
    folder, given = theirs

    def run():
        module = DistributedDataParallel(model(given))
        with module.join():
            train(given, module, torch.optim.SGD(module.parameters(), lr=0.1), 3 + 2 * dist.get_rank())
        return [p.detach().numpy() for p in module.parameters()]

    for ours in simulate(run, SIZE):
        compare(ours, weights(folder, "join"))


def test_fully_shard(theirs):
    folder, given = theirs

    def run():
        module = model(given)
        for layer in (module[0], module[2]):
            fully_shard(layer)
        fully_shard(module)
        train(given, module, torch.optim.Adam(module.parameters(), lr=0.01))
        shapes = [list(p.shape) for p in module.parameters()]
        return [p.full_tensor().numpy() for p in module.parameters()], shapes

    for rank, (ours, shapes) in enumerate(simulate(run, SIZE)):
        compare(ours, weights(folder, "sharded"))
        assert shapes == json.loads((folder / f"result-{rank}.json").read_text())["shapes"]


def test_buckets_and_errors(theirs):
    folder, given = theirs
    expected = [json.loads((folder / f"result-{rank}.json").read_text()) for rank in range(SIZE)]
    tensors = [torch.empty(n) for n in given["sizes"].tolist()]
    for limits, buckets in zip((given["few"], given["many"]), expected[0]["buckets"]):
        assert assignment_by_size(tensors, limits.tolist())[0] == buckets

    def first_line(make):
        try:
            make()
        except Exception as error:
            return [type(error).__name__, str(error).splitlines()[0]]
        return None

    def run():
        return [
            first_line(lambda: DistributedDataParallel(nn.ReLU())),
            first_line(lambda: DistributedDataParallel(nn.Linear(3, 3), device_ids=[0, 1])),
            first_line(lambda: DistributedDataParallel(nn.Linear(3, 3)).register_comm_hook(None, 3)),
            first_line(lambda: dist.init_device_mesh("cpu", (SIZE + 1,))),
        ]

    for rank, ours in enumerate(simulate(run, SIZE)):
        assert ours == expected[rank]["errors"]
