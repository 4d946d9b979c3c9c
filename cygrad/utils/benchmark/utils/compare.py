"""Tables of times."""

import enum
import math
from typing import Any

from cygrad.utils.benchmark.utils.common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_END = "\033[0m\033[0m"
_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m\033[1m", "\033[34m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m"
_SEPARATOR = "  |  "


class Colorize(enum.Enum):
    """What the colors of a table compare.

    >>> from cygrad.utils.benchmark import Colorize
    >>> [each.name for each in Colorize]
    ['NONE', 'COLUMNWISE', 'ROWWISE']
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: one for each label, with a row for each sub-label and a column for each description.

    >>> from cygrad.utils.benchmark import Compare, Measurement, TaskSpec
    >>> times = {"add": 1e-5, "mul": 2e-5}
    >>> tasks = {name: TaskSpec(name, "", label="ops", sub_label=name, description="here") for name in times}
    >>> Compare([Measurement(1, [times[name]], tasks[name]) for name in times]).print()
    [----- ops ------]
               |  here
    1 threads: -------
          add  |  10.0
          mul  |  20.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    >>> table = Compare([])
    >>> table.extend_results([Measurement(1, [times[name]], tasks[name]) for name in times])
    >>> table.trim_significant_figures()
    >>> table.colorize(rowwise=True)
    >>> table.highlight_warnings()
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trims = self._warns = False
        self._colorize = Colorize.NONE

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements. Raises ValueError for something else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only the figures that mean something."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show in color how times compare with the best of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that vary much."""
        self._warns = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def _render(self) -> list[str]:
        groups: dict[Any, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.task_spec.label, []).append(result)
        return [_Table(group, self._colorize, self._trims, self._warns).render() for group in groups.values()]


def _row_key(result: Measurement) -> tuple[int, Any, str]:
    return result.task_spec.num_threads, result.task_spec.env, result.as_row_name


class _Table:
    """The table of one label."""

    def __init__(self, results: list[Measurement], colors: Colorize, trims: bool, warns: bool) -> None:
        self.results, self.colors, self.trims, self.warns = results, colors, trims, warns
        self.label = results[0].task_spec.label or ""
        self.unit, self.scale = select_unit(min(result.median for result in results))
        rows = ordered_unique(map(_row_key, results))
        self.rows = sorted(rows, key=lambda key: (key[0], key[1] or ""))
        self.columns = ordered_unique(result.task_spec.description or "" for result in results)
        self.cells = {(_row_key(result), result.task_spec.description or ""): result for result in results}

    def render(self) -> str:
        names = self._names()
        columns = [names, *map(self._column, self.columns)]
        width = sum(max(map(len, texts)) for texts in columns) + len(_SEPARATOR) * len(self.columns)
        lines = [" " * len(names[0]) + _SEPARATOR + _SEPARATOR.join(column[0] for column in columns[1:])]
        threads = None
        for i, row in enumerate(self.rows, 1):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(width, "-"))
            cells = [self._colored(column[i], row, name) for column, name in zip(columns[1:], self.columns)]
            lines.append(_SEPARATOR.join([names[i], *cells]))
        title = f" {self.label} ".center(width - 2, "-")
        footer = f"\nTimes are in {unit_to_english(self.unit)}s ({self.unit}).\n"
        if self.warns and any(result.has_warnings for result in self.results):
            footer += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return "\n".join([f"[{title}]", *lines, footer])

    def _names(self) -> list[str]:
        """Return the texts of the first column: the environment, if there is one, and the name of each row."""
        envs = [f"({env})" if env else "" for _, env, _ in self.rows]
        longest = max(map(len, envs)) or 2
        texts = [f"  {env.ljust(longest)}  {name}" for env, (_, _, name) in zip(envs, self.rows)]
        width = max(map(len, texts))
        return [" " * width, *(text.ljust(width) for text in texts)]

    def _column(self, name: str) -> list[str]:
        """Return the texts of a column, all of the same length: its name, and the cell of each row."""
        found = [self.cells.get((row, name)) for row in self.rows]
        medians = [result.median / self.scale for result in found if result is not None]
        before = max(math.ceil(math.log10(max(medians))), 1)
        after = 1
        if self.trims:
            after = max(max(result.significant_figures for result in found if result is not None) - before, 0)
        length = before + after + (after > 0)
        warnings = ["" if result is None else self._warning(result) for result in found]
        longest = max(max(map(len, warnings)) - 1, 0)  # as PyTorch pads
        cells = []
        for result, warning in zip(found, warnings):
            if result is None:
                cells.append("")
                continue
            value = result.median / self.scale
            if self.trims:
                value = trim_sigfig(value, result.significant_figures)
            cells.append(f"{value:{length}.{after}f}{warning}".ljust(length + longest))
        width = max(len(name), *map(len, cells))
        return [text.center(width) for text in (name, *cells)]

    def _warning(self, result: Measurement) -> str:
        return f" (! {result.iqr / result.median * 100:.0f}%)" if self.warns and result.has_warnings else ""

    def _colored(self, text: str, row: Any, column: str) -> str:
        result = self.cells.get((row, column))
        if result is None or self.colors is Colorize.NONE:
            return text
        of_rows = self.colors is Colorize.ROWWISE
        ratio = result.median / min(
            other.median
            for (other_row, other_column), other in self.cells.items()
            if (other_row == row if of_rows else other_column == column and other_row[0] == row[0])
        )
        if ratio <= 1:
            return _BEST + text + _END
        if ratio <= 1.1:
            return _GOOD + text + _END
        if ratio >= 5:
            return _VERY_BAD + text + _END
        return _BAD + text + _END if ratio >= 2 else text
