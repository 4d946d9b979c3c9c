"""Which nodes a backend can run, as rules that can be combined."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cygrad
from cygrad.fx.node import Node
from cygrad.fx.passes.shape_prop import TensorMetadata
from cygrad.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportedArgumentDTypes = tuple[Sequence[Sequence[cygrad.dtype]], dict[str, Sequence[cygrad.dtype]]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Any], Node], bool]


class OperatorSupportBase(abc.ABC):
    """A rule: `is_node_supported(submodules, node)`, with the submodules of the graph's module by their names.

    >>> from cygrad.fx.passes.operator_support import OperatorSupportBase
    >>> class Functions(OperatorSupportBase):
    ...     def is_node_supported(self, submodules, node):
    ...         return node.op == "call_function"
    """

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether the backend can run a node."""


class OperatorSupport(OperatorSupportBase):
    """The rule of a table: from the name of what a node calls to the dtypes that it takes.

    The dtypes are None for any, or a pair: a sequence for the positional arguments, a dictionary for those by keyword.
    Each of them has a list of dtypes, or None for any. `ShapeProp` must have noted the dtypes of the nodes.

    >>> import cygrad
    >>> from cygrad.fx.passes.operator_support import OperatorSupport
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x) + 1)
    >>> rule = OperatorSupport({"torch.relu": None})
    >>> [node.name for node in traced.graph.nodes if rule.is_node_supported({}, node)]
    ['x', 'relu', 'output']
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether the backend can run a node. Inputs, attributes and outputs are always supported."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        positional = zip(node.args, dtypes[0], strict=False)
        by_name = ((node.kwargs[name], taken) for name, taken in dtypes[1].items() if name in node.kwargs)
        return all(
            taken is None or not isinstance(value, Node) or _get_arg_dtype(value) in taken
            for value, taken in (*positional, *by_name)
        )


class _Function(OperatorSupportBase):
    def __init__(self, function: IsNodeSupported) -> None:
        self.function = function

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return self.function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Return the rule that a function `f(submodules, node)` tells.

    >>> import cygrad
    >>> from cygrad.fx.passes.operator_support import create_op_support
    >>> rule = create_op_support(lambda submodules, node: node.op == "call_method")
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.relu() + 1)
    >>> [node.name for node in traced.graph.nodes if rule.is_node_supported({}, node)]
    ['relu']
    """
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the rule that all of these rules hold.

    >>> import cygrad
    >>> from cygrad.fx.passes.operator_support import OpSupports, OperatorSupport, chain
    >>> rule = chain(OperatorSupport({"torch.relu": None}), OpSupports.decline_if_node_in_names({"relu_1"}))
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(cygrad.relu(x)))
    >>> [rule.is_node_supported({}, node) for node in traced.graph.find_nodes(op="call_function")]
    [True, False]
    """
    return create_op_support(
        lambda submodules, node: all(one.is_node_supported(submodules, node) for one in op_support)
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the rule that any of these rules holds.

    >>> import cygrad
    >>> from cygrad.fx.passes.operator_support import OperatorSupport, any_chain
    >>> rule = any_chain(OperatorSupport({"torch.relu": None}), OperatorSupport({"torch.tanh": None}))
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.tanh(cygrad.relu(x)))
    >>> [rule.is_node_supported({}, node) for node in traced.graph.find_nodes(op="call_function")]
    [True, True]
    """
    return create_op_support(
        lambda submodules, node: any(one.is_node_supported(submodules, node) for one in op_support)
    )


class OpSupports:
    """Further rules, for `chain` and `any_chain`.

    >>> import cygrad
    >>> from cygrad.fx.passes.operator_support import OpSupports
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> traced = cygrad.fx.symbolic_trace(lambda x: cygrad.relu(x).long() + 1)
    >>> result = ShapeProp(traced).propagate(cygrad.ones(2))
    >>> rule = OpSupports.decline_if_input_dtype(cygrad.int64)
    >>> [node.name for node in traced.graph.nodes if not rule.is_node_supported({}, node)]
    ['add', 'output']
    >>> rule = OpSupports.decline_if_node_in_names({"relu"})
    >>> [node.name for node in traced.graph.nodes if not rule.is_node_supported({}, node)]
    ['relu']
    """

    @classmethod
    def decline_if_input_dtype(cls, dtype: cygrad.dtype) -> OperatorSupportBase:
        """Return the rule that no input of a node has this dtype, as `ShapeProp` has noted it."""
        return create_op_support(lambda _, node: all(_get_arg_dtype(one) is not dtype for one in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return the rule that the name of a node is none of these."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    """Return the dtype of a node's value, or its type if that is no tensor."""
    described = arg.meta.get("tensor_meta")
    return described.dtype if isinstance(described, TensorMetadata) else arg.meta["type"]
