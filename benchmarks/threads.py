"""Measure independent training in several threads; see README.md in this folder.

`python -m benchmarks.threads` trains a network in each of 1, 2, ... threads and prints how many times as many steps are
made in the same time. If steps are short, only free-threaded builds of CPython can gain from it.
"""

from __future__ import annotations

import statistics
import threading
import time

import cygrad
from benchmarks.machine import describe, limit_threads, usable_cpus
from benchmarks.rows import STEP, network

STEPS, ROUNDS = 300, 9
SIZES = {"16-32-4, batch 8": (8, (16, 32, 4)), "784-128-10, batch 64": (64, (784, 128, 10))}


def main() -> None:
    """Print the table."""
    limit_threads(1, None)
    for name, text in describe(1, None).items():
        print(f"{name:>10}  {text}")
    print(
        "\ntimes the steps of one thread: by the clock, and by the processor time of a step, where others run as well"
    )
    for name, (batch, sizes) in SIZES.items():
        for count in range(2, usable_cpus() + 1):
            pairs = [(seconds(1, batch, sizes), seconds(count, batch, sizes)) for _ in range(ROUNDS)]
            clock, used = (statistics.median(count * one[i] / many[i] for one, many in pairs) for i in range(2))
            print(f"{name:24} {count} threads  {clock:6.2f} {used:6.2f}", flush=True)


def seconds(count: int, batch: int, sizes: tuple[int, int, int]) -> tuple[float, float]:
    """Return the time of `STEPS` steps in each of this many threads, by the clock and by processor time per thread."""
    ready, used = threading.Barrier(count + 1), []

    def work() -> None:
        code = compile(STEP, "<step>", "exec")  # its own: threads that share one contend for its reference count
        names = network("SGD", batch, sizes, lr=0.01)(cygrad)
        exec(code, names)
        ready.wait()
        start = time.thread_time()
        for _ in range(STEPS):
            exec(code, names)
        used.append(time.thread_time() - start)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start, statistics.mean(used)


if __name__ == "__main__":
    main()
