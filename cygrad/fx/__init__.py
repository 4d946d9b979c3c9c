"""Graphs of functions and modules: tracing them, changing them, and generating code from them.

`symbolic_trace` records what a module does with its inputs as a `Graph` of `Node`s. A pass changes the graph, and the
`GraphModule` runs it as Python code.

>>> import cygrad
>>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Flatten(), cygrad.nn.ReLU()))
>>> print(traced.graph)
graph():
    %input_1 : [num_users=1] = placeholder[target=input]
    %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
    %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})
    return _1
"""

from importlib import import_module
from typing import Any

from cygrad.fx import immutable_collections as immutable_collections
from cygrad.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from cygrad.fx.graph import CodeGen, Graph
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.interpreter import Interpreter, Transformer
from cygrad.fx.node import Node, has_side_effect, map_arg
from cygrad.fx.proxy import Attribute, ParameterProxy, Proxy
from cygrad.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "Attribute",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "ParameterProxy",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

# Imported at their first use. PyTorch imports them with the package.
_MODULES = ("experimental", "tensor_type")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return import_module(f"{__name__}.{name}")
