"""Time every op's forward against the plain NumPy expression of its result, on 100,000 elements; see README.md.

The figures are the least processor time of one thread over many runs.

    python -m benchmarks.ops [PATTERN]      only lines of ops.txt that contain this

Inputs require grad where possible, so that ops are recorded. The last column is the memory that an op allocates beyond
its result and its saved values, according to tracemalloc.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import cygrad
from benchmarks import plain
from benchmarks.machine import limit_threads
from benchmarks.measure import time_least

LIMIT = 1.5  # relative to NumPy
ROUNDS, SECONDS = 30, 0.004


def arrays(rows: int = 250) -> dict[str, np.ndarray]:
    """Return the float32 operands that may have gradients; most have this many rows of 400."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    def between(low: float, high: float, *shape: int) -> np.ndarray:
        return rng.uniform(low, high, shape).astype(np.float32)

    well = 6 * np.eye(32, dtype=np.float32)
    found = {
        **{name: normal(rows, 400) for name in "xyz"},
        **{
            name: normal(*shape)
            for name, shape in {"r": (400,), "c": (rows, 1), "m": (316, 316), "diag": (min(rows, 400),)}.items()
        },
        "p": between(0.3, 2.3, rows, 400),
        "u": between(-0.9, 0.9, rows, 400),
        "w": between(0.05, 0.95, rows, 400),
        "w2": between(0.05, 0.95, rows, 400),
        "y2": between(1, 3, rows, 400),
        "ms": normal(100, 32, 32) + well,
        "k1": normal(316, 8),
        "k2": normal(316, 8),
        "q": normal(33333, 3),
        "q2": normal(33333, 3),
        "line": np.sort(normal(316)),
        "mrow": normal(62, 40),
        "img": normal(4, 16, 40, 40),
        "kernel": normal(32, 16, 3, 3),
        "x1000": normal(1000, 400),
        "line1000": normal(1000),
        "flat": normal(100000),
        "x1": normal(50, 40),
        "x2": normal(50, 40),
        "w3": normal(50, 40, 40),
        "t4": (normal(316, 316) + 20 * np.eye(316, dtype=np.float32)).reshape(4, 79, 316),
        "slope": np.full(1, 0.25, np.float32),
        "tri": np.tril(normal(316, 316)) + 20 * np.eye(316, dtype=np.float32),
        "zc": (normal(rows, 400) + 1j * normal(rows, 400)).astype(np.complex64),
        "four": normal(4, 250, 400),
        "cube": normal(20, 20, 5000),
        "vol": normal(4, 8, 14, 14, 14),
        "kernel3": normal(8, 8, 3, 3, 3),
        "signal": normal(4, 32, 781),
        "kernel1": normal(64, 32, 5),
        "patches": normal(4, 144, 1600),
        "theta": normal(4, 2, 3),
        "half": normal(50000),
        "wi": normal(256, 400) / 20,
        "wh": normal(256, 64) / 20,
        "seq": normal(10, 25, 400),
        "state": normal(1, 25, 64),
        "tokens": normal(50, 60, 32),
        "w_in": normal(96, 32) / 6,
        "w_out": normal(32, 32) / 6,
        "log_odds": plain.log_softmax(normal(50, 20, 100)),
    }
    return {**found, "spd": found["ms"] @ found["ms"].swapaxes(1, 2) + np.eye(32, dtype=np.float32)}


def constants(rows: int = 250) -> dict[str, np.ndarray]:
    """Return indices, masks and similar operands."""
    from scipy.linalg import lu_factor

    rng = np.random.default_rng(1)
    factors = [lu_factor(a) for a in rng.standard_normal((100, 32, 32)).astype(np.float32)]
    i, j = rng.integers(-4, 5, (rows, 400)), rng.integers(0, min(rows, 400), (rows, 400))
    return {
        "i": i,
        "i2": rng.integers(1, 9, (rows, 400)),
        "j": j,
        "k": rng.integers(0, rows, 1000),
        "kc": rng.integers(0, 400, 1000),
        "b": rng.random((rows, 400)) < 0.5,
        "b2": rng.random((rows, 400)) < 0.5,
        "j8": rng.integers(-3, 4, (rows, 400)).astype(np.int32),
        "two": np.array(2),
        "three": np.array(3),
        "perm": rng.permutation(rows),
        "labels": rng.integers(0, 400, rows),
        "ones": np.where(rng.random((rows, 400)) < 0.5, 1, -1).astype(np.float32),
        "rows": np.arange(rows)[:, None],
        "iflat": i.ravel(),
        "jflat": j.ravel(),
        "j250": rng.integers(0, rows, 400 * rows),
        "j400": rng.integers(0, 400, 400 * rows),
        "jflat1000": j.ravel()[:1000],
        "flat_w": rng.uniform(0.1, 1, 100000).astype(np.float32),
        "counts": np.full((rows, 400), 10, np.float32),
        "win": np.hanning(256).astype(np.float32),
        "hm": rng.standard_normal((100, 40, 25)).astype(np.float32),
        "ht": rng.standard_normal((100, 25)).astype(np.float32),
        "fx": rng.standard_normal((rows, 400)).astype(np.float32),
        "pairs": rng.standard_normal((rows, 200, 2)).astype(np.float32),
        "lu": np.stack([a for a, _ in factors]),
        "piv": np.stack([p for _, p in factors]) + np.int32(1),
        "spectrum": np.fft.rfft(rng.standard_normal((1563, 256))).astype(np.complex64).T.copy(),
        "halves": np.zeros((4, 16, 2), np.float32),
        "halves3": np.zeros((4, 8, 3), np.float32),
        "at1": 2 * np.arange(50000),
        "at2": np.broadcast_to(np.arange(1600).reshape(40, 40)[::2, ::2], (4, 16, 20, 20)).copy(),
        "at3": np.broadcast_to(np.arange(2744).reshape(14, 14, 14)[::2, ::2, ::2], (4, 8, 7, 7, 7)).copy(),
        "grid": rng.uniform(-1, 1, (4, 40, 40, 2)).astype(np.float32),
        "several": np.where(np.arange(400) < 5, rng.permuted(np.tile(np.arange(400), (rows, 1)), axis=1), -1),
        "spelled": rng.integers(1, 100, (20, 10)),
    }


def namespaces() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the names used in the statements, for cygrad and for NumPy."""
    import scipy.linalg
    import scipy.signal
    import scipy.sparse.linalg
    import scipy.special
    import scipy.stats

    values = arrays()
    shared = {"inf": float("inf"), "nested": values["x"].tolist()}
    ours = {name: cygrad.tensor(array).requires_grad_() for name, array in values.items()}
    ours |= {name: cygrad.tensor(array) for name, array in constants().items()}
    theirs = {
        "np": np,
        "sp": scipy.special,
        "slinalg": scipy.linalg,
        "ssparse": scipy.sparse.linalg,
        "swindows": scipy.signal.windows,
        "sstats": scipy.stats,
        "upper": np.triu_indices(316, 1),
        "rng": np.random.default_rng(2),
        **{name: value for name, value in vars(plain).items() if callable(value)},
    }
    return {"torch": cygrad, "F": cygrad.nn.functional, **ours, **shared}, {**values, **constants(), **theirs, **shared}


def lines() -> list[tuple[str, str]]:
    """Return the pairs of cygrad and NumPy statements in ops.txt."""
    text = Path(__file__).with_name("ops.txt").read_text(encoding="utf-8")
    found = [line.partition(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return [(ours, theirs) for ours, _, theirs in found]


def scratch_of(statement: str, namespace: dict[str, Any]) -> int:
    """Return the peak of allocated bytes beyond those still held after the statement has run."""
    gc.collect()
    tracemalloc.start()
    tracemalloc.reset_peak()
    result = eval(statement, namespace)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return peak - held


def main() -> None:
    """Print a line for each op, and at the end how many were too slow."""
    warnings.simplefilter("ignore")
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    ours, theirs = namespaces()
    limit_threads(1, None)  # again, since SciPy has loaded its own BLAS
    slow = 0
    chosen = [pair for pair in lines() if pattern in pair[0]]
    print(f"{'':50} {'cygrad us':>10} {'NumPy us':>10} {'ratio':>6} {'scratch KB':>10}")
    for statement, expression in chosen:
        with np.errstate(all="ignore"):
            timing = time_least((statement, ours), (expression, theirs), ROUNDS, SECONDS)
        scratch = scratch_of(statement, ours) / 1e3
        slow += timing.ratio > LIMIT
        mark = " *" if timing.ratio > LIMIT else ""
        times = f"{timing.ours * 1e6:10.1f} {timing.theirs * 1e6:10.1f}"
        print(f"{statement:50} {times} {timing.ratio:6.2f} {scratch:10.0f}{mark}", flush=True)
    print(f"{slow} of {len(chosen)} took more than {LIMIT} times as long as NumPy (*)")


if __name__ == "__main__":
    main()
