"""Programs in files.

Note [Program files]
--------------------
A file is one of `torch.save`, a dictionary of tensors, numbers and text, and is read as such with `weights_only=True`:
no object of another class is made. The program is JSON text in it. Reading it checks each part: functions are among
those that programs call (functions.py), each tensor is an argument, a constant, a weight or an earlier result, and
values are of the kinds below. JSON's own values stand for themselves, a list for a list, and an object with one key
for the rest.
"""

import json
import math
from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.export._programs.functions import function_named
from cygrad.export._programs.program import Call, Program, Ref, leaves
from cygrad.export._programs.sizes import Formula

__all__ = ["FORMAT", "from_text", "read_package", "to_text", "write_package"]

FORMAT = "cygrad.program"
VERSION = 1
_DEEPEST = 50
_DTYPES = {str(value): value for value in vars(cygrad).values() if isinstance(value, cygrad.dtype)}
_LAYOUTS = {str(value): value for value in vars(cygrad).values() if isinstance(value, cygrad.layout)}
_FORMATS = {str(value): value for value in vars(cygrad).values() if isinstance(value, cygrad.memory_format)}


class _Malformed(Exception):
    """Text that is no program."""


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise _Malformed(what)


# -- values ------------------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is Ref:
        return {"tensor": value.name}
    if isinstance(value, Formula):
        terms = [[c, [list(source) for source in sources]] for c, sources in value.terms]
        return {"size": [terms, value.power, value.factor]}
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"fields": [list(value._fields), [_encoded(each) for each in value]]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _encoded(each)] for key, each in value.items()]}
    if type(value) is slice:
        return {"slice": [_encoded(each) for each in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if type(value) is complex:
        return {"complex": [_encoded(value.real), _encoded(value.imag)]}
    for kind, name in ((cygrad.dtype, "dtype"), (cygrad.device, "device"), (cygrad.layout, "layout"),
                       (cygrad.memory_format, "memory_format")):  # fmt: skip
        if isinstance(value, kind):
            return {name: str(value)}
    raise ValueError(f"a value of type {type(value).__name__} cannot be saved in a program")


def _decoded(value: Any, depth: int = 0) -> Any:
    _require(depth < _DEEPEST, "values nested too deeply")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value
    if type(value) is list:
        return [_decoded(each, depth + 1) for each in value]
    _require(type(value) is dict and len(value) == 1, f"the value {value!r}")
    ((kind, content),) = value.items()
    decode = _KINDS.get(kind)
    _require(decode is not None, f"a value of the kind {kind!r}")
    assert decode is not None
    return decode(content, depth + 1)


def _listed(content: Any, length: int | None = None) -> list[Any]:
    _require(type(content) is list and length in (None, len(content)), f"the list {content!r}")
    return content


def _text(content: Any) -> str:
    _require(type(content) is str, f"the text {content!r}")
    return content


def _one_of(table: Mapping[str, Any], content: Any) -> Any:
    _require(_text(content) in table, f"the value {content!r}")
    return table[content]


def _as_float(content: Any, depth: int = 0) -> float:
    return _one_of({"inf": math.inf, "-inf": -math.inf, "nan": math.nan}, content)


def _as_size(content: Any, depth: int) -> Formula:
    terms, power, factor = _listed(content, 3)
    _require(all(type(each) in (int, float) for each in (power, factor)), "a size")
    _require(power in (1, -1, 0.5, -0.5), "the power of a size")
    found = []
    for term in _listed(terms):
        coefficient, sources = _listed(term, 2)
        _require(type(coefficient) is int, "a size")
        pairs = [_listed(source, 2) for source in _listed(sources)]
        _require(all(type(name) is str and type(dim) is int for name, dim in pairs), "a size")
        found.append((coefficient, tuple((name, dim) for name, dim in pairs)))
    return Formula(tuple(found), power, factor)


def _as_dict(content: Any, depth: int) -> dict[str, Any]:
    pairs = [_listed(pair, 2) for pair in _listed(content)]
    return {_key(key): _decoded(each, depth) for key, each in pairs}


def _as_fields(content: Any, depth: int) -> Any:
    names, values = _listed(content, 2)
    names = tuple(map(_text, _listed(names)))
    kind = namedtuple("Fields", names)  # type: ignore[misc]  # raises ValueError for what is no name
    return kind._make([_decoded(each, depth) for each in _listed(values)])


def _key(key: Any) -> Any:
    _require(type(key) in (str, int), f"the key {key!r}")
    return key


def _as_complex(content: Any, depth: int) -> complex:
    parts = [_decoded(each, depth) for each in _listed(content, 2)]
    _require(all(type(each) is float for each in parts), "a complex number")
    return complex(*parts)


def _as_device(content: Any, depth: int) -> Any:
    try:
        return cygrad.device(_text(content))
    except RuntimeError as error:
        raise _Malformed(str(error)) from None


_KINDS: dict[str, Any] = {
    "float": _as_float,
    "tensor": lambda content, depth: Ref(_text(content)),
    "size": _as_size,
    "tuple": lambda content, depth: tuple([_decoded(each, depth) for each in _listed(content)]),
    "fields": _as_fields,
    "dict": _as_dict,
    "slice": lambda content, depth: slice(*[_decoded(each, depth) for each in _listed(content, 3)]),
    "ellipsis": lambda content, depth: Ellipsis,
    "complex": _as_complex,
    "dtype": lambda content, depth: _one_of(_DTYPES, content),
    "device": _as_device,
    "layout": lambda content, depth: _one_of(_LAYOUTS, content),
    "memory_format": lambda content, depth: _one_of(_FORMATS, content),
}


# -- programs ----------------------------------------------------------------------------------------------


def to_text(program: Program) -> str:
    """Return a program as JSON text, without its constants."""
    calls = [
        [call.target, _encoded(call.args), _encoded(call.kwargs), [[list(path), name] for path, name in call.results],
         call.site]
        for call in program.calls
    ]  # fmt: skip
    content = {
        "name": program.name,
        "parameters": [[name, _encoded(value)] for name, value in program.parameters],
        "calls": calls,
        "output": _encoded(program.output),
        "paths": [[name, path] for name, path in program.paths.items()],
    }
    return json.dumps(content, separators=(",", ":"))


def from_text(text: str, constants: dict[str, Tensor], attributes: set[str]) -> Program:
    """Return the program that JSON text describes.

    `attributes` are the names of parameters and buffers. Raises RuntimeError for text that is no program.
    """
    try:
        content = json.loads(text)
        _require(type(content) is dict, "no program")
        program = Program(
            _identifier(content.get("name")),
            [(_identifier(name), _decoded(value)) for name, value in
             (_listed(pair, 2) for pair in _listed(content.get("parameters")))],
            [_call(each) for each in _listed(content.get("calls"))],
            _decoded(content.get("output")),
            constants,
            {_text(name): _text(path) for name, path in
             (_listed(pair, 2) for pair in _listed(content.get("paths", [])))},
        )  # fmt: skip
        _check_names(program, attributes)
        program.prepared()
    except (_Malformed, ValueError, RecursionError, KeyError, TypeError) as error:
        raise RuntimeError(f"the file holds no program that can be run: {error}") from None
    return program


def _identifier(name: Any) -> str:
    _require(_text(name).isidentifier(), f"the name {name!r}")
    return name


def _call(content: Any) -> Call:
    target, args, kwargs, results, site = _listed(content, 5)
    function_named(_text(target))  # raises ValueError
    found = []
    for result in _listed(results):
        path, name = _listed(result, 2)
        found.append((tuple([_key(key) for key in _listed(path)]), _identifier(name)))
    decoded, named = _decoded(args), _decoded(kwargs)
    _require(type(decoded) is tuple and type(named) is dict, "the arguments of a call")
    _require(all(type(key) is str for key in named), "the arguments of a call")
    return Call(target, decoded, named, found, _text(site))


def _check_names(program: Program, attributes: set[str]) -> None:
    known = {*program.inputs(), *program.constants, *(f"self.{name}" for name in attributes)}
    _require(all(name.isidentifier() for name in [*program.inputs(), *program.constants]), "the name of a tensor")
    for call in program.calls:
        for name in call.refs():
            _require(name in known, f"a tensor {name!r} that does not exist")
        known.update(name for _, name in call.results)
    for value in leaves(program.output):
        if type(value) is Ref:
            _require(value.name in known, f"a result {value.name!r} that does not exist")


# -- files -------------------------------------------------------------------------------------------------


def write_package(f: Any, kind: str, content: dict[str, Any]) -> None:
    """Save what a kind of program consists of."""
    cygrad.save({"format": FORMAT, "version": VERSION, "kind": kind, **content}, f)


def read_package(f: Any, kinds: tuple[str, ...], map_location: Any = None) -> dict[str, Any]:
    """Return what `write_package` has saved. Raises RuntimeError for other files."""
    content = cygrad.load(f, map_location=map_location, weights_only=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuntimeError("the file holds no program\n  torch.load reads files of torch.save")
    if content.get("version") != VERSION:
        raise RuntimeError(f"the program was saved by another version of cygrad ({content.get('version')!r})")
    if content.get("kind") not in kinds:
        raise RuntimeError(f"the file holds a program of the kind {content.get('kind')!r}, not {' or '.join(kinds)}")
    return content
