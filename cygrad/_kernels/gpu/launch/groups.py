"""Functions of a captured step that are launched together: one kernel for all that follow each other.

Note [Groups]
-------------
While a compiled step is captured, `gpu_forms.run` does not launch elementwise functions of our own, nor functions of
rows (Note [Functions of rows] in row_program.py): it lets them wait. A group has those of one dtype whose results have
one shape and order. It becomes one kernel, made of the texts of its functions, which keeps their results in registers
and writes only those that anything else refers to. Each function rounds its result to the element type, and products
are never contracted with sums (`EXACT`), so that a group gives the bits of its functions.

The functions of rows of a group have rows of one length, and share the layout of threads (Note [Groups of rows] in
row_groups.py). What they yield for each row, and elementwise functions of that, belong to the group as well.

Functions need not be called one right after the other. Sums of arrays that wait are put off, too: a function that
does not depend on them, as the gradient of a sum does not, joins the group before. `level` is how many groups and
sums have to be launched before. Everything else that uses arrays on a GPU first has all that waits launched
(`settle`, waiting.pyx). What waits refers to the arrays that it reads and makes, so that nobody gets their memory
anew.
"""

import re
from functools import lru_cache
from typing import Any

from cygrad._kernels.device.cupy_library import current_device, gpu_class, name_of
from cygrad._kernels.device.launch import Kernel, made_in_order
from cygrad._kernels.device.waiting import Waiting, tell
from cygrad._kernels.gpu.launch.elementwise_program import bytes_of_block, text_of
from cygrad._kernels.gpu.launch.program import EXACT, Program
from cygrad._kernels.gpu.launch.row_groups import launch_rows
from cygrad._kernels.gpu.launch.row_program import NUMBER, ROW, VALUE, RowCall, RowFunction

_DENSE, _ONE, _COLUMN = 0, 1, 3  # kinds of operands, see `launch.pyx`
_MOST = 44  # arrays and numbers of a kernel: a launch passes up to 48 arguments
_THREADS = 128


def waits_by(described):
    """Let a group put off a function: `described` returns (function, operands) of its arguments, or None."""

    def with_it(function: Any) -> Any:
        function.waits = described
        return function

    return with_it


class Groups:
    """What waits in one capture.

    `lines` tells what was launched: (kind, names of the functions, bytes read, bytes written).
    """

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self._waiting: list[Any] = []
        self._made: dict[int, Any] = {}  # by the id of its result
        self._levels: dict[int, int] = {}  # the level after what makes memory, by the id of its block
        self._filled: dict[Any, int] = {}  # by key and level: how many arguments a kernel takes at most
        self._rows: dict[Any, Any] = {}  # by key and level: the `Layout` of functions of rows

    def take(self, form, operands, args):
        """Let the call of a GPU form wait, and return its result; None, with all that waits launched, if it cannot."""
        found = None
        describe = getattr(form, "waits", None)
        if describe is not None:
            described = describe(*operands, *args)
            if isinstance(described, Several):
                return described.result(*[self._add(*each) for each in described.calls])
            if described is not None:
                found = self._add(*described)
        if found is None:
            self.launch()
        return found

    def _add(self, work, operands):
        """Let work wait: an elementwise function, a `RowCall`, or `Later` work; return its result, or None."""
        if isinstance(work, Later):
            return self._put_off(work, operands)
        if isinstance(work, RowCall):
            return self._add_rows(work, operands)
        layout = work.launched.layout(operands)
        if layout is None or not work.takes(layout[0]):
            return None
        dtype, kinds, rows, shape, order = layout
        out = made_in_order(shape, order, dtype)
        if not out.size:
            return out
        joined = self._among_values(operands, kinds, dtype, out)
        if joined is not None:
            return self._enter(Waiting(work, operands, kinds, rows, joined.key, joined.level, out, joined.length))
        key = name_of(dtype), out.shape if order is None else (out.shape, out.strides)
        given, level = iter(rows), 0
        for a, kind in zip(operands, kinds):
            level = max(level, self._level_for(a, key, kind, next(given) if kind > _ONE else 0))
        while self._filled.get((key, level), 0) + len(operands) + len(rows) + 1 > _MOST:
            level += 1
        self._fill(key, level, 1 + self._count(work, operands, key, level) + len(rows))
        return self._enter(Waiting(work, operands, kinds, rows, key, level, out))

    def _among_values(self, operands, kinds, dtype, out):
        """Return the work whose group computes the values of rows that a function has as operands, or None.

        All its operands must be known when that group is launched.
        """
        found = None
        for a in operands:
            maker = self._made.get(id(a))
            if maker is not None and maker.length and (found is None or maker.level > found.level):
                found = maker
        if found is None or found.out.dtype != dtype or found.key[0] != name_of(dtype) or found.out.shape != out.shape:
            return None
        if not found.out.flags.c_contiguous or not out.flags.c_contiguous:
            return None
        for a, kind in zip(operands, kinds):
            maker = self._made.get(id(a))
            if maker is None:
                level = self._level_of_memory(a)
            else:
                is_inside = (maker.key, maker.level, maker.length) == (found.key, found.level, found.length)
                level = maker.level + (not is_inside or kind != _DENSE)
            if kind not in (_DENSE, _ONE) or level > found.level:
                return None
        if self._filled[found.key, found.level] + len(operands) + 1 > _MOST:
            return None
        self._fill(found.key, found.level, len(operands) + 1)
        return found

    def _add_rows(self, call, arrays):
        """Let a function of rows wait."""
        (first, *others), layout = call.outs, call.layout
        key, count = (name_of(arrays[0].dtype), arrays[0].shape), len(call.operands) + len(call.outs)
        level = 0
        for a, (_, kind) in zip(call.operands, call.function.operands):
            if a is not None and kind != NUMBER:
                level = max(level, self._level_of_rows(a, key, kind, layout.length))
        while self._rows.get((key, level), layout) is not layout or self._filled.get((key, level), 0) + count > _MOST:
            level += 1
        self._rows[key, level] = layout
        self._fill(key, level, count)
        length = 0 if call.function.made is not None else layout.length
        # `is_held` must count no reference to the arrays but those in `operands`
        given = tuple(None if isinstance(a, gpu_class()) else a for a in call.operands)
        kinds = tuple(None if a is None else kind for a, (_, kind) in zip(call.operands, call.function.operands))
        self._enter(Waiting(call.function, arrays, kinds, given, key, level, first, length))
        for out in others:  # made by the same work
            self._enter(Waiting(None, (first,), (), (), key, level, out, layout.length))
        return call.result(*call.outs)

    def _level_of_rows(self, a, key, kind, length):
        """Return the lowest level for a function of rows that reads an array."""
        maker = self._made.get(id(a))
        if maker is None:
            return self._level_of_memory(a)
        is_inside = maker.key == key and maker.length == {ROW: 0, VALUE: length}.get(kind, -1)
        return maker.level + (not is_inside)

    def _level_for(self, a, key, kind, row):
        """Return the lowest level for an elementwise function that reads an array."""
        maker = self._made.get(id(a))
        if maker is None:
            return self._level_of_memory(a)
        is_fitting = kind == _COLUMN and row == maker.length if maker.length else kind == _DENSE
        return maker.level + (maker.key != key or not is_fitting)

    def _level_of_memory(self, a):
        return self._levels.get(id(a.data.mem), 0) if isinstance(a, gpu_class()) else 0

    def _count(self, function, operands, key, level):
        """Return how many arguments an elementwise function's operands add to its group's kernel."""
        count = 0
        for name, operand in zip(function.names, operands):
            if not isinstance(operand, gpu_class()):
                count += _is_mentioned(name, function.operation)
            else:
                maker = self._made.get(id(operand))
                count += maker is None or (maker.key, maker.level) != (key, level)
        return count

    def _fill(self, key, level, count):
        self._filled[key, level] = self._filled.get((key, level), 0) + count

    def _put_off(self, later, operands):
        """Let work wait that is done after what makes its operands; None if none of these waits."""
        makers = [self._made[id(a)] for a in operands if id(a) in self._made]
        if all(maker.key is None for maker in makers) and not later.always:
            return None
        level = max([maker.level for maker in makers], default=0)
        level = max([level, *(self._level_of_memory(a) - 1 for a in operands if id(a) not in self._made)])
        first, *others = later.outs
        self._enter(Waiting(later, operands, (), (), None, level, first))
        for out in others:
            self._enter(Waiting(None, (first,), (), (), None, level, out))
        return first if not others else later.outs

    def _enter(self, waiting):
        for a in waiting.operands:
            if id(a) in self._made:
                self._made[id(a)].uses += 1
        self._waiting.append(waiting)
        self._made[id(waiting.out)] = waiting
        self._levels[id(waiting.out.data.mem)] = waiting.level + 1
        tell(True)
        return waiting.out

    def launch(self):
        """Launch all that waits."""
        if not self._waiting:
            return
        waiting, rows = self._waiting, self._rows
        self.forget()
        levels: dict[int, dict[Any, list[Any]]] = {}
        for each in waiting:
            levels.setdefault(each.level, {}).setdefault(each.key, []).append(each)
        needed = {id(each.out) for each in waiting if each.is_held()}
        for group in (group for level in levels.values() for group in level.values()):
            inside = {id(each.out) for each in group if each.key is not None}
            for each in group:
                needed.update(id(a) for a in each.operands if id(a) not in inside)
        for level in sorted(levels):
            later = levels[level].pop(None, [])
            for key, group in levels[level].items():
                kept = _needed_of(group, needed)
                if any(isinstance(each.work, RowFunction) for each in kept):
                    self.lines.append(launch_rows(kept, needed, rows[key, level]))
                elif kept:
                    self.lines.append(_launch(kept, needed))
            for each in later:
                if each.work is not None:
                    each.work.do(*each.operands, *each.work.outs)

    def forget(self):
        """Let nothing wait any more."""
        self._waiting, self._made, self._levels, self._filled, self._rows = [], {}, {}, {}, {}
        tell(False)


class Later:
    """Work on arrays that may be put off: `do(*arrays, *outs)` fills the arrays `outs`.

    If not `always`, only where an array waits itself.
    """

    def __init__(self, outs, do, always=False):
        self.outs, self.do, self.always = outs, do, always


class Several:
    """Calls that wait, each (work, operands); `result` makes the value of all from their results."""

    def __init__(self, calls, result):
        self.calls, self.result = calls, result


def _needed_of(group, needed):
    """Return the functions of a group that anything needs."""
    kept: list[Any] = []
    wanted: set[int] = set()
    for each in reversed(group):
        if id(each.out) in needed or id(each.out) in wanted:
            kept.append(each)
            wanted.update(map(id, each.operands))
    return kept[::-1]


def _launch(group, needed):
    """Launch the elementwise functions of a group; return a line that tells of it."""
    parts = _Parts(needed)
    for each in group:
        parts.add(each)
    first = group[-1]
    total = first.out.size
    text, packs = parts.text()
    blocks = -(-total * first.out.itemsize // bytes_of_block(packs))
    kernel = _kernel(text, first.out.dtype, current_device())
    kernel((blocks,), (_THREADS,), (*parts.arrays, *parts.numbers, *parts.made, total, *parts.rows))
    names = "+".join(each.work.__name__ for each in group)
    size = first.out.itemsize * total
    return "group", names, sum(a.nbytes for a in parts.arrays), size * len(parts.made)


class _Parts:
    """The text of a group's kernel, and what it is launched with."""

    def __init__(self, needed):
        self.arrays: list[Any] = []
        self.numbers: list[float] = []
        self.made: list[Any] = []
        self.rows: list[int] = []
        self._needed = needed
        self._given: list[Any] = []  # (name, kind) of each array
        self._made_names: list[str] = []
        self._sources: dict[Any, str] = {}  # the name in the kernel of each array
        self._preambles: dict[str, str] = {}  # the namespace of each
        self._lines: list[str] = []

    def add(self, waiting):
        """Add a function."""
        function, name = waiting.work, f"r{len(self._lines)}"
        rows, values = iter(waiting.rows), []
        kinds = (*waiting.kinds, *[None] * (len(waiting.operands) - len(waiting.kinds)))  # None: a number
        for own, operand, kind in zip(function.names, waiting.operands, kinds):
            if kind is None:
                if _is_mentioned(own, function.operation):
                    values.append(f"const double {own} = n{len(self.numbers)};")
                    self.numbers.append(operand)
            else:
                row = next(rows) if kind > _ONE else None
                values.append(f"const T {own} = {self._source(operand, kind, row)};")
        space = self._preambles.setdefault(function.preamble, f"functions_{len(self._preambles)}")
        made = function.made
        text = f"{{ using namespace {space}; {' '.join(values)} T {made}; {function.operation}; {name} = {made}; }}"
        if id(waiting.out) in self._needed:
            self.made.append(waiting.out)
            self._made_names.append(name)
        else:
            text = f"T {name}; {text}"
        self._sources[id(waiting.out), 0, None] = name
        self._lines.append(text)

    def _source(self, operand, kind, row):
        key = id(operand), kind, row
        found = self._sources.get(key)
        if found is None:
            found = self._sources[key] = f"a{len(self.arrays)}"
            self._given.append((found, kind))
            self.arrays.append(operand)
            if row is not None:
                self.rows.append(row)
        return found

    def text(self):
        """Return the text, and how many packs a thread handles: fewer with many arrays, for want of registers."""
        count = len(self.arrays) + len(self.made)
        packs = 4 if count <= 4 else 2 if count <= 8 else 1
        spaces = "".join(f"namespace {name} {{ {text}\n}}\n" for text, name in self._preambles.items())
        numbers = [f"n{i}" for i in range(len(self.numbers))]
        operation = "\n".join(self._lines)
        return spaces + text_of("cygrad_group", self._given, numbers, self._made_names, operation, packs), packs


def _is_mentioned(name, text):
    return re.search(rf"\b{name}\b", text) is not None


@lru_cache(256)
def _kernel(text, dtype, device):
    """Return the kernel for a type, on the current GPU, which is `device`."""
    return Kernel(Program("cygrad_group", text, options=EXACT).kernel(dtype))
