"""`FakeTensorProp`: runs a graph on tensors without memory, and notes each result."""

import copy
import itertools
from typing import Any

import cygrad
from cygrad import nn
from cygrad.fx.interpreter import Interpreter
from cygrad.fx.node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on tensors of the device "meta", and notes each result in `node.meta["val"]`.

    Nothing is computed but shapes and dtypes. The module and the inputs stay as they are. `mode` is a block to run in.
    In the default one, new tensors have no memory.

    >>> import cygrad
    >>> from cygrad.fx.passes.fake_tensor_prop import FakeTensorProp
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Sequential(cygrad.nn.Linear(3, 2)))
    >>> FakeTensorProp(traced).propagate(cygrad.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> [tuple(node.meta["val"].shape) for node in traced.graph.nodes]
    [(5, 3), (5, 2), (5, 2)]
    >>> FakeTensorProp(traced).propagate_dont_convert_inputs(cygrad.empty(4, 3, device="meta")).shape
    torch.Size([4, 2])
    >>> FakeTensorProp(traced).fetch_attr("0.weight").is_meta
    True
    >>> class Shows(FakeTensorProp):
    ...     def run_node(self, n):
    ...         result = super().run_node(n)
    ...         print(n.name, tuple(result.shape))
    ...         return result
    >>> _ = Shows(traced).propagate(cygrad.ones(5, 3))
    input_1 (5, 3)
    _0 (5, 2)
    output (5, 2)
    """

    def __init__(self, module: Any, mode: Any = None) -> None:
        super().__init__(module)
        self._mode: Any = cygrad.device("meta") if mode is None else mode
        self._without_memory: dict[int, Any] = {}  # by identity, as `deepcopy` knows what it has copied
        for tensor in itertools.chain(module.parameters(), module.buffers()):
            self._without_memory[id(tensor)] = _without_memory(tensor)

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module without its memory."""
        found = super().fetch_attr(target)
        return copy.deepcopy(found, self._without_memory) if isinstance(found, nn.Module) else _without_memory(found)

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note it."""
        result = super().run_node(n)
        n.meta["val"] = map_aggregate(result, lambda value: value)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with inputs like these, and return what it returns."""
        return self.propagate_dont_convert_inputs(*map_aggregate(args, _without_memory))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph with these inputs, which have no memory, and return what it returns."""
        with self._mode:
            return super().run(*args)


def _without_memory(value: Any) -> Any:
    if not isinstance(value, cygrad.Tensor):
        return value
    found = value.detach().to("meta")
    if isinstance(value, nn.Parameter):
        return nn.Parameter(found, requires_grad=value.requires_grad)
    return found.requires_grad_(value.requires_grad)
