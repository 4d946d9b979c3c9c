"""The profiler's tables: by name, and by source line."""

import linecache
from typing import Any

from cygrad._core.errors.sites import line_of

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_SIZES = (("GB", 2**30), ("MB", 2**20), ("KB", 2**10))


def time_text(microseconds, unit=None):
    """Format a time in this unit, or in a suitable one if it is None or unknown."""
    if unit not in _UNITS:
        unit = next((u for u in ("s", "ms") if microseconds >= _UNITS[u]), "us")
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


class _Column:
    """A column of a table of events: its title, its width, and the text of an event's cell."""

    def __init__(self, title, text, width=12, side=">"):
        self.title, self.text, self.width, self.side = title, text, width, side

    def cell(self, value):
        """Return a value in the column's width, and the space up to the next column."""
        return f"{value!s:{self.side}{self.width}}  "


def _widest(texts, limit):
    """Return the width of a column with these texts: four characters more than the longest, up to the limit."""
    width = max(map(len, texts), default=0) + 4
    return width if limit is None else min(width, limit)


def _name(text, limit):
    """Return a name as its column shows it: with dots at the end if it is within 3 characters of the limit."""
    return text if limit is None or len(text) < limit - 3 else text[: limit - 3] + "..."


def _name_columns(events, limit):
    width = _widest([event.key for event in events], limit)
    columns = [_Column("Name", lambda e: _name(e.key, limit), width)]
    if any(event.overload_name for event in events):
        columns.append(_Column("Overload Name", lambda e: _name(e.overload_name, limit), width))
    return columns


def _time_columns(total, unit):
    return [
        _Column("Self CPU %", lambda e: e.self_cpu_percent),
        _Column("Self CPU", lambda e: time_text(e.self_cpu_time_total, unit)),
        _Column("CPU total %", lambda e: e.total_cpu_percent),
        _Column("CPU total", lambda e: time_text(e.cpu_time_total, unit)),
        _Column("CPU time avg", lambda e: time_text(e.cpu_time, unit)),
    ]


def _device_columns(device, unit):
    return [
        _Column(f"Self {device}", lambda e: time_text(e.self_device_time_total, unit)),
        _Column(f"Self {device} %", lambda e: e.total_device_percent),
        _Column(f"{device} total", lambda e: time_text(e.device_time_total, unit)),
        _Column(f"{device} time avg", lambda e: time_text(e.device_time, unit)),
    ]


def _memory_columns(events, device):
    columns = [
        _Column("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)),
        _Column("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage)),
    ]
    if device is not None and any(event.self_device_memory_usage > 0 for event in events):
        columns.append(_Column(f"{device} Mem", lambda e: memory_text(e.device_memory_usage)))
        columns.append(_Column(f"Self {device} Mem", lambda e: memory_text(e.self_device_memory_usage)))
    return columns


def _describing_columns(events, widths):
    columns = []
    if any(event.input_shapes for event in events):
        wide = _widest([str(event.input_shapes) for event in events], widths["shapes"])
        columns.append(_Column("Input Shapes", lambda e: str(e.input_shapes)[:wide], wide))
    if any(event.stack for event in events):
        width = _widest([frame for event in events for frame in event.stack or ()], widths["source"])
        columns.append(_Column("Source Location", lambda e: _cut((e.stack or [""])[0], width, True), width, "<"))
    return columns


def _flops_columns(events):
    """Return the column of floating-point operations, in a unit in which the smallest number is at least 1."""
    known = [event.flops for event in events if event.flops]
    if not known:
        return []
    thousands = next(n for n in (5, 4, 3, 2, 1, 0) if n == 0 or min(known) >= 1000**n)
    title = f"Total {' KMGTP'[thousands].strip()}FLOPs"
    return [_Column(title, lambda e: f"{e.flops / 1000**thousands:8.3f}" if e.flops else "--")]


def _shares(event, total, on_device):
    """Note on an event its shares of the time, as PyTorch does when it prints a table."""
    event.self_cpu_percent = share_text(event.self_cpu_time_total, total)
    event.total_cpu_percent = 0 if event.is_async else share_text(event.cpu_time_total, total)
    if on_device is not None:
        event.total_device_percent = share_text(event.self_device_time_total, on_device)


def _rows_of(event, columns):
    """Return the lines of an event: the further frames of its stack follow below the first, and an empty line."""
    yield "".join([column.cell(column.text(event)) for column in columns])
    source = next((column for column in columns if column.side == "<"), None)
    if source is not None:
        for frame in [*(event.stack or ())[1:], ""]:
            shown = _cut(frame, source.width, True)
            yield "".join([column.cell(shown if column is source else "") for column in columns])


def event_table(events, sort_by, row_limit, widths, header, top_level_only, unit):
    """Return the text of `EventList.table`, in PyTorch's layout."""
    if not events:
        return ""
    total, on_device, device = events.self_cpu_time_total, None, None
    rows = list(events)
    if sort_by is not None:
        rows.sort(key=lambda event: getattr(event, sort_by.replace("cuda", "device")), reverse=True)
    if any(event.self_device_time_total > 0 for event in events):
        on_device = sum(event.self_device_time_total for event in events)
        device = next((event.use_device for event in events if event.use_device), "cuda").upper()
    columns = [*_name_columns(rows, widths["name"]), *_time_columns(total, unit)]
    columns += _device_columns(device, unit) if on_device is not None else []
    columns += _memory_columns(rows, device) if events.profile_memory else []
    columns.append(_Column("# of Calls", lambda e: e.count))
    columns += _describing_columns(rows, widths)
    columns += _flops_columns(rows) if events.with_flops else []
    rule = "".join(["-" * column.width + "  " for column in columns])
    double = "=" * (len(rule) - 2)
    lines = [] if header is None else [double, header]
    lines += [double, "This report only display top-level ops statistics"] if top_level_only else []
    lines += [rule, "".join([column.cell(column.title) for column in columns]), rule]
    shown = [event for event in rows if not top_level_only or event.cpu_parent is None]
    for event in shown if row_limit is None or row_limit < 0 else shown[:row_limit]:
        _shares(event, total, on_device)
        lines += _rows_of(event, columns)
    lines += [rule, f"Self CPU time total: {time_text(total, unit)}"]
    if on_device is not None:
        lines.append(f"Self {device} time total: {time_text(on_device, unit)}")
    return "".join([line + "\n" for line in lines])


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
