"""Functions of rows of a captured step, launched together with the elementwise functions around them.

Note [Groups of rows]
---------------------
Such a group becomes one kernel, in which a warp or thread block handles each row, as in the kernels of single functions
(Note [Functions of rows] in row_program.py). Its text has phases. In each, a loop over the row computes the elements
whose operands are known by then, and writes those that are needed later; after it, the structs of the functions of rows
are made, by reductions over rows that have just been computed. What a later phase reads is kept in registers. If rows
are too long, or keeping would take too many registers, it is computed again from what the kernel has read.

Sums depend on the layout of threads alone, which is that of the single functions, so a group has their bits.
"""

import re
from functools import lru_cache
from typing import Any

from cygrad._kernels.device.cupy_library import current_device
from cygrad._kernels.device.launch import Kernel
from cygrad._kernels.gpu.launch.program import EXACT, Program
from cygrad._kernels.gpu.launch.row_program import LINE, NUMBER, ROW, ROWS, VALUE, RowFunction

_DENSE, _ONE, _ROW, _COLUMN = range(4)  # kinds of operands of elementwise functions, see `launch.pyx`
_REGISTERS = {256: 96, 512: 64, 1024: 32}  # of 32 bits, for what is kept, by the largest number of threads of a block

_NARROW = 256  # threads of a block

_HELPERS = """
struct Plain {  // a row or line that is not aligned to packs
    const T* memory;
    __device__ T own(whole, whole i) const { return memory[i]; }
};
template <typename E> struct PlainLine {
    const E* memory;
    __device__ W get(whole, whole i) const { return W(memory[i]); }
};
struct Kept {
    const T* kept;
    __device__ W get(whole k, whole) const { return W(kept[k]); }
};
template <typename F> struct Computed {
    F f;
    __device__ W get(whole k, whole i) { return f(k, i); }
};
template <typename F> __device__ Computed<F> computed(F f) { return Computed<F>{f}; }
struct Absent {};
struct AbsentLine { __device__ Absent get(whole, whole) const { return Absent(); } };
__device__ inline W operator*(W x, Absent) { return x; }
__device__ inline W operator+(W x, Absent) { return x; }
"""
_BODY = """
extern "C" __global__ void __launch_bounds__(MOST) cygrad_rows({given}, whole size, whole rows, whole each) {{
    EACH_ROW(row, rows) {{
        const whole n = {length};
{lines}
    }}
}}
"""


def launch_rows(group, needed, layout):
    """Launch a group in which there are functions of rows; return a line that tells of it."""
    dtype = next(each.operands[0].dtype for each in group if isinstance(each.work, RowFunction))
    parts = _Parts(needed, layout, dtype)
    for each in group:
        parts.add(each)
    kernel = _kernel(parts.text(), parts.dtype, current_device(), parts.items, layout.pack, layout.most)
    args = *parts.arrays, *parts.numbers, *parts.made, *parts.lengths, layout.size, layout.rows, layout.length
    kernel((layout.blocks,), layout.threads, args)
    names = "+".join(each.work.__name__ for each in group if each.work is not None)
    return "group", names, sum(a.nbytes for a in parts.arrays), sum(a.nbytes for a in parts.made)


@lru_cache(256)
def _kernel(text, dtype, device, items, pack, most):
    """Return the kernel for a type, on the current GPU, which is `device`."""
    program = Program("cygrad_rows", text, options=EXACT)
    return Kernel(program.kernel(dtype, ITEMS=items, PACK=pack, MOST=most, ALIGNED=1))


class _Element:
    """An element of a row, computed by `line` in a loop over it, from the elements `reads`, in a phase.

    `is_line`: it is the same in all rows, so that it is read again instead of kept.
    """

    def __init__(self, name, line, reads=(), phase=0, is_line=False):
        self.name, self.line, self.reads, self.phase, self.is_line = name, line, reads, phase, is_line
        self.is_kept = self.is_written = False
        self.users: list[_Element] = []
        self.reductions: list[int] = []  # phases after whose loops functions of rows read it


class _Parts:
    """The text of a group's kernel, and what it is launched with."""

    def __init__(self, needed, layout, dtype):
        self.arrays: list[Any] = []
        self.numbers: list[float] = []
        self.made: list[Any] = []
        self.lengths: list[int] = []
        self.dtype = dtype
        self._needed, self._layout = needed, layout
        # Wide blocks have too few registers for float64 where loops are unrolled.
        self.items = 0 if dtype.itemsize == 8 and layout.most > _NARROW else layout.items
        self._given: list[str] = []  # parameters of the arrays
        self._pointers: dict[int, str] = {}
        self._length_names: dict[int, str] = {}
        self._head: list[str] = []  # lines at the beginning of a row
        self._preambles: dict[str, str] = {}  # the namespace of each
        self._structs: dict[str, None] = {}
        self._elements: dict[Any, _Element] = {}  # by the id of the array; of operands, with kind and length
        self._values: dict[Any, Any] = {}  # likewise, (name of a number of the row, the phase from which it is known)
        self._of_phase: dict[int, list[Any]] = {}  # functions that compute numbers of rows, in a phase
        self._after: dict[int, list[Any]] = {}  # functions of rows, made after the loop of a phase
        self._functions: dict[int, Any] = {}  # by the id of the first result: what the others need
        self._written: list[Any] = []  # (element, name of the result)
        self._count = 0

    def _name(self, letter):
        self._count += 1
        return f"{letter}{self._count}"

    def add(self, waiting):
        """Add a function."""
        if isinstance(waiting.work, RowFunction):
            self._add_function(waiting)
        elif waiting.work is None:
            self._add_number(waiting, waiting.operands[0])
        elif waiting.length:
            self._add_of_values(waiting)
        else:
            self._add_elementwise(waiting)

    # -- operands --

    def _pointer(self, a, word="T"):
        found = self._pointers.get(id(a))
        if found is None:
            found = self._pointers[id(a)] = f"given{len(self.arrays)}"
            self.arrays.append(a)
            self._given.append(f"const {word}* __restrict__ {found}")
        return found

    def _length(self, length):
        if length not in self._length_names:
            self._length_names[length] = f"length{len(self.lengths)}"
            self.lengths.append(length)
        return self._length_names[length]

    def _element(self, a, kind, length):
        """Return the element of an operand of an elementwise function, or the (name, phase) of a number of the row."""
        key, n = (id(a), kind, length), self._layout.length
        is_of_chunks = self._layout.size > 0
        if kind == _DENSE and id(a) in self._elements:
            return self._elements[id(a)]
        if kind == _COLUMN and length == n and id(a) in self._values:
            return self._values[id(a)]
        if key in self._values:
            return self._values[key]
        if key in self._elements:
            return self._elements[key]
        pointer, name = self._pointer(a), self._name("a")
        if kind == _ONE or kind == _COLUMN and length % n == 0 and not is_of_chunks:
            at = "0" if kind == _ONE else "row" if length == n else f"quotient(row, {self._length(length // n)})"
            self._head.append(f"const T {name} = {pointer}[{at}];")
            found = self._values[key] = name, 0
            return found
        if kind == _COLUMN:
            line = f"const T {name} = {pointer}[quotient(row * each + i, {self._length(length)})];"
        elif kind == _ROW and (length % n or is_of_chunks):
            at = "row * each + i" if is_of_chunks else "i"
            line = f"const T {name} = {pointer}[rest({at}, {self._length(length)})];"
        else:
            start = "row * each"
            if kind == _ROW:
                start = "0" if length == n else f"rest(row, {self._length(length // n)}) * each"
            is_plain = self._layout.pack > 1 and a.data.ptr % 16
            self._head.append(f"{'Plain' if is_plain else 'Line<T>'} {name}_of{{{pointer} + {start}}};")
            line = f"const T {name} = {name}_of.own(k, i);"
        element = self._elements[key] = _Element(name, line, is_line=kind == _ROW)
        return element

    def _line(self, a):
        """Return the element of a line of a function of rows."""
        key = id(a), LINE
        if key not in self._elements:
            word, name = self._word(a), self._name("a")
            is_plain = self._layout.pack > 1 and a.data.ptr % 16
            self._head.append(f"{'PlainLine' if is_plain else 'Line'}<{word}> {name}_of{{{self._pointer(a, word)}}};")
            self._elements[key] = _Element(name, f"const W {name} = {name}_of.get(k, i);", is_line=True)
        return self._elements[key]

    def _value(self, a):
        """Return (name, phase) of a number of the row that a function of rows reads."""
        if id(a) not in self._values:
            name, word = self._name("v"), self._word(a)
            self._head.append(f"const {word} {name} = {self._pointer(a, word)}[row];")
            self._values[id(a)] = name, 0
        return self._values[id(a)]

    def _word(self, a):
        return "T" if a.dtype == self.dtype else "W"

    # -- functions --

    def _call(self, function, values, name):
        """Return the lines of an elementwise function, which make `name`."""
        space = self._preambles.setdefault(function.preamble, f"functions_{len(self._preambles)}")
        made = function.made
        return (
            f"T {name}; {{ using namespace {space}; {' '.join(values)} T {made}; {function.operation}; "
            f"{name} = {made}; }}"
        )

    def _operands(self, waiting, read):
        """Return the declarations of a function's operands; `read` returns an array's expression."""
        rows, values, function = iter(waiting.rows), [], waiting.work
        kinds = (*waiting.kinds, *[None] * (len(waiting.operands) - len(waiting.kinds)))  # None: a number
        for own, operand, kind in zip(function.names, waiting.operands, kinds):
            if kind is not None:
                values.append(f"const T {own} = {read(operand, kind, next(rows) if kind > _ONE else 0)};")
            elif re.search(rf"\b{own}\b", function.operation):
                values.append(f"const double {own} = number{len(self.numbers)};")
                self.numbers.append(operand)
        return values

    def _add_elementwise(self, waiting):
        reads, phases = [], [0]

        def read(a, kind, length):
            found = self._element(a, kind, length)
            if isinstance(found, _Element):
                reads.append(found)
                phases.append(found.phase)
                return found.name
            phases.append(found[1])
            return found[0]

        name, values = self._name("r"), self._operands(waiting, read)
        element = _Element(name, self._call(waiting.work, values, name), tuple(reads), max(phases))
        self._add_element(waiting, element)

    def _add_element(self, waiting, element):
        self._elements[id(waiting.out)] = element
        if id(waiting.out) in self._needed:
            element.is_written = True
            self._written.append((element, f"made{len(self.made)}"))
            self.made.append(waiting.out)

    def _add_of_values(self, waiting):
        """Add an elementwise function of numbers of rows."""
        phases = [0]

        def read(a, kind, _):
            if id(a) in self._values:
                found, phase = self._values[id(a)]
                phases.append(phase)
                return found
            return f"{self._pointer(a)}[{'0' if kind == _ONE else 'row'}]"

        name, values = self._name("v"), self._operands(waiting, read)
        line = self._call(waiting.work, values, name)
        self._add_value(waiting, name, max(phases), line)

    def _add_value(self, waiting, name, phase, line):
        self._values[id(waiting.out)] = name, phase
        self._of_phase.setdefault(phase, []).append(line)
        if id(waiting.out) in self._needed:
            self._of_phase[phase].append(f"if (!threadIdx.x) made{len(self.made)}[row] = {name};")
            self.made.append(waiting.out)

    def _add_function(self, waiting):
        """Add a function of rows."""
        function, self_name = waiting.work, self._name("s")
        self._structs.setdefault(function.text)
        arrays, phase, reads = iter(waiting.operands), 0, []
        of_row: dict[str, str] = {"self": self_name}
        of_element: dict[str, str] = dict(of_row)
        for (name, _), kind, number in zip(function.operands, waiting.kinds, waiting.rows):
            if kind == ROW:
                element = self._element(next(arrays), _DENSE, 0)
                reads.append(element)
                phase = max(phase, element.phase)
                of_row[name], of_element[name] = f"row_{element.name}", f"W({element.name})"
            elif kind == LINE:
                element = self._line(next(arrays))
                reads.append(element)
                of_row[name], of_element[name] = f"{element.name}_of", element.name
            elif kind == VALUE:
                found, known = self._value(next(arrays))
                of_row[name], phase = f"W({found})", max(phase, known)
            elif kind == NUMBER:
                of_row[name] = of_element[name] = f"number{len(self.numbers)}"
                self.numbers.append(number)
            else:  # a line that is absent
                of_row[name], of_element[name] = "no_line", "Absent()"
        rows = [each for each in reads if not each.is_line]
        for each in rows:
            each.reductions.append(phase)
        self._after.setdefault(phase, []).append((function.built.format(**of_row) + ";", rows))
        self._functions[id(waiting.out)] = iter(function.values), of_row, phase + 1
        if function.made is None:
            self._add_number(waiting, waiting.out)
        else:
            name = self._name("r")
            line = f"const T {name} = T({function.made.format(**of_element)});"
            self._add_element(waiting, _Element(name, line, tuple(reads), phase + 1))

    def _add_number(self, waiting, first):
        """Add the next number for each row of the function whose first result is `first`."""
        values, names, phase = self._functions[id(first)]
        formula, is_wide = next(values)
        name, word = self._name("v"), "W" if is_wide else "T"
        self._add_value(waiting, name, phase, f"const {word} {name} = {word}({formula.format(**names)});")

    # -- the text --

    def text(self):
        """Return the text of the kernel."""
        elements = list({id(element): element for element in self._elements.values()}.values())
        self._place(elements)
        self._choose_kept(elements)
        lines = [*self._head, "AbsentLine no_line;"]
        lines += [f"T {each.name}_kept[ITEMS];" for each in elements if each.is_kept]
        lines += [f"Made {made}_of{{{made} + row * each}};" for _, made in self._written]
        accessors: set[str] = set()
        last = max([0, *self._after, *self._of_phase, *(each.phase for each in elements)])
        for phase in range(last + 1):
            lines += self._of_phase.get(phase, [])
            lines += self._loop(phase, elements)
            for built, rows in self._after.get(phase, []):
                for each in rows:
                    if each.name not in accessors:
                        accessors.add(each.name)
                        lines.append(self._accessor(each, phase))
                lines.append(built)
        spaces = "".join(f"namespace {name} {{ {text}\n}}\n" for text, name in self._preambles.items())
        length = "size - row * each < each ? size - row * each : each" if self._layout.size else "each"
        body = _BODY.format(given=self._parameters(), length=length, lines="\n".join(lines))
        return ROWS + "".join(self._structs) + _HELPERS + spaces + body

    def _parameters(self):
        given = [*self._given, *(f"double number{i}" for i in range(len(self.numbers)))]
        given += [f"{self._word(a)}* __restrict__ made{i}" for i, a in enumerate(self.made)]
        given += [f"whole {name}" for name in self._length_names.values()]
        return ", ".join(given)

    def _place(self, elements):
        """Let each element be computed in the first phase that reads or writes it."""
        for each in elements:
            for read in each.reads:
                read.users.append(each)
        for each in reversed(elements):
            uses = [user.phase for user in each.users] + each.reductions
            if not each.is_written and uses:
                each.phase = min(uses)

    def _choose_kept(self, elements):
        """Keep in registers what functions of rows read, then what later phases read, as far as registers go."""
        layout = self._layout
        if not self.items:
            return
        left = _REGISTERS[layout.most] // (self.items * max(self.dtype.itemsize // 4, 1) ** 2)
        reduced = [each for each in elements if each.reductions]
        later = [
            each
            for each in elements
            if not each.is_line and any(phase > each.phase for phase in (user.phase for user in each.users))
        ]
        for each in [*reduced, *later]:
            if left and not each.is_kept:
                each.is_kept, left = True, left - 1

    def _loop(self, phase, elements):
        """Return the lines that compute what is kept or written in a phase."""
        written = [(each, made) for each, made in self._written if each.phase == phase]
        kept = [each for each in elements if each.is_kept and each.phase == phase]
        lines = _lines_for([*kept, *(each for each, _ in written)], phase)
        lines += [f"{each.name}_kept[k] = {each.name};" for each in kept]
        lines += [f"{made}_of.put(k, i, W({each.name}));" for each, made in written]
        return ["EACH(i, k, n) {", *lines, "}"] if lines else []

    def _accessor(self, element, phase):
        """Return the line that makes an object with the elements of a row."""
        if element.is_kept:
            return f"Kept row_{element.name}{{{element.name}_kept}};"
        lines = " ".join(_lines_for([element], phase + 1))
        return (
            f"auto row_{element.name} = computed([&](whole k, whole i) -> W {{ {lines} return W({element.name}); }});"
        )


def _lines_for(elements, phase):
    """Return the lines that compute elements in a loop of a phase; what earlier phases have kept is there."""
    lines, seen = [], set()

    def visit(element):
        if element.name in seen:
            return
        seen.add(element.name)
        if element.is_kept and element.phase < phase:
            lines.append(f"const T {element.name} = {element.name}_kept[k];")
            return
        for read in element.reads:
            visit(read)
        lines.append(element.line)

    for each in elements:
        visit(each)
    return lines
