"""Reads SQLite files written by NVIDIA's nvprof for programs under `emit_nvtx`."""

import contextlib
import os
import sqlite3

from cygrad.autograd.profiler_util import EventList, FunctionEvent

# A range consists of two markers with the same number: the first has the name, the second has none.
_RANGES = """
    SELECT first.id AS id, strings.value AS name, first.timestamp AS start, second.timestamp AS end
    FROM StringTable AS strings
    INNER JOIN CUPTI_ACTIVITY_KIND_MARKER AS first ON first.name = strings._id_
    INNER JOIN CUPTI_ACTIVITY_KIND_MARKER AS second ON first.id = second.id AND second.name = 0
    WHERE first.name != 0 ORDER BY start, end DESC
"""
_KERNELS = """
    SELECT calls.start AS launched, calls.end AS returned, kernels.start AS start, kernels.end AS end,
           strings.value AS name
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS calls
    INNER JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernels ON calls.correlationId = kernels.correlationId
    INNER JOIN StringTable AS strings ON kernels.name = strings._id_
"""


class EnforceUnique:
    """Raises RuntimeError for duplicate keys."""

    def __init__(self):
        self.seen = set()

    def see(self, *key):
        """Record a key; raise if it was seen before."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


def read_nvprof(path):
    """Return the ranges in the file as events in microseconds, each with the kernels that were launched inside it.

    Raises RuntimeError if two ranges have the same number.
    """
    path = os.fspath(path)
    if not os.path.exists(path):  # SQLite would create an empty file if the directory exists
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise sqlite3.OperationalError(f"unable to open database file\n  there is no file {path!r}")
        raise sqlite3.OperationalError(f"no such table: StringTable\n  there is no file {path!r}")
    events = EventList()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        open_events: list[FunctionEvent] = []
        unique = EnforceUnique()
        for row in database.execute(_RANGES):
            unique.see(row["id"])
            event = FunctionEvent(row["id"], row["name"], 0, row["start"] / 1e3, row["end"] / 1e3)
            while open_events and open_events[-1].time_range.end <= event.time_range.start:
                open_events.pop()
            if open_events:
                open_events[-1].append_cpu_child(event)
            open_events.append(event)
            events.append(event)
        for row in database.execute(_KERNELS):
            for event in events:
                if event.time_range.start <= row["launched"] / 1e3 <= event.time_range.end:
                    event.append_kernel(row["name"], 0, (row["end"] - row["start"]) / 1e3)
    return events
