"""Finds the numbers of a program that follow the lengths of its arguments.

Note [Lengths that vary]
------------------------
Sizes are plain integers, so `x.view(x.size(0), -1)` is recorded as `view(x, 2, -1)`. Whether the 2 is a constant shows
when the program is recorded again for arguments of other lengths: each group of dimensions that vary together is made
1 and 3 longer, alone, and all of them together. A number that stays the same is a constant. For another one a formula
is searched that holds in every recording: the length of a dimension of an argument, of an operand of the call or of an
earlier result, a multiple plus a constant, a product, or a polynomial of the lengths; for floats also a power. If
there is none, or if the calls themselves differ, the program does not generalize, and that is an error which names the
line.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor, nn
from cygrad.export._programs.program import Call, Program, Ref, leaves, mapped
from cygrad.export._programs.recording import RecordingError, TracerWarning, memory_of, record, version_of
from cygrad.utils.warning import warn

__all__ = ["Formula", "Group", "SizeError", "Variants", "alike", "discovered", "generalized", "resized", "undone"]

Group = list[tuple[str, int]]  # (argument, dimension) pairs that always have the same length
_POWERS = (1.0, -1.0, 0.5, -0.5)


class SizeError(RecordingError):
    """A program that does the same for one length only."""


class Formula:
    """A number that follows from lengths: `factor * (sum of coefficient * product of lengths) ** power`.

    It is an int if `factor` and `power` are 1. `terms` are (coefficient, ((name of a tensor, dimension), ...)) pairs.
    """

    def __init__(self, terms: Any, power: float = 1, factor: float = 1) -> None:
        self.terms, self.power, self.factor = terms, power, factor

    def __repr__(self) -> str:
        terms = []
        for coefficient, sizes in self.terms:
            parts = [f"{name}.size({dim})" for name, dim in sizes]
            terms.append(" * ".join([*([] if coefficient == 1 and parts else [str(coefficient)]), *parts]))
        text = " + ".join(terms)
        if self.power != 1:
            text = f"({text}) ** {self.power}"
        return text if self.factor == 1 else f"{self.factor} * {f'({text})' if len(terms) > 1 else text}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def sources(self) -> list[str]:
        """Return the names of the tensors whose lengths the number follows."""
        return [name for _, sizes in self.terms for name, _ in sizes]

    def is_int(self) -> bool:
        """Whether the number is an integer."""
        return self.power == 1 and self.factor == 1

    def value(self, tensor: Callable[[str], Tensor]) -> int | float:
        """Return the number; `tensor` returns the tensor of a name."""
        total = sum(c * math.prod(tensor(name).shape[dim] for name, dim in sizes) for c, sizes in self.terms)
        return total if self.is_int() else self.factor * float(total) ** self.power


# -- other lengths -----------------------------------------------------------------------------------------


def resized(t: Tensor, dim: int, length: int) -> Tensor:
    """Return a tensor with another length of one dimension, whose further elements repeat the last one of `t`."""
    if not t.shape[dim]:
        raise SizeError(f"dimension {dim} of an argument has the length 0, so other lengths cannot be tried")
    index = cygrad.arange(length, device=t.device).clamp_(max=t.shape[dim] - 1)
    return t.detach().index_select(dim, index).requires_grad_(t.requires_grad)


@contextmanager
def undone(function: Any, attributes: Mapping[str, Tensor]) -> Iterator[None]:
    """Context without gradients, after which tensors and random numbers are as they were.

    The tensors are `attributes` and, if `function` is a module, those that are plain attributes of its modules. All
    attributes of these modules are the same objects as before.
    """
    modules = list(function.modules()) if isinstance(function, nn.Module) else []
    tables = [(table, dict(table)) for each in modules for table in _tables(each)]
    held = [value for table, _ in tables for value in table.values() if isinstance(value, Tensor)]
    tensors = {id(t): t for t in (*attributes.values(), *held)}.values()
    former = [(t, version_of(t), t.detach().clone()) for t in tensors]
    try:
        with cygrad.random.fork_rng(), cygrad.no_grad():
            yield
    finally:
        for table, before in tables:
            if table.keys() != before.keys() or any(table[name] is not value for name, value in before.items()):
                table.clear()
                table.update(before)
        with cygrad.no_grad():
            for t, version, value in former:
                if version_of(t) != version or not _has_bytes_of(t, value):  # `t.data` has a version of its own
                    t.copy_(value)


def _tables(module: nn.Module) -> tuple[dict[str, Any], ...]:
    return vars(module), module._parameters, module._buffers, module._modules


def _has_bytes_of(t: Tensor, copy: Tensor) -> bool:
    """Whether the memory of a tensor has the bytes of a copy; true for tensors without memory of their own."""
    if not memory_of(t):
        return True
    plain = (each.detach().resolve_conj().resolve_neg().contiguous() for each in (t, copy))
    one, other = (each.reshape(-1).view(cygrad.uint8) for each in plain)
    return one.equal(other)


class Variants:
    """Records a function again for arguments of other lengths, without lasting effects."""

    def __init__(self, function: Any, args: Any, kwargs: Any, base: Program, options: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs, self.base = function, args, kwargs or {}, base
        self.options = {**options, "quiet": True}
        self.given = {id(base.tensors[name]): name for name in base.inputs()}

    def record(self, lengths: Mapping[tuple[str, int], int]) -> Program:
        """Return the program for other lengths: {(argument, dimension): length}."""

        def other(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            name = self.given.get(id(value))
            value = value.detach().clone().requires_grad_(value.requires_grad)
            for (of, dim), length in lengths.items():
                if of == name:
                    value = resized(value, dim, length)
            return value

        args, kwargs = mapped(other, self.args), mapped(other, self.kwargs)
        with undone(self.function, self.options["attributes"]):
            return record(self.function, args, kwargs, **self.options)


def discovered(variants: Variants) -> list[Group]:
    """Return the groups of dimensions of the arguments whose lengths may be others, as trying shows."""
    dims = [(name, dim) for name in variants.base.inputs() for dim in range(variants.base.tensors[name].dim())]
    lengths = {(name, dim): variants.base.tensors[name].shape[dim] for name, dim in dims}
    groups = [[each] for each in dims if _runs(variants, [each], lengths)]
    left = [each for each in dims if [each] not in groups]
    for length in dict.fromkeys(lengths[each] for each in left):
        group = [each for each in left if lengths[each] == length]
        if len(group) > 1 and _runs(variants, group, lengths):
            groups.append(group)
    return groups


def _runs(variants: Variants, group: Group, lengths: Mapping[tuple[str, int], int]) -> bool:
    if not lengths[group[0]]:
        return False
    try:
        other = variants.record({each: lengths[each] + 1 for each in group})
    except Exception:  # whatever the function raises for lengths that it was not written for
        return False
    return alike(variants.base, other) is None


# -- comparing ---------------------------------------------------------------------------------------------


def alike(one: Program, other: Program) -> str | None:
    """Return where the calls of two recordings differ, or None."""
    for a, b in zip(one.calls, other.calls):
        if a.target != b.target:
            return f"{a.target} becomes {b.target}, at {a.site}"
        if [path for path, _ in a.results] != [path for path, _ in b.results] or _shape(a) != _shape(b):
            return f"{a.target} has other arguments or another number of results, at {a.site}"
    if len(one.calls) != len(other.calls):
        longer = max(one.calls, other.calls, key=len)[min(len(one.calls), len(other.calls))]
        return f"the number of calls changes from {len(one.calls)} to {len(other.calls)}, first {longer.site}"
    if _structure(one.output) != _structure(other.output):
        return "the results have another structure"
    return None


def _kept(value: Any) -> Any:
    return "number" if type(value) in (int, float) else value


def _shape(call: Call) -> Any:
    return mapped(_kept, call.args), mapped(_kept, call.kwargs)


def _structure(output: Any) -> Any:
    return mapped(_kept, output)


def generalized(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    base: Program,
    groups: list[Group] | None,
    strict: bool,
    **options: Any,
) -> Program:
    """Return the program with a `Formula` for each number that follows the lengths of `groups`.

    `groups` are the dimensions that vary; None finds them by trying. The rest of the arguments are those of `record`.
    With `strict`, what does not generalize raises SizeError; otherwise it stays as it is, with a TracerWarning.
    """
    variants = Variants(function, args, kwargs, base, options)
    if groups is None:
        groups = discovered(variants)
    if not groups:
        return base
    others, groups = _recorded(variants, groups, strict)
    return _Fit([base, *others], groups, strict).program() if others else base


def _recorded(variants: Variants, groups: list[Group], strict: bool) -> tuple[list[Program], list[Group]]:
    """Return the recordings for other lengths, and the groups; those that only vary together are joined."""
    own = {each: variants.base.tensors[each[0]].shape[each[1]] for group in groups for each in group}
    others: list[Program] = []
    joined: list[Group] = []
    failed: dict[int, list[tuple[Group, Exception]]] = {}  # by length
    for group in groups:
        try:
            others += _longer(variants, group, own)
            joined.append(group)
        except Exception as failure:  # whatever the function raises for lengths that it was not written for
            failed.setdefault(own[group[0]], []).append((group, failure))
    for members in failed.values():
        together, reason = [each for group, _ in members for each in group], members[0][1]
        if len(members) > 1:
            try:
                others += _longer(variants, together, own)
                joined.append(together)
                continue
            except Exception as failure:
                reason = failure
        if strict:
            raise _refusal(reason, together) from reason
    if len(joined) > 1:
        others += _all_longer(variants, joined, own, strict)
    return others, joined


def _longer(variants: Variants, group: Group, own: Mapping[tuple[str, int], int]) -> list[Program]:
    return [_variant(variants, {each: own[each] + more for each in group}) for more in (1, 3)]


def _all_longer(variants: Variants, groups: list[Group], own: Any, strict: bool) -> list[Program]:
    found = []
    for first in (2, 5):
        lengths = {each: own[each] + first + 2 * i for i, group in enumerate(groups) for each in group}
        try:
            found.append(_variant(variants, lengths))
        except Exception as error:
            if strict:
                raise _refusal(error, [each for group in groups for each in group]) from error
    return found


def _variant(variants: Variants, lengths: Mapping[tuple[str, int], int]) -> Program:
    other = variants.record(lengths)
    difference = alike(variants.base, other)
    if difference is not None:
        raise SizeError(f"the program depends on the lengths of its arguments: {difference}")
    return other


def _refusal(error: Exception, group: Group) -> SizeError:
    dims = ", ".join(f"dimension {dim} of {name!r}" for name, dim in group)
    return SizeError(f"{dims} cannot vary\n  {type(error).__name__}: {error}")


class _Fit:
    """Finds the formulas of numbers that differ between recordings."""

    def __init__(self, programs: list[Program], groups: list[Group], strict: bool) -> None:
        self.programs, self.base, self.strict = programs, programs[0], strict
        self.symbols = [group[0] for group in groups]
        self.sources: dict[tuple[int, ...], tuple[str, int]] = {}  # lengths in all recordings: where they are found
        for symbol in self.symbols:
            self._add(*symbol)
        self.varying: dict[str, set[int]] = {}
        for name, t in self.base.tensors.items():
            if all(name in program.tensors for program in programs):
                shapes = [program.tensors[name].shape for program in programs]
                if any(len(shape) != t.dim() for shape in shapes):
                    self._fail(f"the number of dimensions of {name!r} changes")
                    continue
                differing = {d for d in range(t.dim()) if len({shape[d] for shape in shapes}) > 1}
                if differing:
                    self.varying[name] = differing

    def _lengths(self, name: str, dim: int) -> tuple[int, ...]:
        return tuple([program.tensors[name].shape[dim] for program in self.programs])

    def _add(self, name: str, dim: int) -> None:
        self.sources.setdefault(self._lengths(name, dim), (name, dim))

    def _fail(self, text: str) -> None:
        if self.strict:
            raise SizeError(f"{text}\n  lengths that vary: {self._symbols_text()}")
        warn(
            f"{text}, when the lengths of the arguments change. It will be treated as a constant in the future. This "
            "means that the trace might not generalize to other inputs!",
            TracerWarning,
        )

    def _symbols_text(self) -> str:
        return ", ".join(f"dimension {dim} of {name!r}" for name, dim in self.symbols)

    def program(self) -> Program:
        """Return the program with formulas."""
        base = self.base
        for name in base.inputs():
            for dim in sorted(self.varying.get(name, ())):
                self._add(name, dim)
        used = {name for call in base.calls for name in call.refs()}
        for name in base.constants:
            if name in used and not self._same_constant(name):
                shape = tuple(base.constants[name].shape)
                self._fail(
                    f"a tensor made of Python values (of shape {shape}, used at {self._first_use(name)}) differs"
                )
        calls = []
        for calls_of in zip(*(program.calls for program in self.programs)):
            call = calls_of[0]
            fitted = self._fitted(call, [(each.args, each.kwargs) for each in calls_of])
            calls.append(Call(call.target, fitted[0], fitted[1], call.results, call.site, call.changed))
            for _, name in call.results:
                for dim in self.varying.get(name, ()):
                    self._add(name, dim)
        output = self._fitted(None, [program.output for program in self.programs])
        program = Program(
            base.name, base.parameters, calls, output, base.constants, base.paths, base.tensors, self.varying
        )
        program.alive = base.alive
        return program

    def _same_constant(self, name: str) -> bool:
        values = [program.constants.get(name) for program in self.programs]
        first = values[0]
        return all(
            each is not None
            and each.shape == first.shape  # type: ignore[union-attr]
            and bool(cygrad.isclose(each, first, rtol=0, atol=0, equal_nan=True).all())  # type: ignore[arg-type]
            for each in values[1:]
        )

    def _first_use(self, name: str) -> str:
        return next((call.site for call in self.base.calls if name in call.refs()), "the end")

    def _fitted(self, call: Call | None, versions: Sequence[Any]) -> Any:
        """Return arguments with formulas where the versions differ."""
        first = versions[0]
        kind = type(first)
        if kind in (list, tuple):
            return kind([self._fitted(call, each) for each in zip(*versions)])
        if kind is dict:
            return {key: self._fitted(call, [version[key] for version in versions]) for key in first}
        if kind is slice:
            parts = [[getattr(v, part) for v in versions] for part in ("start", "stop", "step")]
            return slice(*(self._fitted(call, each) for each in parts))
        if kind not in (int, float) or all(_equal(each, first) for each in versions):
            return first
        formula = self._formula(call, versions)
        if formula is None:
            where = f"a number in a call of {call.target}, at {call.site}," if call else "a number among the results"
            self._fail(f"{where} follows no formula that is known: {list(versions)}")
            return first
        return formula

    def _formula(self, call: Call | None, values: Sequence[Any]) -> Formula | None:
        sources = dict(self.sources)
        own: dict[tuple[int, ...], tuple[str, int]] = {self._lengths(*each): each for each in self.symbols}
        for name in [each.name for each in leaves((call.args, call.kwargs)) if type(each) is Ref] if call else ():
            for dim in sorted(self.varying.get(name, ())):
                own.setdefault(self._lengths(name, dim), (name, dim))
        sources = {**own, **sources}
        if all(type(each) is int for each in values):
            return _of_ints(tuple(values), sources, own, [self._lengths(*each) for each in self.symbols])
        return _of_floats(values, sources)


def _equal(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


def _of_ints(
    values: tuple[int, ...],
    sources: Mapping[tuple[int, ...], tuple[str, int]],
    own: Mapping[tuple[int, ...], tuple[str, int]],
    symbols: Sequence[tuple[int, ...]],
) -> Formula | None:
    if values in sources:
        return Formula(((1, (sources[values],)),))
    for lengths, source in sources.items():
        line = _line(lengths, values)
        if line is not None:
            return _of_line(line, (source,))
    for count in (2, 3):
        for chosen in itertools.combinations_with_replacement(own.items(), count):
            products = [math.prod(each) for each in zip(*(lengths for lengths, _ in chosen))]
            line = _line(products, values)
            if line is not None:
                return _of_line(line, tuple(source for _, source in chosen))
    return _polynomial(values, symbols, [sources[each] for each in symbols])


def _of_line(line: tuple[int, int], sizes: tuple[tuple[str, int], ...]) -> Formula:
    factor, offset = line
    return Formula(((factor, sizes), (offset, ())) if offset else ((factor, sizes),))


def _line(lengths: Sequence[int], values: Sequence[int]) -> tuple[int, int] | None:
    """Return integers (a, b) with `a * lengths + b == values`, or None."""
    other = next((i for i, each in enumerate(lengths) if each != lengths[0]), None)
    if other is None:
        return None
    a, rest = divmod(values[other] - values[0], lengths[other] - lengths[0])
    b = values[0] - a * lengths[0]
    exact = not rest and a and all(a * each + b == value for each, value in zip(lengths, values))
    return (a, b) if exact else None


def _polynomial(values: Sequence[int], symbols: Any, names: Any) -> Formula | None:
    """Return a polynomial that is linear in each length; it must hold in more recordings than it has terms."""
    subsets = [each for n in range(len(symbols) + 1) for each in itertools.combinations(range(len(symbols)), n)]
    if len(subsets) >= len(values):
        return None
    columns = [[math.prod(symbols[i][t] for i in subset) for subset in subsets] for t in range(len(values))]
    found = np.linalg.lstsq(np.array(columns, float), np.array(values, float), rcond=None)[0]
    rounded = [round(float(each)) for each in found]
    if [sum(c * each for c, each in zip(rounded, row)) for row in columns] != list(values):
        return None
    return Formula(tuple((c, tuple(names[i] for i in subset)) for c, subset in zip(rounded, subsets) if c))


def _of_floats(values: Sequence[float], sources: Mapping[tuple[int, ...], tuple[str, int]]) -> Formula | None:
    for lengths, source in sources.items():
        for power in _POWERS:
            if all(lengths):
                factors = [value / length**power for value, length in zip(values, lengths)]
                if all(math.isclose(each, factors[0], rel_tol=1e-12) for each in factors):
                    return Formula(((1, (source,)),), power, factors[0])
    return None
