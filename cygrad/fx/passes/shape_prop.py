"""`ShapeProp`: runs a graph and notes the shape and dtype of each result."""

from typing import Any, NamedTuple

import cygrad
from cygrad.fx.interpreter import Interpreter
from cygrad.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What `ShapeProp` notes of a tensor.

    >>> import cygrad
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> traced = cygrad.fx.symbolic_trace(lambda x: x.sum(0))
    >>> result = ShapeProp(traced).propagate(cygrad.ones(2, 3))
    >>> metadata = traced.graph.output_node().meta["tensor_meta"]
    >>> metadata.shape, metadata.dtype, metadata.stride
    (torch.Size([3]), torch.float32, (1,))
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    formats = (cygrad.contiguous_format, cygrad.channels_last, cygrad.channels_last_3d)
    fits = (one for one in formats if include_contiguity and result.is_contiguous(memory_format=one))
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), next(fits, None), False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes the shape, dtype and strides of each result in `node.meta["tensor_meta"]`.

    >>> import cygrad
    >>> from cygrad.fx.passes.shape_prop import ShapeProp
    >>> traced = cygrad.fx.symbolic_trace(cygrad.nn.Linear(3, 2))
    >>> _ = ShapeProp(traced).propagate(cygrad.ones(5, 3))
    >>> traced.graph.output_node().meta["tensor_meta"].shape
    torch.Size([5, 2])
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note what it is.

        >>> import cygrad
        >>> from cygrad.fx.passes.shape_prop import ShapeProp
        >>> class Shows(ShapeProp):
        ...     def run_node(self, n):
        ...         result = super().run_node(n)
        ...         print(n.name, tuple(n.meta["tensor_meta"].shape))
        ...         return result
        >>> result = Shows(cygrad.fx.symbolic_trace(lambda x: x.sum(0))).propagate(cygrad.ones(2, 3))
        x (2, 3)
        sum_1 (3,)
        output (3,)
        """
        result = super().run_node(n)
        found = False

        def describe(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, cygrad.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs, and return what it returns."""
        return super().run(*args)
