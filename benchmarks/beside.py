"""Time every op against PyTorch's at three sizes, forward and with its gradient; see README.md.

    python -m benchmarks.beside [PATTERN] [--threads N] [--type float64] [--rows 25 250 7900] [--over 1]

With one thread, the figures are the least processor time of many runs. With several threads, the libraries are timed
alternately by the clock, which requires an idle machine. The statements come from ops.txt and beside.txt, the operands
from ops.py.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import cygrad
from benchmarks import ops
from benchmarks.machine import limit_threads
from benchmarks.measure import Timing, time_least, time_pair

ROWS = 25, 250, 7900  # of 400 elements
WORDS = re.compile(r"[A-Za-z_]\w*")


def operands(library: Any, rows: int, double: bool) -> dict[str, Any]:
    """Return the names used in the statements, for one library."""
    wider = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}

    def tensor(array: np.ndarray) -> Any:
        return library.tensor(array.astype(wider.get(array.dtype, array.dtype)) if double else array)

    found = {name: tensor(array).requires_grad_() for name, array in ops.arrays(rows).items()}
    found |= {name: tensor(array) for name, array in ops.constants(rows).items()}
    found |= {"n8": found["i"].to(library.int8), "n32": found["i"].to(library.int32)}
    return {"torch": library, "F": library.nn.functional, "inf": float("inf"), **found}


def statements() -> list[str]:
    """Return the statements of ops.txt, then those of beside.txt."""
    text = Path(__file__).with_name("beside.txt").read_text(encoding="utf-8")
    more = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [*(ours.strip() for ours, _ in ops.lines()), *more]


def cases(statement: str, namespaces: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Return pairs of a label and a function to time; none if PyTorch lacks the op or rejects these sizes."""
    ours, theirs = namespaces
    expected = _result(statement, theirs)
    if expected is None:
        return
    results = [eval(statement, ours), expected]
    yield "forward", statement
    if not all(result.requires_grad for result in results if hasattr(result, "requires_grad")):
        return
    for result, names in zip(results, namespaces):
        if not isinstance(result, names["torch"].Tensor) or not result.requires_grad:
            return
        words = set(WORDS.findall(statement))
        names["leaves"] = [v for k, v in names.items() if k in words and getattr(v, "requires_grad", False)]
        names["grad_of_result"] = names["torch"].ones_like(result).detach()
    yield "and back", f"torch.autograd.grad({statement}, leaves, grad_of_result, allow_unused=True)"


def _result(statement: str, names: dict[str, Any]) -> Any:
    try:
        return eval(statement, names)
    except Exception:
        return None


def timed(statement: str, namespaces: list[dict[str, Any]], threads: int) -> Timing | None:
    """Return the times of cygrad and PyTorch, or None if PyTorch fails."""
    ours, theirs = ((statement, names) for names in namespaces)
    if _result(*theirs) is None:
        return None
    return time_least(ours, theirs, 8, 0.004) if threads == 1 else time_pair(ours, theirs, 7, 0.003)


def main() -> None:
    """Print a line for each op, and at the end how many were slower than PyTorch's."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--type", choices=("float32", "float64"), default="float32")
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--over", type=float, default=0, help="only print ratios above this")
    given = parser.parse_args()
    torch: Any = import_module("torch")
    limit_threads(given.threads, torch)
    sizes = [[operands(library, n, given.type == "float64") for library in (cygrad, torch)] for n in given.rows]
    few = operands(cygrad, 25, False)
    scaled = {name for name, value in few.items() if {25, 10000} & set(getattr(value, "shape", ()))}
    count = slower = 0
    for statement in filter(re.compile(given.pattern).search, statements()):
        middle = sizes[min(1, len(sizes) - 1)]
        chosen = sizes if scaled & set(WORDS.findall(statement)) else [middle]
        for label, code in cases(statement, middle):
            cells = []
            for namespaces in chosen:
                if label != "forward" and not list(cases(statement, namespaces))[1:]:
                    continue
                if (times := timed(code, namespaces, given.threads)) is not None:
                    cells.append(times)
            ratios = [times.ratio for times in cells]
            count += len(ratios)
            slower += sum(ratio > 1 for ratio in ratios)
            if ratios and max(ratios) > given.over:
                text = "".join(f"{t.ours * 1e6:11.1f} {t.ratio:5.2f}{'*' if t.ratio > 1 else ' '}" for t in cells)
                print(f"{statement[:52]:52} {label:8}{text}", flush=True)
    print(f"{slower} of {count} took longer than PyTorch's (*)")


if __name__ == "__main__":
    main()
