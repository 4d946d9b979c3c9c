"""Changes of traced modules that make inference quicker."""

import copy
from typing import Any

from cygrad import nn
from cygrad.fx._symbolic_trace import symbolic_trace
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.node import Node
from cygrad.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "remove_dropout"]

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
