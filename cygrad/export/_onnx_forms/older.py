"""Nodes in terms of older versions of ONNX's ops.

Forms are written for opset 18. Between 11 and 18 arguments became inputs that had been attributes, and some ops were
added that older ones can express.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported

__all__ = ["OLDEST", "in_version"]

OLDEST = 11


def in_version(g: Graph, opset: int) -> list[Any]:
    """Return the nodes of a graph in terms of a version of ONNX. Raises Unsupported if it lacks one of them."""
    found: list[Any] = []
    for node in g.nodes:
        found += _older(g, node, opset)
    for node in found:
        _check(g, node, opset)
    return found


def _check(g: Graph, node: Any, opset: int) -> None:
    try:
        schema = g.onnx.defs.get_schema(node.op_type, opset, "")
    except g.onnx.defs.SchemaError:
        schema = None
    unknown = [each.name for each in node.attribute if schema is not None and each.name not in schema.attributes]
    if schema is None or unknown or len(node.input) > schema.max_input:
        what = f"the attribute {unknown[0]!r} of {node.op_type}" if unknown else node.op_type
        raise Unsupported(f"opset version {opset} has not got {what}; choose a newer one")


def _older(g: Graph, node: Any, opset: int) -> list[Any]:
    for kinds, since, write in _CHANGES:
        if opset < since and node.op_type in kinds:
            return write(g, node, opset)
    return [node]


def _replaced(g: Graph, node: Any, write: Callable[..., Value]) -> list[Any]:
    """Return the nodes that `write` makes of the inputs; the last one has the result's name."""
    kept, g.nodes = g.nodes, []
    try:
        write(*[Value(name, cygrad.float32) if name else None for name in node.input])
        made = g.nodes
    finally:
        g.nodes = kept
    made[-1].output[0] = node.output[0]
    return [each for part in made for each in _older(g, part, g.opset)]


def _attribute(node: Any, name: str, default: Any = None) -> Any:
    return next((each for each in node.attribute if each.name == name), default)


def _input_as_attribute(name: str) -> Callable[..., list[Any]]:
    def write(g: Graph, node: Any, opset: int) -> list[Any]:
        if len(node.input) < 2 or node.input[1] not in g.constants:
            if len(node.input) < 2:
                return [node]
            raise Unsupported(f"opset version {opset} takes no computed `{name}` in {node.op_type}; choose a newer one")
        numbers = [int(each) for each in g.constants[node.input[1]]]
        node.attribute.append(g.onnx.helper.make_attribute(name, numbers))
        del node.input[1]
        return [node]

    return write


def _part_of_shape(g: Graph, node: Any, opset: int) -> list[Any]:
    start, end = (_attribute(node, name) for name in ("start", "end"))
    if start is None and end is None:
        return [node]

    def write(x: Value) -> Value:
        stop = 2**63 - 1 if end is None else end.i
        return g.op("Slice", g.op("Shape", x, dtype=cygrad.int64), [start.i if start else 0], [stop], [0], [1])

    return _replaced(g, node, write)


def _layer_norm(g: Graph, node: Any, opset: int) -> list[Any]:
    axes, eps = list(range(_attribute(node, "axis").i, 0)), _attribute(node, "epsilon").f

    def write(x: Value, scale: Value, shift: Any = None) -> Value:
        gap = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims=1))
        variance = g.op("ReduceMean", g.op("Mul", gap, gap), axes, keepdims=1)
        found = g.op("Div", gap, g.op("Sqrt", g.op("Add", variance, g.constant(np.float32(eps), cygrad.float32))))
        found = g.op("Mul", found, scale)
        return found if shift is None else g.op("Add", found, shift)

    return _replaced(g, node, write)


def _mish(g: Graph, node: Any, opset: int) -> list[Any]:
    return _replaced(g, node, lambda x: g.op("Mul", x, g.op("Tanh", g.op("Softplus", x))))


def _hard_swish(g: Graph, node: Any, opset: int) -> list[Any]:
    return _replaced(g, node, lambda x: g.op("Mul", x, g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)))


_REDUCTIONS = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp")
_CHANGES: list[tuple[tuple[str, ...], int, Callable[..., list[Any]]]] = [
    (_REDUCTIONS, 18, _input_as_attribute("axes")),
    (("ReduceSum", "Squeeze", "Unsqueeze"), 13, _input_as_attribute("axes")),
    (("Split",), 13, _input_as_attribute("split")),
    (("Shape",), 15, _part_of_shape),
    (("LayerNormalization",), 17, _layer_norm),
    (("Mish",), 18, _mish),
    (("HardSwish",), 14, _hard_swish),
]
