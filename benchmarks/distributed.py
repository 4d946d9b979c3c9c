"""Measure what docs/data_parallel.md states of several processes, in eight minutes of a quiet machine; see README.md.

    python -m benchmarks.distributed [--processes 2] [--rounds 5] [--seconds 0.8]

It runs `benchmarks.collectives` and `benchmarks.data_parallel`, and puts what they measure, the latency and bandwidth
of this machine and the time of a step, into the model on paper. At the end it says which ratios are above their
targets. PyTorch must be in the same environment, as the collectives of both run in the same processes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks import collectives, data_parallel

BYTES = {"1 KB": 1 << 10, "100 MB": 100 << 20}


def main() -> int:
    """Run as asked and return the exit status: 1 if a ratio is above its target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8, help="of steps in each process and round")
    options = parser.parse_args()
    options.without_pytorch = False
    begin = perf_counter()
    print(f"load {os.getloadavg()[0]:.2f} at the beginning, {os.cpu_count()} processors\n", flush=True)
    times, ratios = measured_collectives(options.processes)
    print(flush=True)
    steps = data_parallel.compare(options)
    for name, row in steps.items():
        ratios[name] = row["ratio"], data_parallel.MODELS[name]
    latency, bandwidth = constants(times, options.processes)
    print(f"\nthis machine: {latency * 1e6:.1f} us, {bandwidth / 1e9:.2f} GB/s", flush=True)
    networks = {"this machine, MPICH": (latency, bandwidth)}
    networks |= {name: each for name, each in data_parallel.NETWORKS.items() if "machine" not in name}
    loads = {
        name: (count, steps[name]["alone"] / 1e3 if name in steps else step)
        for name, (count, step) in data_parallel.LOADS.items()
    }
    data_parallel.print_paper_model(networks, loads)
    above = [f"{name}: {ratio:.3f}, target {target}" for name, (ratio, target) in ratios.items() if ratio > target]
    print(f"\n{(perf_counter() - begin) / 60:.1f} minutes; load {os.getloadavg()[0]:.2f} at the end")
    print("above their targets: " + ("; ".join(above) or "none"))
    return 1 if above else 0


def measured_collectives(processes: int) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Run and show `benchmarks.collectives`; returns cygrad's times in seconds, and the ratios with their targets."""
    line = [sys.executable, "-m", "benchmarks.collectives", "--processes", str(processes)]
    done = subprocess.run(line, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="", flush=True)
    rows = re.findall(r"^ *(\S+ [KM]B) +(\S+) ms +\S+ ms +(\S+) +target", done.stdout, re.M)
    targets = {name: target for name, (_, _, target) in collectives.SIZES.items()}
    if {name for name, _, _ in rows} != {*targets}:
        sys.exit("the collectives gave no ratios: is PyTorch in this environment?")
    times = {name: float(own) / 1e3 for name, own, _ in rows}
    return times, {f"all_reduce of {name}": (float(ratio), targets[name]) for name, _, ratio in rows}


def constants(times: dict[str, float], size: int) -> tuple[float, float]:
    """Latency and bandwidth with which the model gives the times measured of the smallest and the largest array."""
    steps = (size - 1).bit_length()
    latency = times["1 KB"] / steps
    moved = min(steps, 2 * (size - 1) / size) * BYTES["100 MB"]
    return latency, moved / max(times["100 MB"] - steps * latency, 1e-9)


if __name__ == "__main__":
    sys.exit(main())
