"""Draw the figures that are kept in benchmarks/: ratios to PyTorch as dots, sorted, on a logarithmic axis.

    python -m benchmarks.dots          # figures/*.json and the main table of README.md, to figures/*.svg
    python -m benchmarks.dots small    # only these

`small.json` comes from `python -m benchmarks.small --out benchmarks/figures/small.json`; the main table is read from
README.md, where it stands as `python -m benchmarks` has printed it. The pictures can be read on a telephone.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FIGURES = FOLDER / "figures"
COLORS = "#1f6fb4", "#c2571a"  # apart for the color-blind, too
MARKERS = "o", "D"
WIDTH = 3.6  # inches, at 96 pixels each: a telephone's window
LABELED = 60  # more rows than these have no room for their names
ROW = re.compile(r"^    (\S.*?)  +[\d.]+ [nmu]?s +[\d.]+ [nmu]?s +([\d.]+) +[\d.]+ [nmu]?s +[\d.]+ [nmu]?s +([\d.]+)")
MAIN = "one thread each", "two threads each"


def main_table() -> dict[str, Any]:
    """Return the ratios of the main table of README.md."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = text.partition("## The main table")[2].partition("Taking the site")[0]
    found = [row.groups() for line in section.splitlines() if (row := ROW.match(line))]
    rows = [row for row in found if not re.search("against|nan_check", row[0])]  # whose rival is not PyTorch
    return {
        "title": "Networks, layers and overhead",
        "rows": [{"name": name, MAIN[0]: float(one), MAIN[1]: float(two)} for name, one, two in rows],
    }


def kept() -> dict[str, dict[str, Any]]:
    """Return the figures of each picture, by its name."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FIGURES.glob("*.json"))}
    return {"main": main_table(), **found}


def series_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the names of the ratios in the rows, in the order of their first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row if key != "name"))


def draw(figures: dict[str, Any], path: Path) -> None:
    """Write a picture: with few rows, one line for each; with many, only their order, and names at both ends."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = figures["rows"]
    labeled = len(rows) <= LABELED
    # The same text for the same figures: no date, and no random names of parts.
    with rc_context({"svg.hashsalt": path.stem, "font.size": 8}):
        page = Figure(figsize=(WIDTH, 0.27 * len(rows) + 1.2 if labeled else 4.6), layout="constrained")
        axes = page.subplots()
        (_draw_names if labeled else _draw_order)(axes, rows)
        _finish(axes, figures["title"])
        page.savefig(path, metadata={"Date": None})


def _draw_names(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw a line for each row, with its name above the dots."""
    names = series_of(rows)
    rows = sorted(rows, key=lambda row: row[names[0]])
    for series, color, marker in zip(names, COLORS, MARKERS):
        axes.plot([row[series] for row in rows], range(len(rows)), marker, color=color, markersize=3.5, label=series)
    left = min(row[series] for row in rows for series in names)
    for place, row in enumerate(rows):
        axes.plot([row[series] for series in names], [place] * len(names), color="#c8ccd2", linewidth=1, zorder=0)
        axes.text(0.6 * left, place - 0.45, row["name"], fontsize=6.5, color="#333333", va="center")
    axes.set_ylim(len(rows) - 0.3, -1)


def _draw_order(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Draw the ratios of each series in their order, with the names of the least and the greatest."""
    for series, color, marker in zip(series_of(rows), COLORS, MARKERS):
        found = sorted((row[series], row["name"]) for row in rows if series in row)
        places = [i / max(1, len(found) - 1) for i in range(len(found))]
        label = f"{series}: {len(found)}, median {found[len(found) // 2][0]:.2f}"
        axes.plot([ratio for ratio, _ in found], places, marker, color=color, markersize=2, label=label)
        for at, (ratio, name) in ((0, found[0]), (1, found[-1])):
            axes.annotate(
                _short(name), (ratio, at), (5, 0), textcoords="offset points", color=color, fontsize=6, va="center"
            )
    axes.set_ylim(1.03, -0.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["all", "75 %", "50 %", "25 %", "none"])
    axes.set_ylabel("calls with a greater ratio")


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:22]}…"


def _finish(axes: Any, title: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", color="#e3e5e8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("time over PyTorch's (left of the line, cygrad is faster)", fontsize=7.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    if not axes.get_ylabel():
        axes.set_yticks([])
    axes.figure.legend(fontsize=7, loc="outside lower center", ncols=2, frameon=False)


def main() -> None:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    figures = kept()
    parser.add_argument("names", nargs="*", choices=[[], *figures], help="all by default")
    for name in parser.parse_args().names or figures:
        path = FIGURES / f"{name}.svg"
        draw(figures[name], path)
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
