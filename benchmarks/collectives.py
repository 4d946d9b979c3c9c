"""Time `all_reduce` between processes of this machine against PyTorch's gloo; see README.md.

    python -m benchmarks.collectives [--processes N]

All processes run both, one after the other for each size, so that what slows the machine slows both.
"""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

SIZES = {"1 KB": (1 << 8, 400, 0.1), "1 MB": (1 << 18, 40, 0.3), "100 MB": (25 * (1 << 20), 3, 0.8)}
ROUNDS = 5


def main() -> None:
    """Start the processes, or, in one of them, measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    processes = parser.parse_args().processes
    if "TORCHELASTIC_RUN_ID" in os.environ:
        measure()
        return
    from cygrad.distributed.run import main as run  # in the other processes, MPI has started them

    run(["--nproc-per-node", str(processes), "-m", "benchmarks.collectives"])


def measure() -> None:
    """Print a line for each size: the median times, and the median ratio of neighboring rounds."""
    import cygrad
    import cygrad.distributed as own

    own.init_process_group("mpi")
    rivals: list[Any] = [(cygrad, own)]
    if find_spec("torch") is not None:
        import torch  # optional: without it there is nothing to compare with

        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo")
        rivals.append((torch, torch.distributed))
    if own.get_rank() == 0:
        print(f"{own.get_world_size()} processes    " + "".join(f"{name:>12}" for name in ("cygrad", "gloo", "ratio")))
    for name, (elements, times, target) in SIZES.items():
        rounds = [[one_round(library, dist, elements, times) for library, dist in rivals] for _ in range(ROUNDS)]
        if own.get_rank() == 0:
            shown = "".join(f"{median(each) * 1e3:9.3f} ms" for each in zip(*rounds))
            ratio = f"{median(each[0] / each[1] for each in rounds):12.3f}" if len(rivals) == 2 else ""
            print(f"{name:>12}    {shown}{ratio}    target {target}", flush=True)
    for _, dist in reversed(rivals):  # gloo's threads end the program badly if they are left alone
        dist.barrier()
        dist.destroy_process_group()


def one_round(library: Any, dist: Any, elements: int, times: int) -> float:
    """The median time of so many calls, after one that is not counted."""
    x = library.ones(elements)
    dist.barrier()
    found = []
    for _ in range(times + 1):
        x.fill_(1)
        begin = perf_counter()
        dist.all_reduce(x)
        found.append(perf_counter() - begin)
    return median(found[1:])


if __name__ == "__main__":
    main()
