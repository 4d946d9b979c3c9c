"""Alternating timing of two statements."""

from __future__ import annotations

import statistics
import time
import timeit
from dataclasses import dataclass
from typing import Any

Namespace = dict[str, Any]

# Idle threads spin (5 ms in OpenMP) and meanwhile keep a core from the other library.
LEAD_IN = 0.015  # seconds


@dataclass
class Timing:
    """Seconds for one execution of each statement, and the ratio of the first to the second."""

    ours: float
    theirs: float
    ratio: float


def time_pair(ours: tuple[str, Namespace], theirs: tuple[str, Namespace], pairs: int, sample: float) -> Timing:
    """Time both statements `pairs` times, A B A B ..., each for about `sample` seconds.

    Disturbances affect neighboring samples alike, so the ratio is taken pair by pair. Before each sample, the statement
    runs untimed until the threads of the other library sleep and its own are awake.
    """
    timers = [_timer(*ours), _timer(*theirs)]
    numbers = [_repetitions(timer, sample) for timer in timers]
    samples: list[list[float]] = [[], []]
    for _ in range(pairs):
        for timer, number, seconds in zip(timers, numbers, samples):
            timer.timeit(max(1, round(number * LEAD_IN / sample)))
            seconds.append(timer.timeit(number) / number)
    ratios = [a / b for a, b in zip(*samples)]
    ours_median, theirs_median = map(statistics.median, samples)
    return Timing(ours_median, theirs_median, statistics.median(ratios))


def time_least(ours: tuple[str, Namespace], theirs: tuple[str, Namespace], rounds: int, seconds: float) -> Timing:
    """Return the least processor time of this thread for each statement, timed alternately, and the ratio of the two.

    Other processes only affect this through the caches, and the minimum avoids that. The smallest fiftieth of the
    samples is discarded, because a thread's clock may stand still for a moment on shared processors.
    """
    functions = [eval(f"lambda: {statement}", names) for statement, names in (ours, theirs)]
    samples: list[list[float]] = [[], []]
    for _ in range(rounds):
        for function, taken in zip(functions, samples):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                start = time.thread_time()
                function()
                taken.append(time.thread_time() - start)
    our_least, their_least = (sorted(taken)[len(taken) // 50] for taken in samples)
    return Timing(our_least, their_least, our_least / their_least)


def time_alone(statement: str, namespace: Namespace, samples: int, sample: float) -> float:
    """Return seconds for one execution: the median of `samples` samples of about `sample` seconds each."""
    timer = _timer(statement, namespace)
    number = _repetitions(timer, sample)
    return statistics.median(timer.timeit(number) / number for _ in range(samples))


def _timer(statement: str, namespace: Namespace) -> timeit.Timer:
    # timeit disables the garbage collector; real programs run with it enabled.
    return timeit.Timer(statement, "import gc; gc.enable()", globals=namespace)


def _repetitions(timer: timeit.Timer, sample: float) -> int:
    # The first executions are slow; a repeat count based on them would make samples and warm-ups too short.
    end = time.perf_counter() + LEAD_IN
    while time.perf_counter() < end:
        timer.timeit(1)
    number = 1
    while (seconds := timer.timeit(number)) < sample / 4:
        number *= 2
    return max(1, round(number * sample / max(seconds, 1e-9)))
