"""Programs as graphs of `torch.fx`, in the form of PyTorch's exported graphs."""

import linecache
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import cygrad
from cygrad import Tensor, fx, nn
from cygrad.export._programs.aten_calls import PREVIOUS, steps_of
from cygrad.export._programs.functions import function_named
from cygrad.export._programs.program import Call, Program, Ref, leaves, mapped
from cygrad.export._programs.sizes import Formula

__all__ = ["graph_module_of", "described", "input_names", "lifted", "plain_tensors"]


def lifted(program: Program, module: nn.Module) -> Iterator[tuple[str, str, str, Tensor]]:
    """Yield (kind, name of the input, path, tensor) of what becomes an input of the graph beside the arguments.

    The kinds are "parameter", "buffer" and "constant".
    """
    for path, parameter in module.named_parameters(remove_duplicate=False):
        yield "parameter", f"p_{path.replace('.', '_')}", path, parameter
    for path, buffer in module.named_buffers(remove_duplicate=False):
        yield "buffer", f"b_{path.replace('.', '_')}", path, buffer
    attributes = {path.replace(".", "_"): path for path in plain_tensors(module)}
    unnamed = 0
    for name, t in program.constants.items():
        if name not in attributes:
            attributes[name] = f"lifted_tensor_{unnamed}"
            unnamed += 1
        path = attributes[name]
        yield "constant", f"c_{path.replace('.', '_')}", path, t


def plain_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that are plain attributes of modules, by their paths."""
    return {
        f"{prefix}.{name}".lstrip("."): value
        for prefix, each in module.named_modules()
        for name, value in vars(each).items()
        if isinstance(value, Tensor)
    }


def input_names(program: Program) -> dict[str, str]:
    """Return {name of an argument's tensor in the program: name of the graph's input}.

    The latter has the path of a tensor in lists and dictionaries.
    """
    return {value.name: name for name, value in _with_paths(program.parameters) if type(value) is Ref}


def _with_paths(parameters: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the values among arguments, each with the name of the argument and its path in it."""
    for name, value in parameters:
        if isinstance(value, dict):
            yield from _with_paths((f"{name}_{key}", each) for key, each in value.items())
        elif isinstance(value, (list, tuple)) and type(value) is not Ref:
            yield from _with_paths((f"{name}_{place}", each) for place, each in enumerate(value))
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
        _show(inputs[id(t)], t)
    nodes.update({name: inputs[id(t)] for name, t in known.items() if id(t) in inputs})
    for shown, value in _with_paths(program.parameters):
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
