"""Programs as graphs of `torch.fx`, in the form of PyTorch's exported graphs."""

import keyword
import linecache
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import cygrad
from cygrad import Tensor, fx, nn
from cygrad.export._programs.aten_calls import PREVIOUS, steps_of
from cygrad.export._programs.functions import function_named
from cygrad.export._programs.program import Call, Program, Ref, leaves, mapped
from cygrad.export._programs.sizes import Formula

__all__ = ["graph_module_of", "described", "lifted", "plain_tensors", "user_inputs"]


def lifted(program: Program, module: nn.Module) -> Iterator[tuple[str, str, str, Tensor]]:
    """Yield (kind, name of the input, path, tensor) of what becomes an input of the graph beside the arguments.

    The kinds are "parameter", "buffer" and "constant".
    """
    taken = {name for name, _ in user_inputs(program)}

    def input_of(kind: str, path: str) -> str:
        return _unique(f"{kind}_{path.removeprefix('self_')}", taken)  # as in PyTorch

    for path, parameter in module.named_parameters(remove_duplicate=False):
        yield "parameter", input_of("p", path), path, parameter
    for path, buffer in module.named_buffers(remove_duplicate=False):
        yield "buffer", input_of("b", path), path, buffer
    unnamed = (f"lifted_tensor_{i}" for i in count())
    for name, t in program.constants.items():
        path = program.paths.get(name) or next(unnamed)
        yield "constant", input_of("c", path), path, t


def plain_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that are plain attributes of modules, by their paths."""
    return {
        f"{prefix}.{name}".lstrip("."): value
        for prefix, each in module.named_modules()
        for name, value in vars(each).items()
        if isinstance(value, Tensor)
    }


def user_inputs(program: Program) -> list[tuple[str, Any]]:
    """Return (name of the graph's input, value) for each value among the arguments.

    The name has the path of a value in lists and dictionaries.
    """
    taken: set[str] = set()
    return [(_unique(name, taken), value) for name, value in _with_paths(program.parameters)]


def _unique(name: str, taken: set[str]) -> str:
    """Return an identifier like `name`, in PyTorch's spelling, that is not taken, and take it."""
    base = re.sub(r"[^a-z0-9]", "_", name.lower())
    base = base if base.isidentifier() else f"_{base}"
    found, number = base, 0
    while found in taken or keyword.iskeyword(found) or found == "self":
        number += 1
        found = f"{base}_{number}"
    taken.add(found)
    return found


def _with_paths(parameters: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the values among arguments, each with the name of the argument and its path in it."""
    for name, value in parameters:
        if isinstance(value, dict):
            yield from _with_paths((f"{name}_{key}", each) for key, each in value.items())
        elif isinstance(value, (list, tuple)) and type(value) is not Ref:
            places = getattr(value, "_fields", range(len(value)))
            yield from _with_paths((f"{name}_{place}", each) for place, each in zip(places, value))
        else:
            yield name, value


def graph_module_of(program: Program, module: nn.Module, values: Mapping[str, Tensor] | None = None) -> fx.GraphModule:
    """Return a `GraphModule` that does what a program does.

    Its arguments are the parameters, buffers and constants, and then the values among the arguments of the program. It
    returns the results as a flat tuple. `values` are the tensors of the program by name: `node.meta["val"]` tells their
    shapes and dtypes.
    """
    graph = fx.Graph()
    known = dict(values or {})
    nodes: dict[str, fx.Node] = {}
    constants = iter(program.constants)
    inputs = {}  # by tensor: the last one of a parameter with several names, as in PyTorch
    for kind, shown, path, t in lifted(program, module):
        own = next(constants) if kind == "constant" else f"self.{path}"
        inputs[id(t)], known[own] = _input(graph, shown), t
        inputs[id(t)].meta["is_lifted"] = True
        _show(inputs[id(t)], t)
    nodes.update({name: inputs[id(t)] for name, t in known.items() if id(t) in inputs})
    for shown, value in user_inputs(program):
        node = _input(graph, shown)
        if type(value) is Ref:
            nodes[value.name] = node

    for name, node in nodes.items():
        _show(node, known.get(name))

    def argument(value: Any) -> Any:
        if type(value) is Ref:
            return nodes[value.name]
        return _number(graph, nodes, value) if isinstance(value, Formula) else value

    for call in program.calls:
        result = _called(graph, call, mapped(argument, call.args), mapped(argument, call.kwargs))
        for place, name in call.results:
            found = result
            for key in place:
                found = graph.call_function(operator.getitem, (found, key))
            nodes[name] = found
            _show(found, known.get(name))
    graph.output(tuple(mapped(argument, value) for value in leaves([program.output])))
    return fx.GraphModule(nn.Module(), graph)


def _input(graph: fx.Graph, name: str) -> fx.Node:
    node = graph.placeholder(name)
    node.name = name  # also if it is that of a builtin, such as `input`
    return node


def _called(graph: fx.Graph, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add what a call does to a graph; return the node of its result."""
    node: Any = None
    for step in steps_of(call.target, function_named(call.target), args, kwargs):
        given = tuple(node if value is PREVIOUS else value for value in step.args)
        name = getattr(getattr(step.op, "overloadpacket", None), "__name__", None)
        node = graph.create_node("call_function", step.op, given, step.kwargs, name=name)
        node.meta["stack_trace"] = _trace(call.site)
    return node


def _trace(site: str) -> str | None:
    """Return where a call is written, as `traceback` shows it."""
    file, _, line = site.rpartition(":")
    if not line.isdigit():
        return None
    return f'  File "{file}", line {line}, in forward\n    {linecache.getline(file, int(line)).strip()}'


def _show(node: fx.Node, t: Tensor | None) -> None:
    """Note shape and dtype of a node's tensor, if they are known, as PyTorch's graphs do."""
    if t is not None:
        node.meta["val"] = described(t)


def described(t: Tensor) -> Tensor:
    """Return a tensor like `t` without memory."""
    return cygrad.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")


def _number(graph: fx.Graph, nodes: dict[str, fx.Node], formula: Formula) -> Any:
    total: Any = None
    for coefficient, sizes in formula.terms:
        product: Any = coefficient
        for name, dim in sizes:
            size = graph.create_node(
                "call_function", cygrad.ops.aten.sym_size.int, (nodes[name], dim), name="sym_size_int"
            )
            product = size if product == 1 else graph.call_function(operator.mul, (product, size))
        total = product if total is None else graph.call_function(operator.add, (total, product))
    if formula.is_int():
        return total
    if formula.power != 1:
        total = graph.call_function(operator.pow, (total, formula.power))
    return graph.call_function(operator.mul, (formula.factor, total))
