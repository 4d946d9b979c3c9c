"""Trees of events that were made one by one: each lies in those that were open on its thread when it ran."""

from operator import attrgetter
from typing import Any


def nest(events: list[Any]) -> None:
    """Make each event the child of the innermost event around it on its thread; async events stay by themselves.

    Raises AssertionError if an event has a parent already.
    """
    threads: dict[Any, list[Any]] = {}
    for event in events:
        if not event.is_async:
            threads.setdefault((event.thread, event.node_id), []).append(event)
    for found in threads.values():
        found.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        open_events: list[Any] = []
        for event in found:
            while open_events and not _is_within(event, open_events[-1]):
                open_events.pop()
            if open_events:
                if event.cpu_parent is not None:
                    raise AssertionError(f"There is already a CPU parent event for {event.key}")
                open_events[-1].append_cpu_child(event)
            open_events.append(event)


def _is_within(event: Any, other: Any) -> bool:
    return event.time_range.start < other.time_range.end and event.time_range.end <= other.time_range.end


def drop_repeated(events: list[Any]) -> None:
    """Remove each event that is its parent's only child and has the parent's name; the parent gets its children."""
    by_depth = sorted(events, key=attrgetter("time_range.start"), reverse=True)
    dropped = set()
    for event in by_depth:
        parent = event.cpu_parent
        if parent is not None and parent.name == event.name and len(parent.cpu_children) == 1:
            parent.cpu_children, parent.kernels = event.cpu_children, event.kernels
            for child in event.cpu_children:
                child.cpu_parent = parent
            dropped.add(id(event))
    events[:] = [event for event in events if id(event) not in dropped]
