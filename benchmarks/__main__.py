"""Print a table of cygrad | rival | ratio, and draw it; see README.md in this folder."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cygrad
from benchmarks.machine import describe, limit_threads, usable_cpus
from benchmarks.measure import time_alone, time_pair
from benchmarks.picture import draw
from benchmarks.row import Row
from benchmarks.rows import ROWS, SITE_NAME, SITE_NAMES, SITE_STATEMENT, SITE_TARGET, SITES
from benchmarks.sizes import time_sizes

PAIRS, SAMPLE = 41, 0.02  # samples of each statement, seconds per sample
QUICK_PAIRS, QUICK_SAMPLE = 9, 0.004


def main() -> int:
    """Run the requested rows and return the exit status."""
    options = _parse()
    torch = _import_torch()
    limit_threads(options.threads, torch)
    machine = describe(options.threads, torch)
    for name, text in machine.items():
        print(f"{name:>10}  {text}")
    print()

    rows = [row for row in ROWS if row.is_installed() and fnmatch.fnmatch(row.name, f"*{options.rows}*")]
    with_site = fnmatch.fnmatch(SITE_NAME, f"*{options.rows}*")
    if not rows and not with_site:
        print(f"no row matches {options.rows!r}; the rows are:", file=sys.stderr)
        print(*(f"  {name}" for name in [*(row.name for row in ROWS), SITE_NAME]), sep="\n", file=sys.stderr)
        return 2
    width = max(len(name) for name in [*(row.name for row in rows), SITE_NAME])
    print(f"{'':{width}}  {'cygrad':>9}  {'other':>17}  {'ratio':>6}  {'target':>6}")
    results = []
    for row in rows:
        result = _measure(row, torch, options.quick)
        print(f"{row.name:{width}}  {_cells(result)}", flush=True)
        results.append(result)
    if with_site:
        result = _measure_site(options.quick)
        verdict = "reached" if result["ours"] <= SITE_TARGET else "missed"
        print(f"{SITE_NAME:{width}}  {_seconds(result['ours']):>9}  {'':34}{_seconds(SITE_TARGET)}  {verdict}")
        results.append(result)
    if options.out is not None:
        _write(options.out, machine, results, time_sizes(torch, options.quick))
    return 0


def _write(folder: Path, machine: dict[str, str], rows: list[dict[str, Any]], sizes: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    report = {"machine": machine, "rows": rows, "sizes": sizes}
    (folder / "figures.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    draw(rows, sizes, machine, folder / "figures.png")
    print(f"\nwritten: {folder / 'figures.json'}, {folder / 'figures.png'}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", default="", metavar="PATTERN", help="only rows whose name contains this")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples, smaller sizes")
    parser.add_argument("--threads", type=int, default=usable_cpus(), help="threads for every library")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write figures.json and figures.png there")
    return parser.parse_args()


def _import_torch() -> ModuleType | None:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _measure(row: Row, torch: ModuleType | None, quick: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"name": row.name, "target": row.target}
    rival = row.for_rival(cygrad, torch)
    if rival is None:
        return {**result, "rival": None}
    pairs, sample = (QUICK_PAIRS, QUICK_SAMPLE) if quick else (PAIRS, SAMPLE)
    name, statement, names = rival
    timing = time_pair((row.statement, row.setup(cygrad)), (statement, names), pairs=pairs, sample=sample)
    if name != row.rival:  # the target does not apply to this library
        result["target"] = None
    return {**result, "rival": name, **vars(timing)}


def _measure_site(quick: bool) -> dict[str, Any]:
    samples, sample = (QUICK_PAIRS, QUICK_SAMPLE) if quick else (PAIRS, SAMPLE)
    seconds = time_alone(SITE_STATEMENT, SITE_NAMES, samples, sample) / SITES
    return {"name": SITE_NAME, "target": SITE_TARGET, "rival": None, "ours": seconds}


def _cells(result: dict[str, Any]) -> str:
    if result["rival"] is None:
        return f"{'':>9}  {'nothing to compare with':>17}"
    cells = f"{_seconds(result['ours']):>9}  {_seconds(result['theirs']):>9} {result['rival']:7}"
    cells += f"  {result['ratio']:6.3f}"
    if result["target"] is None:
        return cells
    return f"{cells}  {result['target']:6g}  {_verdict(result)}"


def _verdict(result: dict[str, Any]) -> str:
    return "reached" if result["ratio"] <= result["target"] else "missed"


def _seconds(seconds: float) -> str:
    for unit, factor in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


if __name__ == "__main__":
    sys.exit(main())
