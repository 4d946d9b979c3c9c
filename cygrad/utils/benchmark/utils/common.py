"""What was timed, and the times."""

import math
import textwrap
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import cygrad

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MOST_FIGURES = 4
_SHORTEST_INTERVAL = 25e-9  # seconds; a clock tells no shorter ones apart
_WORTH_A_WARNING, _MUCH = 0.1, 0.25  # of the median, for the interquartile range
_UNITS = {-3: "ns", -2: "us", -1: "ms"}  # by powers of 1000
_SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}

Item = TypeVar("Item", bound=Hashable)


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A statement to time; `label`, `sub_label`, `description` and `env` are for tables.

    >>> from cygrad.utils.benchmark import TaskSpec
    >>> task = TaskSpec("x + y", setup="x = y = 1", label="addition")
    >>> task.setup_str()
    'setup: x = y = 1'
    >>> print(task.summarize())
    addition
    setup: x = y = 1
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the sub-label, or else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Return the setup as it is shown, empty if there is none."""
        if self.setup == "pass" or not self.setup:
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return title, description and setup, one below the other."""
        parts = [self.title, self.description or "", self.setup_str()]
        separator = "\n\n" if any("\n" in part for part in parts) else "\n"
        text = separator.join(part for part in parts if part)
        return text + ("\n" if separator == "\n\n" else "")


@dataclass(init=True, repr=False)
class Measurement:
    """The times of a statement, in seconds: `raw_times` of several runs, each of `number_per_run` executions.

    >>> from cygrad.utils.benchmark import Measurement, TaskSpec
    >>> Measurement(10, [1e-5, 1.2e-5, 1.1e-5], TaskSpec("x + y", "x = 1")).median
    1.1e-06
    >>> other = Measurement(10, [1e-5], TaskSpec("x + y", "x = 1"))
    >>> [len(each.raw_times) for each in Measurement.merge([other, other])]
    [2]
    >>> Measurement(10, [1e-5] * 20, TaskSpec("x + y", "x = 1")).meets_confidence()
    True
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """The time of one execution, in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean time of an execution."""
        return math.fsum(self.times) / len(self.times)

    @property
    def median(self) -> float:
        """The median time of an execution."""
        return float(np.median(self.times))

    @property
    def iqr(self) -> float:
        """The interquartile range: that of the middle half of the times."""
        low, high = self._quartiles()
        return high - low

    def _quartiles(self) -> tuple[float, float]:
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(low), float(high)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, from 1 to 4: a rough estimate by the spread of the middle."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _SHORTEST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary so much that tables should say so."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WORTH_A_WARNING) -> bool:
        """Whether the interquartile range is less than this fraction of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The title of the statement."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment, such as the name of a branch."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What names the row of a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        """Show what was timed, the median, how the times vary, and warnings if they vary much."""
        unit, scale = select_unit(self.median)
        count = len(self.raw_times)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if count == 1:
            lines += [f"  {self.median / scale:.2f} {unit}"]
        else:
            lines += [f"  Median: {self.median / scale:.2f} {unit}"]
        if count >= 4:
            low, high = (quartile / scale for quartile in self._quartiles())
            lines += [f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"]
        threads = f"{self.task_spec.num_threads} thread" + "s" * (self.task_spec.num_threads != 1)
        runs = "runs per measurement" if count > 1 else "runs "
        lines += [f"  {count} measurement{'s' * (count > 1)}, {self.number_per_run} {runs}, {threads}"]
        if self.has_warnings:
            lines += [
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.",
                "           This "
                + (
                    "suggests significant environmental influence."
                    if self.iqr / self.median > _MUCH
                    else "could indicate system fluctuation."
                ),
            ]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """Return one measurement for each statement, with the times of all of its measurements."""
        by_task: dict[TaskSpec, list[Measurement]] = {}
        for one in measurements:
            by_task.setdefault(one.task_spec, []).append(one)
        return [Measurement(1, [t for one in group for t in one.times], task, None) for task, group in by_task.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which a time is shown, and how many seconds it has.

    >>> from cygrad.utils.benchmark import select_unit
    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    unit = _UNITS.get(int(math.log10(t) // 3), "s")
    return unit, _SCALES[unit]


def unit_to_english(u: str) -> str:
    """Return the name of a unit of time.

    >>> from cygrad.utils.benchmark import unit_to_english
    >>> unit_to_english("us")
    'microsecond'
    """
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """Return a number rounded to `n` figures.

    >>> from cygrad.utils.benchmark import trim_sigfig
    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10 ** (magnitude - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Item]) -> list[Item]:
    """Return the distinct elements in the order of their first occurrence.

    >>> from cygrad.utils.benchmark import ordered_unique
    >>> ordered_unique(["b", "a", "b"])
    ['b', 'a']
    """
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Context manager that sets the number of threads.

    >>> import cygrad
    >>> from cygrad.utils.benchmark import set_torch_threads
    >>> with set_torch_threads(1):
    ...     cygrad.get_num_threads()
    1
    """
    before = cygrad.get_num_threads()
    try:
        cygrad.set_num_threads(n)
        yield
    finally:
        cygrad.set_num_threads(before)
