"""Time ops that only move elements against a plain copy, and products against bare BLAS; see README.md.

    python -m benchmarks.copies [--threads N] [PATTERN]

The plain copy is NumPy's, between two existing arrays of as many bytes. An op also has to allocate its result, and may
read in a different order than it writes.
"""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import cygrad
from benchmarks.machine import limit_threads
from benchmarks.measure import time_pair

SIDES = 64, 256, 1024, 3000  # of square matrices of float32: 16 KB, 256 KB, 4 MB, 36 MB
LIMIT = 1.3  # relative to the plain copy
PRODUCT_LIMIT = 1.05  # relative to BLAS
PAIRS, SAMPLE = 11, 0.003

OPS = {
    "clone": "x.clone()",
    "contiguous, transposed": "x.t().contiguous()",
    "contiguous, permuted": "x.view(n // 8, 8, n).permute(1, 0, 2).contiguous()",
    "contiguous, channels last": "x.view(8, n // 8, n).permute(1, 2, 0).contiguous()",
    "contiguous, every second column": "xx[:, ::2].contiguous()",
    "copy_": "y.copy_(x)",
    "copy_, transposed": "y.copy_(x.t())",
    "fill_": "y.fill_(1)",
    "zeros_like": "torch.zeros_like(x)",
    "ones": "torch.ones(n, n)",
    "cat, rows": "torch.cat([h, h])",
    "cat, columns": "torch.cat([v, v], 1)",
    "stack": "torch.stack([h, h])",
    "stack, last": "torch.stack([h, h], -1)",
    "flip, rows": "x.flip(0)",
    "flip, columns": "x.flip(1)",
    "roll, rows": "x.roll(3, 0)",
    "roll, columns": "x.roll(3, 1)",
    "repeat": "h.repeat(2, 1)",
    "repeat, columns": "v.repeat(1, 2)",
    "repeat_interleave": "h.repeat_interleave(2, 0)",
    "tile": "h.tile(2, 1)",
    "expand, contiguous": "r.expand(n, n).contiguous()",
    "index_select, rows": "x.index_select(0, i)",
    "index_select, columns": "x.index_select(1, i)",
    "x[i]": "x[i]",
    "pad": "F.pad(x, (1, 1, 1, 1))",
    "pad, reflect": "F.pad(x[None], (1, 1, 1, 1), mode='reflect')",
    "tril": "x.tril()",
    "unfold": "x.unfold(1, 4, 4).contiguous()",
    "to double": "x.double()",
    "to half": "x.half()",
    "to int": "x.int()",
    "float to bool": "x.bool()",
    "slice_scatter": "x.slice_scatter(h, 0, 0, n // 2)",
}
PRODUCTS = {
    "(n, n) @ (n, n)": ("a @ b", "np.matmul(a, b, out=o)"),
    "(n, n) @ (n, 1)": ("a @ c", "np.matmul(a, c, out=p)"),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch: Any = import_module("torch") if find_spec("torch") is not None else None
    limit_threads(arguments.threads, torch)
    print(f"{'times a plain copy, of PyTorch':34}" + "".join(f"{f'{side} x {side}':>16}" for side in SIDES))
    for name, statement in OPS.items():
        if arguments.pattern in name:
            print(f"{name:34}" + "".join(_against_copy(statement, side, torch) for side in SIDES), flush=True)
    for name, statements in PRODUCTS.items():
        if arguments.pattern in name:
            print(f"{name:34}" + "".join(_against_blas(*statements, side) for side in SIDES), flush=True)


def _names(torch: Any, n: int) -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "n": n,
        "x": torch.tensor(x),
        "y": torch.tensor(x),
        "h": torch.tensor(x[: n // 2]),
        "v": torch.tensor(x[:, : n // 2].copy()),
        "r": torch.tensor(x[0]),
        "xx": torch.tensor(np.repeat(x, 2, 1)),
        "i": torch.tensor(np.random.default_rng(1).permutation(n)),
    }


def _against_copy(statement: str, n: int, torch: Any) -> str:
    ours = _names(cygrad, n)
    result = eval(statement, ours)
    size = max(math.prod(result.shape) * result.element_size(), n * n * 4)
    plain = {"np": np, "a": np.ones(size, np.uint8), "b": np.ones(size, np.uint8)}
    times = time_pair((statement, ours), ("np.copyto(a, b)", plain), PAIRS, SAMPLE)
    text = f"{times.ratio:.2f}{'*' if times.ratio > LIMIT else ' '}"
    if torch is None:
        return f"{text:>16}"
    beside = time_pair((statement, ours), (statement, _names(torch, n)), PAIRS, SAMPLE)
    return f"{text:>9}{beside.ratio:6.2f} "


def _against_blas(statement: str, bare: str, n: int) -> str:
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(np.float32)
    o, c = np.empty_like(a), a[:, :1].copy()
    numpy = {"np": np, "a": a, "b": b, "o": o, "c": c, "p": np.empty_like(c)}
    ours = {name: cygrad.tensor(numpy[name]) for name in "abc"}
    times = time_pair((statement, ours), (bare, numpy), PAIRS, SAMPLE)
    return f"{times.ratio:.2f}{'*' if times.ratio > PRODUCT_LIMIT else ' '}".rjust(16)


if __name__ == "__main__":
    main()
