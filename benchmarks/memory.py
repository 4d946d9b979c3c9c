"""Measure the peak memory of training steps, beyond importing and a small first step; see README.md in this folder.

`python -m benchmarks.memory [PATTERN]` runs larger models and the statements of the main table with cygrad and PyTorch,
each in its own process. A pattern selects rows whose name contains it. With `--compiled`, it
runs them with cygrad alone, as they are written and compiled, and prints what the arrays of a step take at most, with
what the program keeps.
"""

from __future__ import annotations

import functools
import gc
import importlib
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import layers
from benchmarks.layers import FORWARD_BACKWARD, lenet, residual_block, transformer_block, with_model
from benchmarks.machine import limit_threads
from benchmarks.row import as_function
from benchmarks.rows import ROWS, STEP, network

STEPS = 10
# name: (statement, setup)
MODELS = {
    "784-1024-10, batch 2048, Adam": (STEP, network("Adam", 2048, (784, 1024, 10))),
    "LeNet, batch 512, SGD": (layers.STEP, lambda torch: lenet(torch, 512)),
    "transformer block 32x128x128, 4 heads": (
        FORWARD_BACKWARD,
        with_model(transformer_block, (32, 128, 128), (32, 128, 128)),
    ),
    "residual block 64x32x16x16, batch norm": (
        FORWARD_BACKWARD,
        with_model(residual_block, (64, 32, 16, 16), (64, 32, 16, 16)),
    ),
    **{row.name: (row.statement, row.setup) for row in ROWS if row.rival == "PyTorch"},
}


def main() -> None:
    """Print the table or, if called with a library and a model, one figure."""
    if sys.argv[1:2] == ["--compiled"]:
        print_compiled(sys.argv[2] if len(sys.argv) > 2 else "")
        return
    if len(sys.argv) == 3:
        print(peak(importlib.import_module(sys.argv[1]), sys.argv[2]))
        return
    print(f"{'peak memory in MB':43}{'cygrad':>8}{'PyTorch':>9}{'ratio':>7}   (at most 1)")
    for name in MODELS:
        if name.find(sys.argv[-1]) < 0 < len(sys.argv) - 1:
            continue
        ours, theirs = (_in_a_process(library, name) for library in ("cygrad", "torch"))
        print(f"{name:43}{ours / 1e6:8.1f}{theirs / 1e6:9.1f}{ours / max(theirs, 1):7.2f}", flush=True)


def _in_a_process(library: str, name: str) -> int:
    command = [sys.executable, "-m", "benchmarks.memory", library, name]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(torch: Any, name: str) -> int:
    """Return the growth of this process's resident memory in bytes."""
    limit_threads(1, torch)
    statement, setup = MODELS[name]
    small = torch.nn.Linear(2, 2)
    small(torch.ones(1, 2)).sum().backward()
    torch.optim.Adam(small.parameters()).step()
    before = _most()
    names = setup(torch)
    code = compile(statement, "<step>", "exec")
    for _ in range(STEPS):
        exec(code, names)
    return _most() - before


def print_compiled(pattern: str) -> None:
    """Print what the arrays of a step take at most beyond what is there before it: as it is written, and compiled."""
    torch = importlib.import_module("cygrad")
    limit_threads(1, torch)
    print(f"{'peak of the arrays of a step, in MB':43}{'eager':>8}{'compiled':>10}{'ratio':>7}   (at most 1)")
    for name, (statement, setup) in MODELS.items():
        if pattern not in name:
            continue
        names = setup(torch)
        source, clear = as_function(statement)
        exec(source, names)
        compiled = torch.compile(names["step"])
        eager = _peak_of_arrays(torch, names["step"], functools.partial(exec, clear, names), 3)
        replayed = _peak_of_arrays(torch, compiled, functools.partial(exec, clear, names), STEPS)
        replayed += sum(plan.program.memory for plan in compiled.explain().plans)
        note = "" if compiled.explain().replays else "   (not replayed)"
        print(f"{name:43}{eager / 1e6:8.2f}{replayed / 1e6:10.2f}{replayed / max(eager, 1):7.2f}{note}", flush=True)


def _peak_of_arrays(torch: Any, step: Callable[[], Any], clear: Callable[[], Any], calls: int) -> int:
    """Return the bytes that the last of some calls takes at most, beyond what is there before it."""
    for _ in range(calls):
        step()
        clear()
    gc.collect()
    before = torch.memory_stats()["allocated_bytes.all.current"]
    torch.reset_peak_memory_stats()
    step()
    clear()
    return int(torch.memory_stats()["allocated_bytes.all.peak"] - before)


def _most() -> int:
    """Return the peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
