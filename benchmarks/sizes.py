"""Time over size: `x * w` and its gradient, for 1 to 10^8 elements."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import cygrad
from benchmarks.layers import leaves
from benchmarks.measure import time_alone

PRODUCT = """
(x * w).backward(g)
x.grad = w.grad = None
"""
BARE = "x * w, g * w, g * x"  # the three products, without a graph
SAMPLES, QUICK_SAMPLES = 9, 3


def bare(size: int) -> dict[str, Any]:
    """Return the arrays of `BARE`."""
    random = np.random.default_rng(0)
    return {name: random.standard_normal(size, dtype=np.float32) for name in "xwg"}


def time_sizes(torch: ModuleType | None, quick: bool) -> list[dict[str, Any]]:
    """Return, for each size, the seconds of each library by name; `quick` stops at 10^6."""
    samples, sample = (QUICK_SAMPLES, 0.002) if quick else (SAMPLES, 0.02)
    results = []
    for exponent in range(7 if quick else 9):
        size = 10**exponent
        result: dict[str, Any] = {"size": size}
        for name, library in (("cygrad", cygrad), ("PyTorch", torch)):
            if library is not None:
                names = leaves(x=(size,), w=(size,), g=(size,))(library)
                result[name] = time_alone(PRODUCT, names, samples, sample)
                del names  # before the next ones need as much memory
        result["NumPy, forward and backward by hand"] = time_alone(BARE, bare(size), samples, sample)
        results.append(result)
    return results
