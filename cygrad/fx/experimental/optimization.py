"""Changes of traced modules that make inference quicker."""

import copy
from collections.abc import Iterable
from typing import Any

from cygrad import nn
from cygrad.fx._symbolic_trace import symbolic_trace
from cygrad.fx.graph import Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]

_FUSIONS = (
    *(
        (conv, norm, fuse_conv_bn_eval)
        for conv, norm in ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))
    ),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Return a traced copy of a module in which batch norms behind convolutions are part of those.

    The module must be in evaluation mode. `inplace` changes the module itself; `no_trace` takes a GraphModule as it is.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import fuse
    >>> model = cygrad.nn.Sequential(cygrad.nn.Conv1d(1, 2, 3), cygrad.nn.BatchNorm1d(2)).eval()
    >>> [type(one).__name__ for one in fuse(model).children()]
    ['Conv1d']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    for node in traced.graph.find_nodes(op="call_module"):
        before = node.args[0] if node.args else None
        if not isinstance(before, Node) or before.op != "call_module" or len(before.users) > 1:
            continue
        first, second = (traced.get_submodule(str(one.target)) for one in (before, node))
        fused: Any
        for kind, norm, fused in _FUSIONS:
            if type(first) is kind and type(second) is norm and second.track_running_stats:
                traced.add_submodule(str(before.target), fused(first, second))
                node.replace_all_uses_with(before)
                traced.graph.erase_node(node)
                break
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def remove_dropout(model: nn.Module) -> nn.Module:
    """Return a traced form of a module without its dropout layers.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import remove_dropout
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.Dropout(), cygrad.nn.ReLU())
    >>> [node.target for node in remove_dropout(model).graph.nodes if node.op == "call_module"]
    ['0', '2']
    """
    traced = symbolic_trace(model)
    for node in traced.graph.find_nodes(op="call_module"):
        if isinstance(traced.get_submodule(str(node.target)), nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _parent_name(target: str) -> tuple[str, str]:
    """Return the parts of a dotted name before and behind its last dot."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the second of two classes, on the result of a module of the first.

    `modules` are those of the graph's module, by their names.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import matches_module_pattern
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.ReLU()))
    >>> modules = dict(traced.named_modules())
    >>> pattern = (cygrad.nn.Linear, cygrad.nn.ReLU)
    >>> [node.name for node in traced.graph.nodes if matches_module_pattern(pattern, node, modules)]
    ['_1']
    """
    if not node.args:
        return False
    return all(
        isinstance(one, Node) and one.op == "call_module" and type(modules.get(str(one.target))) is kind
        for kind, one in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Put another module into the place of the one that a node calls, and into `modules`.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import replace_node_module
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.ReLU()))
    >>> node = traced.graph.find_nodes(op="call_module")[0]
    >>> replace_node_module(node, dict(traced.named_modules()), cygrad.nn.Tanh())
    >>> traced(cygrad.zeros(1)), type(traced.get_submodule("0")).__name__
    (tensor([0.]), 'Tanh')
    """
    parent, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Return a module that computes some nodes of a graph: from the values of `inputs` a list of those of `outputs`.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import extract_subgraph
    >>> traced = cygrad.fx.symbolic_trace(lambda x: (x + 1).relu() * 2)
    >>> x, add, relu, mul, out = traced.graph.nodes
    >>> extract_subgraph(traced, [relu, mul], [add], [mul])(cygrad.ones(1))
    [tensor([2.])]
    """
    graph, copies = Graph(), {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(
    model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: Any = None
) -> nn.Module:
    """Return a traced copy of a module with batch norms fused and dropout layers removed.

    `pass_config` may switch "conv_bn_fuse" and "remove_dropout" off. Its entry "mkldnn_layout_optimize" has no effect:
    tensors have no layout of MKL-DNN here. Nor has `tracer`, which traces for that.

    >>> import cygrad
    >>> from cygrad.fx.experimental.optimization import optimize_for_inference
    >>> model = cygrad.nn.Sequential(cygrad.nn.Linear(2, 2), cygrad.nn.BatchNorm1d(2), cygrad.nn.Dropout()).eval()
    >>> [type(one).__name__ for one in optimize_for_inference(model).children()]
    ['Linear']
    """
    config = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": {"heuristic": None}}
    config.update(pass_config or {})
    layout = config["mkldnn_layout_optimize"]
    if layout is not False and not isinstance(layout, dict):
        raise RuntimeError("mkldnn_layout_optimize config is not a dict")
    if isinstance(layout, dict) and "heuristic" not in layout:
        raise RuntimeError("Heuristic not found in mkldnn_layout_optimize config")
    model = fuse(model) if config["conv_bn_fuse"] else copy.deepcopy(model)
    return remove_dropout(model) if config["remove_dropout"] else model
