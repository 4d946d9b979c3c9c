"""The profiler's tables: by name, and by source line."""

import functools
import linecache
from collections.abc import Callable
from typing import Any

from cygrad._core.errors.sites import line_of

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_SIZES = (("GB", 2**30), ("MB", 2**20), ("KB", 2**10))


def time_text(microseconds, unit=None):
    """Format a time with its unit."""
    if unit is None:
        unit = next((u for u in ("s", "ms") if microseconds >= _UNITS[u]), "us")
    elif unit not in _UNITS:
        raise ValueError(f"unknown time unit: {unit!r}; choose from: {list(_UNITS)}")
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def memory_text(size):
    """Format a number of bytes with its unit."""
    for unit, bytes_in_unit in _SIZES:
        if abs(size) >= bytes_in_unit:
            return f"{size / bytes_in_unit:.2f} {unit}"
    return f"{size} B"


def share_text(part, whole):
    """Format a part of a whole in percent. Raises AssertionError for a part of nothing."""
    if whole == 0 and part != 0:
        raise AssertionError(f"Expected time_us == 0 but got {part}")
    return f"{100 * part / whole:.2f}%" if whole > 0 else "NaN"


def _cut(text, width, from_left=False):
    """Truncate `text` to `width` characters; None: no limit."""
    if width is None or len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3 :] if from_left else text[: width - 3] + "..."


def _text_of(attribute, width, event):
    return _cut(str(getattr(event, attribute)), width)


def _layout(titles, rows, left, header=None, footer=""):
    """Format columns as wide as necessary; those with indices in `left` are left-aligned."""
    widths = [max(len(str(row[i])) for row in [titles, *rows]) for i in range(len(titles))]
    rule = "  ".join("-" * width for width in widths)

    def line(row):
        cells = [str(c).ljust(w) if i in left else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        return "  ".join(cells).rstrip()

    lines = ["=" * len(rule), header] if header is not None else []
    lines += [rule, line(titles), rule, *map(line, rows), rule]
    return "\n".join(lines) + "\n" + footer


def event_table(events, sort_by, row_limit, widths, header, top_level_only, unit):
    """Return the text of `EventList.table`."""
    if not events:
        return ""
    total = events.self_cpu_time_total
    rows = [event for event in events if event.cpu_parent is None] if top_level_only else list(events)
    if sort_by is not None:
        rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
    shown = rows if row_limit is None or row_limit < 0 else rows[:row_limit]
    columns: list[tuple[str, Callable[[Any], Any]]] = [
        ("Name", lambda e: _cut(e.key, widths["name"])),
        ("Self CPU %", lambda e: share_text(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: time_text(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: share_text(e.cpu_time_total, total)),
        ("CPU total", lambda e: time_text(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: time_text(e.cpu_time, unit)),
    ]
    on_device = None
    if any(event.device_time_total for event in events):
        on_device = sum(event.self_device_time_total for event in events)
        columns += [
            ("Self CUDA", lambda e: time_text(e.self_device_time_total, unit)),
            ("Self CUDA %", lambda e: share_text(e.self_device_time_total, on_device)),
            ("CUDA total", lambda e: time_text(e.device_time_total, unit)),
            ("CUDA time avg", lambda e: time_text(e.device_time, unit)),
        ]
    if events.profile_memory:
        columns.append(("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)))
        columns.append(("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage)))
    columns.append(("# of Calls", lambda e: e.count))
    left = {0}
    for title, attribute in (("Overload Name", "overload_name"), ("Input Shapes", "input_shapes")):
        if any(getattr(event, attribute) for event in events):
            left.add(len(columns))
            columns.append((title, functools.partial(_text_of, attribute, widths["shapes"])))
    if any(event.stack for event in events):
        left.add(len(columns))
        columns.append(("Source Location", lambda e: _cut(e.stack[0] if e.stack else "", widths["source"], True)))
    cells = [[cell(event) for _, cell in columns] for event in shown]
    more = f"... and {len(rows) - len(shown)} more rows\n" if len(shown) < len(rows) else ""
    footer = f"{more}Self CPU time total: {time_text(total, unit)}\n"
    if on_device is not None:
        footer += f"Self CUDA time total: {time_text(on_device, unit)}\n"
    return _layout([title for title, _ in columns], cells, left, header, footer)


class Line:
    """The cost of one line of the user's code, with times in microseconds."""

    def __init__(self, file, line):
        self.file, self.line = file, line
        self.count = self.saved_bytes = 0
        self.forward = self.backward = 0.0

    @property
    def time(self):
        """Total of forward and backward."""
        return self.forward + self.backward

    @property
    def text(self):
        """The source text of the line, if the file can be read."""
        return linecache.getline(self.file, self.line).strip()


def lines_of(events):
    """Compute the sums of `EventList.by_line`."""
    found: dict[tuple[str, int], Line] = {}
    numbers: dict[tuple[Any, int], int] = {}
    for event in events:
        code = event.code
        if code is None or event.is_user_annotation or _in_backward(event.cpu_parent):
            continue
        site = code, event.offset
        if site not in numbers:
            numbers[site] = line_of(*site) or code.co_firstlineno
        key = code.co_filename, numbers[site]
        line = found.setdefault(key, Line(*key))
        if event.scope == 1:
            line.backward += event.cpu_time_total
            continue
        line.count += 1
        line.forward += event.self_cpu_time_total
        line.saved_bytes += event.saved_bytes
    return sorted(found.values(), key=lambda line: line.time, reverse=True)


def _in_backward(event):
    while event is not None:
        if event.scope == 1:
            return True
        event = event.cpu_parent
    return False


def line_table(lines, sort_by, row_limit, width, header):
    """Return the text of `EventList.line_table`."""
    if not lines:
        return ""
    total = sum(line.time for line in lines)
    lines = sorted(lines, key=lambda line: getattr(line, sort_by), reverse=True)
    shown = lines if row_limit is None or row_limit < 0 else lines[:row_limit]
    titles = ["Source line", "Calls", "Forward", "Backward", "Total", "Total %", "Saved", "Source"]
    rows = [
        (
            _cut(f"{line.file}:{line.line}", width, True), line.count, time_text(line.forward),
            time_text(line.backward), time_text(line.time), share_text(line.time, total), memory_text(line.saved_bytes),
            _cut(line.text, width),
        )
        for line in shown
    ]  # fmt: skip
    more = f"... and {len(lines) - len(shown)} more lines\n" if len(shown) < len(lines) else ""
    saved = memory_text(sum(line.saved_bytes for line in lines))
    return _layout(titles, rows, {0, 7}, header, f"{more}Total: {time_text(total)}, saved for backward: {saved}\n")
