"""ONNX forms of normalizations."""

from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.products import norm_along
from cygrad.export._onnx_forms.table import Unsupported, form


def _standardized(g: Graph, x: Value, axes: list[int], eps: float) -> Value:
    gap = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims=1))
    variance = g.op("ReduceMean", g.op("Mul", gap, gap), axes, keepdims=1)
    return g.op("Div", gap, g.op("Sqrt", g.op("Add", variance, g.constant(eps, x.dtype))))


def _per_channel(g: Graph, x: Value, rank: int, weight: Any, bias: Any) -> Value:
    """Multiply and add one number for each channel, along dimension 1."""
    shape = [1, -1, *[1] * (rank - 2)]
    x = x if weight is None else g.op("Mul", x, g.reshape(weight, shape))
    return x if bias is None else g.op("Add", x, g.reshape(bias, shape))


def _by_statistics(g: Graph, x: Value, mean: Value, var: Value, weight: Any, bias: Any, eps: float) -> Value:
    channels = mean.length(0)
    scale = g.constant(np.ones(channels), x.dtype) if weight is None else weight
    shift = g.constant(np.zeros(channels), x.dtype) if bias is None else bias
    return g.op("BatchNormalization", x, scale, shift, mean, var, epsilon=float(eps))


@form("batch_norm")
def batch_norm(
    g: Graph,
    input: Value,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: float = 1e-5,
    *args: Any,
) -> Value:
    if training:
        if running_mean is not None:
            raise Unsupported("running statistics in training mode; call model.eval()")
        axes = [d for d in range(input.rank) if d != 1]
        return _per_channel(g, _standardized(g, input, axes, eps), input.rank, weight, bias)
    return _by_statistics(g, input, running_mean, running_var, weight, bias, eps)


@form("instance_norm")
def instance_norm(
    g: Graph,
    input: Value,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: float = 1e-5,
    *args: Any,
) -> Value:
    if not use_input_stats:
        return _by_statistics(g, input, running_mean, running_var, weight, bias, eps)
    if running_mean is not None:
        raise Unsupported("running statistics in training mode; call model.eval()")
    found = _standardized(g, input, list(range(2, input.rank)), eps)
    return _per_channel(g, found, input.rank, weight, bias)


@form("group_norm")
def group_norm(
    g: Graph, input: Value, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *args: Any
) -> Value:
    groups = g.op("Reshape", input, [0, num_groups, -1])
    found = g.op("Reshape", _standardized(g, groups, [2], eps), g.sizes(input))
    return _per_channel(g, found, input.rank, weight, bias)


@form("layer_norm")
def layer_norm(
    g: Graph, input: Value, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *args: Any
) -> Value:
    scale = g.constant(np.ones(tuple(normalized_shape)), input.dtype) if weight is None else weight
    return g.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=float(eps))


@form("rms_norm")
def rms_norm(g: Graph, input: Value, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Value:
    axes = list(range(-len(normalized_shape), 0))
    eps = cygrad.finfo(input.dtype).eps if eps is None else eps
    mean = g.op("ReduceMean", g.op("Mul", input, input), axes, keepdims=1)
    found = g.op("Div", input, g.op("Sqrt", g.op("Add", mean, g.constant(eps, input.dtype))))
    return found if weight is None else g.op("Mul", found, weight)


@form("local_response_norm")
def local_response_norm(
    g: Graph, input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    planes = g.op("Unsqueeze", g.op("Reshape", g.op("Mul", input, input), [0, input.length(1), -1]), [1])
    pads = [size // 2, 0, (size - 1) // 2, 0]
    mean = g.op("AveragePool", planes, kernel_shape=[size, 1], pads=pads, strides=[1, 1], count_include_pad=1)
    scale = g.op("Add", g.op("Mul", mean, g.constant(alpha, input.dtype)), g.constant(k, input.dtype))
    divisor = g.op("Pow", g.op("Squeeze", scale, [1]), g.constant(beta, input.dtype))
    return g.op("Div", input, g.op("Reshape", divisor, g.sizes(input)))


@form("normalize")
def normalize(g: Graph, input: Value, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Value:
    length = norm_along(g, input, float(p), input.axes(dim), True)
    return g.op("Div", input, g.op("Max", length, g.constant(eps, input.dtype)))
