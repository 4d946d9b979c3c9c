"""Timing two statements in turn."""

from __future__ import annotations

import statistics
import time
import timeit
from dataclasses import dataclass
from typing import Any

Namespace = dict[str, Any]

# Threads without work look for some, in OpenMP for 5 ms, and keep a processor from the other library's meanwhile.
LEAD_IN = 0.015  # seconds


@dataclass
class Timing:
    """Seconds for one execution of each, and how many times the second's the first takes."""

    ours: float
    theirs: float
    ratio: float


def time_pair(ours: tuple[str, Namespace], theirs: tuple[str, Namespace], pairs: int, sample: float) -> Timing:
    """Time both statements `pairs` times, A B A B ..., each for about `sample` seconds.

    What disturbs the machine disturbs neighbours alike, so the ratio is taken pair by pair. Before each sample the
    statement runs untimed until the threads of the other one sleep and its own are awake.
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
    """The least processor time of this thread that each statement took, in turns of `seconds`; and the ratio of these.

    What runs beside has no part in it but for caches, which the least escapes. Of many samples the fiftieth part is
    left out: the clock of a thread may stand still for a moment where processors are shared.
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
    """Seconds for one execution: the median of `samples` samples of about `sample` seconds each."""
    timer = _timer(statement, namespace)
    number = _repetitions(timer, sample)
    return statistics.median(timer.timeit(number) / number for _ in range(samples))


def _timer(statement: str, namespace: Namespace) -> timeit.Timer:
    # timeit switches the garbage collector off; real programs run with it on.
    return timeit.Timer(statement, "import gc; gc.enable()", globals=namespace)


def _repetitions(timer: timeit.Timer, sample: float) -> int:
    # The first times are long: with a number from these, samples and what runs before them would be too short.
    end = time.perf_counter() + LEAD_IN
    while time.perf_counter() < end:
        timer.timeit(1)
    number = 1
    while (seconds := timer.timeit(number)) < sample / 4:
        number *= 2
    return max(1, round(number * sample / max(seconds, 1e-9)))
