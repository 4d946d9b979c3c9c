"""Programs as text: Python code, and graphs as TorchScript prints them."""

from collections.abc import Iterator
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.export._programs.program import Call, Program, Ref, kind_of, leaves

__all__ = ["Graph", "Node", "code_of"]

_SCALARS = {
    cygrad.float32: "Float",
    cygrad.float64: "Double",
    cygrad.float16: "Half",
    cygrad.bfloat16: "BFloat16",
    cygrad.int64: "Long",
    cygrad.int32: "Int",
    cygrad.int16: "Short",
    cygrad.int8: "Char",
    cygrad.uint8: "Byte",
    cygrad.bool: "Bool",
}


def _written(program: Program, value: Any) -> str:
    """Return an argument as Python writes it."""

    def write(value: Any) -> str:
        if type(value) is Ref:
            return f"CONSTANTS.{value.name}" if value.name in program.constants else _dotted(value.name)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(write, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {write(each)}" for key, each in value.items()) + "}"
        if isinstance(value, slice):
            parts = [value.start, value.stop, *([] if value.step is None else [value.step])]
            return ":".join("" if part is None else write(part) for part in parts)
        if value is Ellipsis:
            return "..."
        return repr(value)

    return write(value)


def _dotted(name: str) -> str:
    """Return the expression for a parameter or buffer: those of a `Sequential` have numbers for names."""
    first, *parts = name.split(".")
    for part in parts:
        first = f"{first}.{part}" if part.isidentifier() else f'getattr({first}, "{part}")'
    return first


def _expression(program: Program, call: Call) -> str:
    if call.target == "Tensor.__getitem__" and len(call.args) == 2:
        index = call.args[1]
        inside = (
            ", ".join(_written(program, each) for each in index) if type(index) is tuple else _written(program, index)
        )
        return f"{_written(program, call.args[0])}[{inside or '()'}]"
    arguments = [_argument(program, each) for each in call.args]
    arguments += [f"{key}={_argument(program, each)}" for key, each in call.kwargs.items()]
    if call.target.startswith("Tensor.") and call.args and type(call.args[0]) is Ref:
        return f"{arguments[0]}.{call.target[7:]}({', '.join(arguments[1:])})"
    return f"torch.{call.target}({', '.join(arguments)})"


def _argument(program: Program, value: Any) -> str:
    if isinstance(value, slice):
        return f"slice({', '.join(_written(program, each) for each in (value.start, value.stop, value.step))})"
    if isinstance(value, (tuple, list)) and any(isinstance(each, slice) for each in value):
        inner = ", ".join(_argument(program, each) for each in value)
        return f"({inner},)" if isinstance(value, tuple) else f"[{inner}]"
    return _written(program, value)


def _targets(call: Call) -> str:
    if not call.results:
        return ""
    if len(call.results) == 1 and not call.results[0][0]:
        return f"{call.results[0][1]} = "
    if all(len(path) == 1 for path, _ in call.results):
        return ", ".join(name for _, name in call.results) + ("," if len(call.results) == 1 else "") + " = "
    return ", ".join(f"{name}{list(path)}" for path, name in call.results) + " = "


def code_of(program: Program, is_method: bool) -> str:
    """Return a program as Python code."""
    parameters = [f"{name}: {kind_of(value)}" for name, value in program.parameters]
    head = ", ".join([*(["self"] if is_method else []), *parameters])
    lines = [f"def {program.name}({head}) -> {kind_of(program.output)}:"]
    lines += [f"  {_targets(call)}{_expression(program, call)}" for call in program.calls]
    return "\n".join([*lines, f"  return {_written(program, program.output)}", ""])


class Node:
    """A call, as a node of a graph."""

    def __init__(self, program: Program, call: Call) -> None:
        self._program, self._call = program, call

    def kind(self) -> str:
        """Return the name of the op: "aten::linear"."""
        return f"aten::{self._call.target.rpartition('.')[2]}"

    def inputs(self) -> list[str]:
        """Return the names of the tensors that it reads."""
        return self._call.refs()

    def outputs(self) -> list[str]:
        """Return the names of its results."""
        return [name for _, name in self._call.results]

    def sourceRange(self) -> str:
        """Return the line of the program."""
        return self._call.site

    def __str__(self) -> str:
        program, call = self._program, self._call
        outputs = ", ".join(f"%{name} : {_type(program, name)}" for name in self.outputs())
        arguments = [_marked(program, each) for each in call.args]
        arguments += [f"{key}={_marked(program, each)}" for key, each in call.kwargs.items()]
        site = f" # {call.site}:0" if call.site else ""
        return f"{outputs + ' = ' if outputs else ''}{self.kind()}({', '.join(arguments)}){site}"

    __repr__ = __str__


def _marked(program: Program, value: Any) -> str:
    return f"%{value.name}" if type(value) is Ref else _argument(program, value)


def _type(program: Program, name: str) -> str:
    t = program.tensors.get(name)
    if t is None or t.dtype not in _SCALARS:
        return "Tensor"
    sizes = ", ".join([*map(str, t.shape), f"strides={list(t.stride())}", f"requires_grad={int(t.requires_grad)}"])
    return f"{_SCALARS[t.dtype]}({sizes}, device={t.device})"


class Graph:
    """The calls of a program as a graph."""

    def __init__(self, program: Program, owner: str | None) -> None:
        self._program, self._owner = program, owner

    def nodes(self) -> Iterator[Node]:
        """Iterate over the calls."""
        return iter([Node(self._program, call) for call in self._program.calls])

    def inputs(self) -> list[str]:
        """Return the names of the arguments."""
        return [*(["self"] if self._owner else []), *self._program.inputs()]

    def outputs(self) -> list[str]:
        """Return the names of the results."""
        return [value.name for value in leaves(self._program.output) if type(value) is Ref]

    def __str__(self) -> str:
        arguments = [f"%self : __torch__.{self._owner}"] if self._owner else []
        arguments += [f"%{name} : {_type(self._program, name)}" for name in self._program.inputs()]
        lines = [f"graph({(',' + chr(10) + ' ' * 6).join(arguments)}):"]
        for name, value in self._program.constants.items():
            lines.append(f"  %{name} : Tensor = prim::Constant[value={_short(value)}]()")
        lines += [f"  {node}" for node in self.nodes()]
        return "\n".join([*lines, f"  return ({', '.join(f'%{name}' for name in self.outputs())})", ""])

    __repr__ = __str__


def _short(t: Tensor) -> str:
    return f"{{{t.item()}}}" if t.numel() == 1 else "<Tensor>"
