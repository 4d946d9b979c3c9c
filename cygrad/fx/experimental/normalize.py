"""Transformers that write calls in one form."""

import operator
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad.fx.graph_module import GraphModule
from cygrad.fx.interpreter import Transformer
from cygrad.fx.node import Argument, Node, Target
from cygrad.fx.operator_schemas import normalize_function, normalize_module
from cygrad.fx.proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Gives all calls of functions and submodules their arguments by keyword, with the defaults.

    With `normalize_to_only_use_kwargs=False`, positional arguments stay, and defaults are filled in. Calls of functions
    that do not tell their signature stay as they are. `node_map` maps the new proxies to the old nodes.

    >>> import cygrad
    >>> from cygrad.fx.experimental.normalize import NormalizeArgs
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.nn.functional.relu(x))
    >>> normalized = NormalizeArgs(traced).transform()
    >>> normalized.graph.find_nodes(op="call_function")[0].kwargs
    {'input': x, 'inplace': False}
    >>> class Shows(NormalizeArgs):
    ...     def run_node(self, n):
    ...         print(n.op)
    ...         return super().run_node(n)
    ...     def call_module(self, target, args, kwargs):
    ...         return super().call_module(target, args, kwargs)
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(target, args, kwargs)
    >>> _ = Shows(traced).transform()
    placeholder
    call_function
    output
    """

    def __init__(self, module: GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """Add a node that does the same to the new graph, with the notes and the type of the old one."""
        found = super().run_node(n)
        if isinstance(found, Proxy):
            self.node_map[found] = n
            found.node.meta, found.node.type = n.meta, n.type
        return found

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add the call of a function."""
        function: Any = target
        normal = normalize_function(
            function, args, kwargs, normalize_to_only_use_kwargs=self.normalize_to_only_use_kwargs
        )
        return super().call_function(target, *(normal or (args, kwargs)))

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add the call of a submodule."""
        by_keyword = self.normalize_to_only_use_kwargs
        normal = normalize_module(self.module, str(target), args, kwargs, normalize_to_only_use_kwargs=by_keyword)
        return super().call_module(target, *(normal or (args, kwargs)))


class NormalizeOperators(Transformer):
    """Writes calls of `torch.add` and the like with two positional arguments as operators: `x + y`.

    >>> import cygrad
    >>> from cygrad.fx.experimental.normalize import NormalizeOperators
    >>> traced = cygrad.fx.symbolic_trace(lambda x, y: cygrad.add(x, y))
    >>> NormalizeOperators(traced).transform().graph.find_nodes(op="call_function")[0].target
    <built-in function add>
    >>> class Shows(NormalizeOperators):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__)
    ...         return super().call_function(target, args, kwargs)
    >>> _ = Shows(traced).transform()
    add
    """

    binary_magic_method_remap: dict[Callable[..., Any], Callable[..., Any]] = {
        cygrad.add: operator.add,
        cygrad.mul: operator.mul,
        cygrad.sub: operator.sub,
        cygrad.div: operator.truediv,
        cygrad.floor_divide: operator.floordiv,
        cygrad.remainder: operator.mod,
        cygrad.eq: operator.eq,
        cygrad.ne: operator.ne,
        cygrad.lt: operator.lt,
        cygrad.le: operator.le,
        cygrad.gt: operator.gt,
        cygrad.ge: operator.ge,
    }

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Add the call of a function, or the operator for it."""
        found = self.binary_magic_method_remap.get(target) if len(args) == 2 and not kwargs else None  # type: ignore[arg-type]
        return super().call_function(found or target, args, kwargs)
