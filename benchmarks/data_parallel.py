"""Time a training step of two processes against PyTorch's DistributedDataParallel on gloo; see README.md.

    python -m benchmarks.data_parallel [--processes 2] [--rounds 5] [--seconds 1.5] [--without-pytorch]
    python -m benchmarks.data_parallel --model       # the efficiency on paper, for 8 to 1,000 processes

For each model, cygrad's processes and PyTorch's are started alternately, with one thread each; a time is the median of
the steps of rank 0, and the ratio is the median over the rounds. `hidden` is the part of the communication that takes
place during backward: 1 - (time with reduction - time without) / time of the reduction alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

MODELS = {"784-128-10": 0.3, "transformer, width 64": 0.45, "transformer, width 256": 0.9}  # and the ratios we want
ORDERED = "784-128-10", "transformer, width 64"


def main() -> int:
    """Run as asked and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of steps in each process and round")
    parser.add_argument("--without-pytorch", action="store_true")
    parser.add_argument("--model", action="store_true", help="print the efficiency that a formula gives")
    parser.add_argument("--rank", nargs=4, help=argparse.SUPPRESS)  # library, model, way, seconds
    options = parser.parse_args()
    if options.model:
        print_paper_model()
    elif options.rank:
        library, model, way, seconds = options.rank
        run_rank(library, model, way, float(seconds))
    else:
        compare(options)
    return 0


# --- One rank -------------------------------------------------------------------------------------


def make(torch: Any, name: str) -> Any:
    """The model of this name."""
    nn: Any = torch.nn
    if name == "784-128-10":
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    width, depth = (64, 2) if name.endswith("64") else (256, 4)

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(64, width), nn.Parameter(torch.zeros(32, width))
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
                for _ in range(depth)
            )
            self.out = nn.Linear(width, 64)

        def forward(self, x: Any) -> Any:
            h = self.words(x) + self.places
            for layer in self.layers:
                h = layer(h)
            return self.out(h)

    return Transformer()


def batch(torch: Any, name: str, rank: int, step: int) -> tuple[Any, Any]:
    """The batch of one rank: 64 images, or 8 texts of 32 words."""
    g = np.random.default_rng((step, rank))
    x: Any
    y: Any
    if name == "784-128-10":
        x, y = g.standard_normal((64, 784), dtype=np.float32), g.integers(0, 10, 64)
    else:
        x, y = g.integers(0, 64, (8, 32)), g.integers(0, 64, 8 * 32)
    return torch.from_numpy(x), torch.from_numpy(y)


def run_rank(library: str, name: str, way: str, seconds: float) -> None:
    """Time steps as one rank, and print {"step": median in ms, ...} if it is rank 0.

    way: "alone" (without a wrapper), "reduced", "noop" (a hook that reduces nothing), "ordered" or "usual", which are
    four micro-batches with and without `deterministic`.
    """
    os.environ["CYGRAD_NUM_THREADS"] = "1"
    if library == "torch":
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gloo", f"file://{os.environ['STORE']}", rank=rank, world_size=size)
    else:
        import cygrad as torch
        import cygrad.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group()
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = module = make(torch, name)
    if way == "ordered":
        dist.deterministic(True, shards=4)
    if way != "alone":
        model = torch.nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=True)
    if way == "noop":
        from importlib import import_module

        hooks = import_module(
            f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.debugging_hooks"
            if library == "torch"
            else "cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks"
        )
        model.register_comm_hook(None, hooks.noop_hook)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    batches = [batch(torch, name, rank, step) for step in range(8)]
    parts = {"ordered": 4 // dist.get_world_size(), "usual": 4 // dist.get_world_size()}.get(way, 1)

    def step(number: int) -> None:
        optimizer.zero_grad()
        for part in range(parts):
            x, y = batches[(number + part) % 8]
            context = model.no_sync() if way == "usual" and part < parts - 1 else None
            if context is not None:
                context.__enter__()
            out = model(x)
            torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y).backward()
            if context is not None:
                context.__exit__(None, None, None)
        optimizer.step()

    result = {"step": timed(step, dist, torch, seconds)}
    if way == "reduced":
        flat = torch.zeros(sum(p.numel() for p in module.parameters()))
        result["reduction"] = timed(lambda _: dist.all_reduce(flat), dist, torch, seconds / 4)
        result["bytes"] = flat.numel() * 4
    if rank == 0:
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


def timed(step: Any, dist: Any, torch: Any, seconds: float) -> float:
    """The median time of a step in ms. All ranks take the same number of them."""
    for number in range(5):
        step(number)
    begun = time.perf_counter()
    for number in range(3):
        step(number)
    count = torch.tensor([max(5, int(3 * seconds / (time.perf_counter() - begun)))])
    dist.broadcast(count, 0)
    times = []
    for number in range(int(count)):
        before = time.perf_counter()
        step(number)
        times.append(time.perf_counter() - before)
    return statistics.median(times) * 1e3


# --- Both libraries -------------------------------------------------------------------------------


def started(library: str, name: str, way: str, options: argparse.Namespace) -> dict[str, float]:
    """Run all ranks of one library, and return what rank 0 prints."""
    own = ["-m", "benchmarks.data_parallel", "--rank", library, name, way, str(options.seconds)]
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    folder = tempfile.mkdtemp()
    environment = {**os.environ, **one_thread, "STORE": str(Path(folder) / "store")}
    size = options.processes
    if library == "cygrad":
        mpiexec = Path(sys.executable).parent / "mpiexec"
        line = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(size), sys.executable, *own]
        ranks = [subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True)]
    else:
        ranks = [
            subprocess.Popen(
                [os.environ.get("PYTORCH_PYTHON", sys.executable), *own],
                env={**environment, "RANK": str(rank), "WORLD_SIZE": str(size)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    shutil.rmtree(folder)
    result = next((line for line in outputs[0].splitlines() if line.startswith("{")), None)
    if result is None:  # gloo may abort a rank at its end, when the result is there
        sys.exit(f"{library} failed")
    return json.loads(result)


def compare(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Print the table; returns its rows, by model."""
    table = {}
    print(f"{options.processes} processes of one thread; medians of {options.rounds} rounds, in ms")
    print(f"{'':24}{'one':>8}{'cygrad':>9}{'PyTorch':>9}{'ratio':>7}{'target':>8}{'all_reduce':>12}{'hidden':>8}")
    for name, target in MODELS.items():
        rows = [_round(name, options) for _ in range(options.rounds)]
        middle = table[name] = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        hidden = 1 - (middle["reduced"] - middle["noop"]) / middle["reduction"]
        theirs = f"{middle['torch']:9.2f}{middle['ratio']:7.2f}" if "torch" in middle else " " * 16
        print(
            f"{name:24}{middle['alone']:8.2f}{middle['reduced']:9.2f}{theirs}{target:8.2f}"
            f"{middle['reduction']:12.3f}{hidden:8.0%}",
            flush=True,
        )
    print(f"\n{'four micro-batches':24}{'usual':>8}{'ordered':>9}{'ratio':>7}")
    for name in ORDERED:
        pairs = [
            [started("cygrad", name, way, options)["step"] for way in ("usual", "ordered")]
            for _ in range(options.rounds)
        ]
        usual, ordered = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:24}{usual:8.2f}{ordered:9.2f}{ratio:7.2f}", flush=True)
    return table


def _round(name: str, options: argparse.Namespace) -> dict[str, float]:
    """One time of each kind."""
    reduced = started("cygrad", name, "reduced", options)
    row = {"reduced": reduced["step"], "reduction": reduced["reduction"]}
    if not options.without_pytorch:
        row["torch"] = started("torch", name, "reduced", options)["step"]
        row["ratio"] = row["reduced"] / row["torch"]
    row["alone"] = started("cygrad", name, "alone", options)["step"]
    row["noop"] = started("cygrad", name, "noop", options)["step"]
    return row


# --- On paper -------------------------------------------------------------------------------------

Networks = dict[str, tuple[float, float]]
NETWORKS: Networks = {  # latency of a message in s, bytes per s
    "one machine, MPICH": (7e-6, 1.8e9),  # measured with two processes: 1 KB in 7 us, 100 MB in 57 ms
    "HPC network": (2e-6, 20e9),
    "100 Gbit Ethernet": (25e-6, 9e9),
    "10 Gbit Ethernet": (40e-6, 1.1e9),
}
LOADS: Networks = {  # bytes of gradients, seconds of a step, of which two thirds are backward
    "784-128-10": (0.407e6, 0.4e-3),
    "transformer, width 256": (12.8e6, 77e-3),
    "124 million parameters": (500e6, 3.0),
}
WORLDS = 8, 64, 256, 1000


def all_reduce_time(size: int, count: float, latency: float, bandwidth: float) -> float:
    """The time of an all-reduce of `count` bytes: the better of recursive doubling and Rabenseifner's algorithm."""
    steps = (size - 1).bit_length()
    doubling = steps * (latency + count / bandwidth)
    return min(doubling, 2 * steps * latency + 2 * (size - 1) / size * count / bandwidth)


def efficiency(size: int, count: float, step: float, latency: float, bandwidth: float, first: float = 2**20) -> float:
    """The time of a step alone by that with reduction, each process having a batch of its own.

    Buckets are reduced one after the other, each once its gradients are there; the last one, of the first layers, has
    nothing to hide behind.
    """
    if count <= first:  # one bucket, after backward
        return step / (step + all_reduce_time(size, count, latency, bandwidth))
    sizes, other = [first], min(max(first, count / 8), 25 * 2**20)
    while sum(sizes) < count:
        sizes.append(min(other, count - sum(sizes)))
    now, there, network = step / 3, step / 3, 0.0
    for bucket in sizes:
        there += bucket / count * step * 2 / 3
        network = max(network, there) + all_reduce_time(size, bucket, latency, bandwidth)
    now += step * 2 / 3
    return step / max(now, network)


def print_paper_model(networks: Networks = NETWORKS, loads: Networks = LOADS) -> None:
    """Print the efficiency for these networks and loads, and the worlds above."""
    print(f"{'':32}{'':24}" + "".join(f"{size:>9}" for size in WORLDS))
    for network, (latency, bandwidth) in networks.items():
        for load, (count, step) in loads.items():
            cells = "".join(f"{efficiency(size, count, step, latency, bandwidth):>9.1%}" for size in WORLDS)
            print(f"{network:32}{load:24}{cells}")


if __name__ == "__main__":
    sys.exit(main())
