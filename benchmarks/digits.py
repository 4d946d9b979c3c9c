"""Time all of examples/digits.py against the same script with `import torch`; see README.md.

    python -m benchmarks.digits [--epochs N] [--rounds N] [--threads N]

The libraries alternate in one process, each for all 40 epochs with their tests. Without PyTorch, only cygrad is timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from benchmarks.machine import describe, limit_threads

SCRIPT = Path(__file__).resolve().parent.parent / "examples" / "digits.py"
OURS = "import cygrad as torch\nfrom cygrad import nn, viz\n"
THEIRS = "import torch\nfrom torch import nn\nfrom cygrad import viz\n"
TARGET = 0.5


def training(library: str) -> Callable[[int, int], float]:
    """Return `run(epochs, seed)`, which trains a new model with "cygrad" or "torch" and returns the test accuracy."""
    source = SCRIPT.read_text(encoding="utf-8")
    if source.count(OURS) != 1:
        raise ValueError(f"{SCRIPT} does not import cygrad as expected: {OURS!r}")
    script = ModuleType(f"digits_on_{library}")
    exec(compile(source.replace(OURS, OURS if library == "cygrad" else THEIRS), SCRIPT, "exec"), vars(script))
    script.tqdm = partial(script.tqdm, disable=True)  # type: ignore[attr-defined]
    data = script.Data()

    def run(epochs: int, seed: int) -> float:
        script.torch.manual_seed(seed)
        _, _, read = script.train(data, epochs)
        accuracy: float = script.accuracy(data, read)
        return accuracy

    return run


def main() -> int:
    """Train alternately, print times, ratio and accuracy, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.digits", description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=9, help="runs per library, with seeds from 0 on")
    parser.add_argument("--threads", type=int, default=1, help="threads for every library; the example gives BLAS one")
    options = parser.parse_args()
    torch = __import__("torch") if find_spec("torch") else None
    limit_threads(options.threads, torch)
    for name, text in describe(options.threads, torch).items():
        print(f"{name:>10}  {text}")
    libraries = ["cygrad", "torch"] if torch else ["cygrad"]
    trainings = [training(library) for library in libraries]
    for run in trainings:
        run(2, 0)  # warm up: lazy imports and caches
    times: list[list[float]] = [[] for _ in libraries]
    accuracies: list[list[float]] = [[] for _ in libraries]
    for seed in range(options.rounds):
        for run, seconds, reached in zip(trainings, times, accuracies):
            start = time.perf_counter()
            reached.append(run(options.epochs, seed))
            seconds.append(time.perf_counter() - start)
    print()
    for library, seconds, reached in zip(libraries, times, accuracies):
        median, least, best = statistics.median(seconds), min(reached), max(reached)
        print(f"{library:>10}  {median:.3f} s for {options.epochs} epochs, test accuracy {least:.2%} to {best:.2%}")
    if torch:
        ratio = statistics.median(a / b for a, b in zip(*times))
        print(f"{'ratio':>10}  {ratio:.3f}, target {TARGET}, {'reached' if ratio <= TARGET else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
