"""Time calls on few elements against PyTorch's, without and with gradients: the cost of ops beside their loops.

    python -m benchmarks.small [PATTERN] [--over 1] [--out FILE]

The figures are the least processor time of many short alternating samples, with one thread. The statements come from
small.txt.
`--out` keeps the ratios with a description of the machine, for `python -m benchmarks.dots` to draw.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import timeit
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import cygrad
from benchmarks.machine import describe, limit_threads

STATEMENTS = Path(__file__).with_name("small.txt")
CALLS, SAMPLES = 40, 16

NAMES = """
n, F = m.nn, m.nn.functional
x = m.tensor(np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
y, z, p, b, c = x.clone(), x.clone(), x.abs() + 0.1, x > 0, m.fft.fft(x)
i, t, j = m.tensor([0, 2]), m.tensor([1, 2, 3, 0]), m.tensor([[1], [2], [3], [0]])
w, v, seq, line, sq, pc = m.ones(8), m.ones(8), m.arange(4.0), m.arange(8.0), m.eye(4) * 2, p.clamp(0, 1)
factors, pivots = m.linalg.lu_factor(sq)
img, k, xs, img2 = m.ones(2, 3, 8, 8), m.ones(4, 3, 3, 3), m.ones(5, 2, 8), m.ones(2, 1, 12, 12)

g, pg, lw, gi = (leaf.clone().requires_grad_() for leaf in (x, p, x, img))
wg, vg, w3, lb, lb4 = (m.ones(*size).requires_grad_() for size in ([8], [8], [3], [4], [4, 4]))
kg, k1, sg = (leaf.requires_grad_() for leaf in (m.ones(4, 3, 3, 3), m.ones(4, 8, 3), m.eye(4) * 2 + 0.1))
lin, mlp = n.Linear(8, 4), n.Sequential(n.Linear(8, 16), n.ReLU(), n.Linear(16, 2))
inner = n.LayerNorm(16), n.GELU(), n.Linear(16, 16), n.Dropout(0.1)
mlp3 = n.Sequential(n.Linear(8, 16), *inner, n.Linear(16, 2))
cnn = n.Sequential(n.Conv2d(1, 4, 3), n.BatchNorm2d(4), n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Linear(100, 10))
lstm, gru, mha, enc = n.LSTM(8, 8), n.GRU(8, 8), n.MultiheadAttention(8, 2), n.TransformerEncoderLayer(8, 2, 16)
"""


def read_statements() -> list[tuple[str, bool]]:
    """Return pairs (statement, whether to include its gradient)."""
    found, with_gradient = [], False
    for line in STATEMENTS.read_text().splitlines():
        with_gradient = with_gradient or line == "# and back"
        if line and not line.startswith("#"):
            found.append((line, with_gradient))
    return found


def prepared(statement: str, with_gradient: bool, library: Any) -> tuple[str, dict[str, Any]]:
    """Return the statement to time and its names, for one library; the incoming gradient is all ones."""
    names: dict[str, Any] = {"m": library, "np": np}
    exec(NAMES, names)
    if with_gradient:
        names["ones"] = library.ones_like(eval(statement, names))
        statement = f"({statement}).backward(ones)"
    return statement, names


def compare(statement: str, with_gradient: bool, libraries: list[Any]) -> list[float]:
    """Return the least processor time of a call with each library, in us."""
    given = [prepared(statement, with_gradient, library) for library in libraries]
    # Processor time, because what else runs on the machine would count otherwise, for the library that it meets.
    timers = [timeit.Timer(statement, timer=time.process_time, globals=names) for statement, names in given]
    rounds = [[timer.timeit(CALLS) for timer in timers] for _ in range(SAMPLES)]
    return [min(taken) / CALLS * 1e6 for taken in zip(*rounds)]


def keep(rows: list[tuple[float, float, float, str, str]], machine: dict[str, str], path: Path) -> None:
    """Write the ratios to a file."""
    title = f"{len(rows)} calls on few elements"
    kept = [
        {"name": statement, "with gradient" if kind else "forward": round(ratio, 3)}
        for ratio, _, _, statement, kind in rows
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"title": title, "machine": machine, "rows": kept}, indent=0) + "\n", encoding="utf-8")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression that statements must match")
    parser.add_argument("--over", type=float, default=0, help="only print rows with at least this ratio")
    parser.add_argument("--out", type=Path, help="also write the ratios to this file")
    arguments = parser.parse_args()
    torch = import_module("torch")
    limit_threads(1, torch)
    warnings.simplefilter("ignore")
    rows = []
    for statement, with_gradient in read_statements():
        if re.search(arguments.pattern, statement):
            ours, theirs = compare(statement, with_gradient, [cygrad, torch])
            rows.append((ours / theirs, ours, theirs, statement, "and back" if with_gradient else ""))
    print(f"{'':58}{'cygrad us':>10}{'torch us':>10}{'ratio':>8}")
    for ratio, ours, theirs, statement, kind in sorted(rows, reverse=True):
        if ratio >= arguments.over:
            print(f"{statement:48}{kind:10}{ours:10.2f}{theirs:10.2f}{ratio:8.2f}")
    if arguments.out:
        keep(sorted(rows), describe(1, torch), arguments.out)
    for kind in ("", "and back"):
        ratios = [row[0] for row in rows if row[4] == kind]
        if ratios:
            above = sum(ratio > 1 for ratio in ratios)
            print(f"{len(ratios)} {kind or 'forward'}: {above} above 1, median {np.median(ratios):.2f}")


if __name__ == "__main__":
    main()
