"""Programs: lists of calls of public functions, with names for the tensors in between.

Note [Programs]
---------------
A program is data. A call names its function, and holds the arguments as they were written: numbers, dtypes, slices,
lists, with a `Ref` in place of each tensor and a `Formula` in place of each number that follows the lengths of the
inputs. The names of tensors are those of inputs, of results of earlier calls, of constants, and "self.layer.weight" for
parameters and buffers, which belong to the module that runs the program. What a function changes in place it changes
when it is called anew, so a program that runs needs to know nothing of memory. A program written as an ONNX graph
does: `Call.changed`.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cygrad import Tensor
from cygrad.export._programs.functions import function_named

__all__ = ["Call", "Program", "Ref", "at_path", "leaves", "mapped"]


class Ref(NamedTuple):
    """Stands for the tensor of a name."""

    name: str

    def __repr__(self) -> str:
        return self.name


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return arguments with each value in lists, tuples, dictionaries and slices replaced by `function(value)`.

    The containers keep their classes.
    """
    kind = type(value)
    if kind is list:
        return [mapped(function, each) for each in value]
    if kind is tuple:
        return tuple([mapped(function, each) for each in value])
    if kind is dict:
        return {key: mapped(function, each) for key, each in value.items()}
    if kind is slice:
        return slice(mapped(function, value.start), mapped(function, value.stop), mapped(function, value.step))
    if kind is Ref or not isinstance(value, (list, tuple, dict)):
        return function(value)
    if isinstance(value, tuple):  # a named one has `_make`, as its constructor takes the values one by one
        return getattr(kind, "_make", kind)([mapped(function, each) for each in value])
    made = copy(value)
    for key in value if isinstance(value, dict) else range(len(value)):
        made[key] = mapped(function, value[key])
    return made


def leaves(value: Any) -> Iterator[Any]:
    """Iterate over the values in lists, tuples, dictionaries and slices."""
    if isinstance(value, (list, tuple)) and type(value) is not Ref:
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, slice):
        yield from leaves((value.start, value.stop, value.step))
    else:
        yield value


def at_path(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what a result has at a path of positions and keys."""
    for key in path:
        value = value[key]
    return value


@dataclass
class Call:
    """One call of a program."""

    target: str  # the name of the function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: list[tuple[tuple[Any, ...], str]]  # (path in the result, name) for each tensor
    site: str = ""  # file and line of the user's program
    changed: tuple[str, ...] = ()  # the names of tensors that it changes in place; known while recording

    def refs(self) -> list[str]:
        """Return the names of the tensors that the call reads."""
        found = []
        for value in leaves((self.args, self.kwargs)):
            if type(value) is Ref:
                found.append(value.name)
            elif hasattr(value, "sources"):
                found += value.sources()
        return found


@dataclass
class Program:
    """A recorded program; see Note [Programs]."""

    name: str
    parameters: list[tuple[str, Any]]  # the arguments by name, with a Ref for each tensor
    calls: list[Call]
    output: Any
    constants: dict[str, Tensor]
    paths: dict[str, str] = field(default_factory=dict)  # of the constants that are attributes of modules
    # Known only to the one that recorded it: the tensors by name, and how the lengths varied
    tensors: dict[str, Tensor] = field(default_factory=dict, repr=False)
    varying: dict[str, set[int]] = field(default_factory=dict, repr=False)
    alive: Any = field(default=None, repr=False)  # what keeps the addresses of tensors from being used again

    def forget(self) -> None:
        """Let go of all tensors but the constants, and of the arguments' lengths."""
        self.tensors, self.varying, self.alive = {}, {}, None

    def __post_init__(self) -> None:
        self._steps: list[Any] | None = None

    def inputs(self) -> list[str]:
        """Return the names of the tensors among the arguments."""
        return [value.name for value in leaves([each for _, each in self.parameters]) if type(value) is Ref]

    def attributes(self) -> list[str]:
        """Return the names of parameters and buffers that the program reads, in the order of first use."""
        names = [name for call in self.calls for name in call.refs()]
        names += [value.name for value in leaves(self.output) if type(value) is Ref]
        return [name for name in dict.fromkeys(names) if name.startswith("self.")]

    def prepared(self) -> list[Any]:
        """Return (function, call, names that are not needed after it) for each call; raises ValueError for others."""
        if self._steps is None:
            last: dict[str, int] = {}
            for position, call in enumerate(self.calls):
                for name in (*call.refs(), *(name for _, name in call.results)):
                    last[name] = position
            kept = {value.name for value in leaves(self.output) if type(value) is Ref}
            done: dict[int, list[str]] = {}
            for name, position in last.items():
                if name not in kept and not name.startswith("self.") and name not in self.constants:
                    done.setdefault(position, []).append(name)
            self._steps = [
                (function_named(call.target), call, done.get(position, ())) for position, call in enumerate(self.calls)
            ]
        return self._steps

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], attribute: Callable[[str], Tensor]) -> Any:
        """Run the program; `attribute` returns the parameter or buffer with a name such as "layer.weight"."""
        names = self.bound(args, kwargs)
        names.update(self.constants)

        def value_of(value: Any) -> Any:
            if type(value) is Ref:
                found = names.get(value.name)
                return attribute(value.name[5:]) if found is None else found
            return value.value(lambda name: value_of(Ref(name))) if hasattr(value, "sources") else value

        for function, call, done in self.prepared():
            result = function(*mapped(value_of, call.args), **mapped(value_of, call.kwargs))
            for path, name in call.results:
                names[name] = at_path(result, path)
            for name in done:
                names.pop(name, None)
        return mapped(value_of, self.output)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
        """Return the tensors among the arguments by their names in the program.

        Raises RuntimeError if there are too many or too few arguments, or of other kinds.
        """
        if len(args) > len(self.parameters):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self.parameters)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self.declaration()}"
            )
        found: dict[str, Tensor] = {}
        given = dict(zip([name for name, _ in self.parameters], args))
        for name in kwargs:
            if name in given or name not in dict(self.parameters):
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: "
                                   f"{self.declaration()}")  # fmt: skip
        given.update(kwargs)
        for name, structure in self.parameters:
            if name not in given:
                raise RuntimeError(f"{self.name}() is missing value for argument '{name}'. Declaration: "
                                   f"{self.declaration()}")  # fmt: skip
            self._match(name, structure, given[name], found)
        return found

    def _match(self, name: str, structure: Any, value: Any, found: dict[str, Tensor]) -> None:
        if type(structure) is Ref:
            if not isinstance(value, Tensor):
                raise self._mismatch(name, "Tensor", value)
            found[structure.name] = value
        elif isinstance(structure, (list, tuple)):
            if not isinstance(value, (list, tuple)) or len(value) != len(structure):
                raise self._mismatch(name, f"{type(structure).__name__} of {len(structure)}", value)
            for inner, each in zip(structure, value):
                self._match(name, inner, each, found)
        elif isinstance(structure, dict):
            if not isinstance(value, dict) or value.keys() != structure.keys():
                raise self._mismatch(name, f"dict with the keys {list(structure)}", value)
            for key, inner in structure.items():
                self._match(name, inner, value[key], found)
        elif type(value) is not type(structure) or value != structure:
            raise self._mismatch(name, f"the value {structure!r}, with which it was recorded", value)

    def _mismatch(self, name: str, expected: str, value: Any) -> RuntimeError:
        return RuntimeError(
            f"{self.name}() Expected a value of type '{expected}' for argument '{name}' but instead found type "
            f"'{type(value).__name__}'.\n  Declaration: {self.declaration()}"
        )

    def declaration(self) -> str:
        """Return the name with the arguments: "forward(Tensor x) -> Tensor"."""
        arguments = ", ".join(f"{kind_of(value)} {name}" for name, value in self.parameters)
        return f"{self.name}({arguments}) -> {kind_of(self.output)}"


def kind_of(structure: Any) -> str:
    """Return how TorchScript writes the type of arguments or results."""
    if type(structure) is Ref:
        return "Tensor"
    if isinstance(structure, tuple):
        return f"({', '.join(map(kind_of, structure))})"
    if isinstance(structure, list):
        return f"{kind_of(structure[0]) if structure else 'Tensor'}[]"
    if isinstance(structure, dict):
        return "Dict(str, Tensor)"
    return "NoneType" if structure is None else type(structure).__name__
