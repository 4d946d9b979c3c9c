"""Programs as graphs of `torch.fx`."""

import operator
from typing import Any

import cygrad
from cygrad import Tensor, fx, nn
from cygrad.export._programs.functions import function_named
from cygrad.export._programs.program import Program, Ref, mapped
from cygrad.export._programs.sizes import Formula

__all__ = ["graph_module_of"]


def graph_module_of(program: Program, module: nn.Module) -> fx.GraphModule:
    """Return a `GraphModule` that does what a program does, with the parameters and buffers of `module`.

    Its arguments are the tensors among those of the program, in their order.
    """
    graph = fx.Graph()
    nodes: dict[str, fx.Node] = {name: graph.placeholder(name) for name in program.inputs()}
    root = nn.Module()
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        _put(root, name, t)
    for name, t in program.constants.items():
        root.register_buffer(f"_{name}", t, persistent=False)

    def node_of(name: str) -> fx.Node:
        if name not in nodes:
            nodes[name] = graph.get_attr(f"_{name}" if name in program.constants else name.removeprefix("self."))
        return nodes[name]

    def argument(value: Any) -> Any:
        if type(value) is Ref:
            return node_of(value.name)
        return _number(graph, node_of, value) if isinstance(value, Formula) else value

    for call in program.calls:
        function = function_named(call.target)
        node = graph.call_function(function, mapped(argument, call.args), mapped(argument, call.kwargs))
        for path, name in call.results:
            found = node
            for key in path:
                found = graph.call_function(operator.getitem, (found, key))
            nodes[name] = found
    graph.output(mapped(argument, program.output))
    return fx.GraphModule(root, graph, type(module).__name__)


def _put(root: nn.Module, path: str, t: Tensor) -> None:
    *parts, last = path.split(".")
    for part in parts:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]
    if isinstance(t, nn.Parameter):
        root.register_parameter(last, t)
    else:
        root.register_buffer(last, t)


def _number(graph: fx.Graph, node_of: Any, formula: Formula) -> Any:
    total: Any = None
    for coefficient, sizes in formula.terms:
        product: Any = coefficient
        for name, dim in sizes:
            size = graph.call_function(cygrad.Tensor.size, (node_of(name), dim))
            product = size if product == 1 else graph.call_function(operator.mul, (product, size))
        total = product if total is None else graph.call_function(operator.add, (total, product))
    if formula.is_int():
        return total
    if formula.power != 1:
        total = graph.call_function(operator.pow, (total, formula.power))
    return graph.call_function(operator.mul, (formula.factor, total))
