"""Timing two statements in turn."""

from __future__ import annotations

import statistics
import timeit
from dataclasses import dataclass
from typing import Any

Namespace = dict[str, Any]


@dataclass
class Timing:
    """Seconds for one execution: medians, and the median of the ratios of neighbouring samples."""

    ours: float
    theirs: float
    ratio: float


def time_pair(ours: tuple[str, Namespace], theirs: tuple[str, Namespace], pairs: int, sample: float) -> Timing:
    """Time both statements `pairs` times, A B A B ..., each for about `sample` seconds.

    What disturbs the machine disturbs neighbours alike, so the ratio is taken pair by pair.
    """
    timers = [_timer(*ours), _timer(*theirs)]
    numbers = [_repetitions(timer, sample) for timer in timers]
    samples: list[list[float]] = [[], []]
    for _ in range(pairs):
        for timer, number, seconds in zip(timers, numbers, samples):
            seconds.append(timer.timeit(number) / number)
    ratios = [a / b for a, b in zip(*samples)]
    ours_median, theirs_median = map(statistics.median, samples)
    return Timing(ours_median, theirs_median, statistics.median(ratios))


def time_alone(statement: str, namespace: Namespace, samples: int, sample: float) -> float:
    """Seconds for one execution: the median of `samples` samples of about `sample` seconds each."""
    timer = _timer(statement, namespace)
    number = _repetitions(timer, sample)
    return statistics.median(timer.timeit(number) / number for _ in range(samples))


def _timer(statement: str, namespace: Namespace) -> timeit.Timer:
    # timeit switches the garbage collector off; real programs run with it on.
    return timeit.Timer(statement, "import gc; gc.enable()", globals=namespace)


def _repetitions(timer: timeit.Timer, sample: float) -> int:
    number = 1
    while (seconds := timer.timeit(number)) < sample / 4:
        number *= 2
    return max(1, round(number * sample / max(seconds, 1e-9)))
