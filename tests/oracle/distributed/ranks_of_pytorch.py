"""ranks_of_pytorch.py RANK SIZE FOLDER: a rank of PyTorch's on gloo, which trains as FOLDER/given.npz says.

Writes what comes of it to FOLDER/result-RANK.json and the weights to FOLDER/KIND.npz.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=size)
given = np.load(folder / "given.npz")


def model():
    made = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    with torch.no_grad():
        for place, parameter in enumerate(made.parameters()):
            parameter.copy_(torch.from_numpy(given[f"p{place}"]))
    return made


def train(module, optimizer, steps=6):
    for step in range(steps):
        x, y = torch.from_numpy(given["x"][step, rank]), torch.from_numpy(given["y"][step, rank])
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()


def keep(kind, tensors):
    if rank == 0:
        np.savez(folder / f"{kind}.npz", *[each.detach().numpy() for each in tensors])


def first_line(make):
    try:
        make()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    return None


for kind, options in (
    ("plain", {}),
    ("views", {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.001}),
    ("unused", {"find_unused_parameters": True}),
    ("static", {"static_graph": True}),
):
    module = model()
    train(DistributedDataParallel(module, **options), torch.optim.Adam(module.parameters(), lr=0.01))
    keep(kind, module.parameters())
module = model()
wrapped = DistributedDataParallel(module)
train(wrapped, ZeroRedundancyOptimizer(wrapped.parameters(), torch.optim.Adam, lr=0.01))
keep("zero", module.parameters())
for kind, options in (("power", {}), ("power anew", {"warm_start": False, "use_error_feedback": False})):
    module = model()
    wrapped = DistributedDataParallel(module)
    state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, random_seed=3, **options)
    wrapped.register_comm_hook(state, powerSGD_hook)
    train(wrapped, torch.optim.SGD(module.parameters(), lr=0.1))
    keep(kind, module.parameters())
module = model()
wrapped = DistributedDataParallel(module)
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
with wrapped.join():
    train(wrapped, optimizer, steps=3 + 2 * rank)
keep("join", module.parameters())
module = model()
for layer in (module[0], module[2]):
    fully_shard(layer)
fully_shard(module)
optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
train(module, optimizer)
keep("sharded", [parameter.full_tensor() for parameter in module.parameters()])
shapes = [list(parameter.to_local().shape) for parameter in module.parameters()]

tensors = [torch.empty(n) for n in given["sizes"].tolist()]
buckets = [
    dist._compute_bucket_assignment_by_size(tensors, limits.tolist())[0] for limits in (given["few"], given["many"])
]
errors = [
    first_line(lambda: DistributedDataParallel(nn.ReLU())),
    first_line(lambda: DistributedDataParallel(nn.Linear(3, 3), device_ids=[0, 1])),
    first_line(lambda: DistributedDataParallel(nn.Linear(3, 3)).register_comm_hook(None, 3)),
    first_line(lambda: dist.init_device_mesh("cpu", (size + 1,))),
]  # fmt: skip
(folder / f"result-{rank}.json").write_text(json.dumps({"shapes": shapes, "buckets": buckets, "errors": errors}))
dist.barrier()
dist.destroy_process_group()
