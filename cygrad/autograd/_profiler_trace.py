"""Export to Chrome's trace format, for chrome://tracing and ui.perfetto.dev."""

import gzip
import json
import os

_CATEGORIES = {7: "user_annotation"}


def trace_of(events):
    """Return the trace as a dictionary, with an entry for each event and an arrow from each op to its backward node."""
    process = os.getpid()
    found = [_metadata("process_name", process, 0, f"cygrad {process}")]
    found += [_metadata("thread_name", process, t, f"thread {t}") for t in sorted({e.thread for e in events})]
    nodes: dict[int, list] = {}  # by id of the op that recorded them
    for event in events:
        if event.forward is not None:
            nodes.setdefault(event.forward.id, []).append(event)
    for event in events:
        found.append(_slice(event, process))
        # Viewers attach an arrow to the slice that is open at its time, so emit it after its slice and before others.
        if event.forward is not None:
            found.append(_arrow("f", event, process, event.id) | {"bp": "e"})
        found += [_arrow("s", event, process, node.id) for node in nodes.get(event.id, ())]
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": found}


def _slice(event, process):
    args = {"External id": event.id, "Source": event.site}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.input_shapes:
        args["Input Dims"] = [list(shape) for shape in event.input_shapes]
    if event.saved_bytes:
        args["Saved bytes"] = event.saved_bytes
    if event.algorithm:
        args["Algorithm"] = event.algorithm
    found = _event("X", event, process, event.name, _CATEGORIES.get(event.scope, "cpu_op"))
    return found | {"dur": _length(event), "args": args}


def _arrow(phase, event, process, number):
    return _event(phase, event, process, "fwdbwd", "fwdbwd") | {"id": number}


def _metadata(name, process, thread, text):
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "ts": 0, "args": {"name": text}}


def _event(phase, event, process, name, category):
    start = round(event.time_range.start, 3)
    return {"ph": phase, "cat": category, "name": name, "pid": process, "tid": event.thread, "ts": start}


def _length(event):
    # Difference of rounded ends, so that nested events stay nested. An event of length 0 would not be drawn, and its
    # arrow would start outside.
    return max(0.001, round(round(event.time_range.end, 3) - round(event.time_range.start, 3), 3))


def write_trace(events, path, **more):
    """Write the trace to a file, compressed if its name ends in '.gz'; `more` is added at the top level."""
    path = os.fspath(path)
    with gzip.open(path, "wt", encoding="utf-8") if path.endswith(".gz") else open(path, "w", encoding="utf-8") as file:
        json.dump(trace_of(events) | more, file)
