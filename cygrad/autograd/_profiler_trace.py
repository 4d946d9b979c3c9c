"""Chrome's trace format, for chrome://tracing and ui.perfetto.dev."""

import gzip
import json
import os

_CATEGORIES = {7: "user_annotation"}


def trace_of(events):
    """The trace as a dictionary: an event for each event, an arrow from each op to its backward node."""
    process = os.getpid()
    found = [_metadata("process_name", process, 0, f"cygrad {process}")]
    found += [_metadata("thread_name", process, t, f"thread {t}") for t in sorted({e.thread for e in events})]
    nodes: dict[int, list] = {}  # by the id of the op that made them
    for event in events:
        if event.forward is not None:
            nodes.setdefault(event.forward.id, []).append(event)
    for event in events:
        found.append(_slice(event, process))
        # A viewer hangs an arrow onto the slice that is open at its time, so it follows its slice, before others begin.
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
    # Between rounded ends, so that what lies inside of another event does so still. Of no length, an event would be
    # drawn nowhere, and its arrow begin outside.
    return max(0.001, round(round(event.time_range.end, 3) - round(event.time_range.start, 3), 3))


def write_trace(events, path, **more):
    """Write the trace to a file, compressed if its name ends in '.gz'; `more` goes to the trace's head."""
    path = os.fspath(path)
    with gzip.open(path, "wt", encoding="utf-8") if path.endswith(".gz") else open(path, "w", encoding="utf-8") as file:
        json.dump(trace_of(events) | more, file)
