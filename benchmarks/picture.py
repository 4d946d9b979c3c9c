"""A picture of the figures: ratios as bars, time over size as lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

REACHED, MISSED, PLAIN = "#2a7f62", "#c8553d", "#8a8f98"


def draw(rows: list[dict[str, Any]], sizes: list[dict[str, Any]], machine: dict[str, str], path: Path) -> None:
    """Write the picture to `path`. Below 1 cygrad is faster; a black mark shows the target ratio."""
    from matplotlib.figure import Figure

    measured = [row for row in rows if row.get("ratio") is not None]
    figure = Figure(figsize=(13, max(5, 0.26 * len(measured) + 1.6)), layout="constrained")
    bars, lines = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_ratios(bars, measured)
    _draw_sizes(lines, sizes)
    figure.suptitle(f"{machine['processor']}; threads: {machine['threads']}", fontsize=9)
    figure.savefig(path, dpi=110)


def _draw_ratios(axes: Any, rows: list[dict[str, Any]]) -> None:
    places = range(len(rows))
    colors = [PLAIN if r["target"] is None else REACHED if r["ratio"] <= r["target"] else MISSED for r in rows]
    axes.barh(places, [row["ratio"] for row in rows], color=colors)
    for place, row in zip(places, rows):
        end = row["ratio"]
        if row["target"] is not None and end <= row["target"] < 1.4 * end:
            end = row["target"]  # otherwise the mark would cover the figure
        axes.text(end * 1.06, place, f"{row['ratio']:.2f}", va="center", fontsize=7)
        if row["target"] is not None:
            axes.plot([row["target"]] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1.5)
    axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.01)
    axes.set_yticks(list(places), [f"{row['name']} ({row['rival']})" for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("time over the other's; the mark is the ratio to reach", fontsize=8)


def _draw_sizes(axes: Any, sizes: list[dict[str, Any]]) -> None:
    for name in [name for name in (sizes[0] if sizes else ()) if name != "size"]:
        axes.plot([s["size"] for s in sizes], [s[name] for s in sizes], marker="o", markersize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.set_xlabel("elements of x and w", fontsize=8)
    axes.set_ylabel("seconds for x * w and its gradient", fontsize=8)
    if sizes:
        axes.legend(fontsize=8)
