"""ONNX forms of activation functions and dropout."""

import math
from typing import Any

import cygrad
from cygrad.export._onnx_forms.elementwise import expm1, log1p
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


def _number(g: Graph, value: Any, like: Value) -> Value:
    return g.value(value, like.dtype)


@form("relu")
def relu(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("Relu", input) if input.is_float else g.op("Max", input, g.constant(0, input.dtype))


@form("relu6")
def relu6(g: Graph, input: Value, inplace: bool = False) -> Value:
    return hardtanh(g, input, 0.0, 6.0)


@form("hardtanh")
def hardtanh(g: Graph, input: Value, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Value:
    return g.op("Clip", input, _number(g, min_val, input), _number(g, max_val, input))


@form("leaky_relu")
def leaky_relu(g: Graph, input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@form("prelu")
def prelu(g: Graph, input: Value, weight: Value) -> Value:
    if input.rank > 1 and weight.rank and weight.shape != (1,):
        weight = g.reshape(weight, [-1] + [1] * (input.rank - 2))
    return g.op("PRelu", input, weight)


@form("rrelu")
def rrelu(
    g: Graph, input: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Value:
    if training:
        raise Unsupported("rrelu in training mode")
    return leaky_relu(g, input, (lower + upper) / 2)


@form("elu")
def elu(g: Graph, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    return g.op("Elu", input, alpha=float(alpha))


@form("selu")
def selu(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("Selu", input, alpha=1.6732632423543772848170429916717, gamma=1.0507009873554804934193349852946)


@form("celu")
def celu(g: Graph, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    zero, a = g.constant(0, input.dtype), g.constant(alpha, input.dtype)
    below = g.op("Mul", a, expm1(g, g.op("Div", input, a)))
    return g.op("Add", g.op("Max", input, zero), g.op("Min", below, zero))


@form("gelu")
def gelu(g: Graph, input: Value, *, approximate: str = "none") -> Value:
    if g.opset >= 20:
        return g.op("Gelu", input, approximate=approximate)
    half, one = g.constant(0.5, input.dtype), g.constant(1, input.dtype)
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", input, input), input)
        inner = g.op("Add", input, g.op("Mul", g.constant(0.044715, input.dtype), cube))
        factor = g.op("Tanh", g.op("Mul", inner, g.constant(math.sqrt(2 / math.pi), input.dtype)))
    else:
        factor = g.op("Erf", g.op("Mul", input, g.constant(math.sqrt(0.5), input.dtype)))
    return g.op("Mul", g.op("Mul", input, half), g.op("Add", factor, one))


@form("silu")
def silu(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("Mul", input, g.op("Sigmoid", input))


@form("mish")
def mish(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("Mish", input)


@form("hardswish")
def hardswish(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("HardSwish", input)


@form("hardsigmoid")
def hardsigmoid(g: Graph, input: Value, inplace: bool = False) -> Value:
    return g.op("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@form("softplus")
def softplus(g: Graph, input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    scaled = g.op("Mul", input, _number(g, beta, input))
    smooth = g.op("Div", g.op("Softplus", scaled), _number(g, beta, input))
    return g.where(g.op("Greater", scaled, _number(g, threshold, input), dtype=cygrad.bool), input, smooth)


@form("softsign")
def softsign(g: Graph, input: Value) -> Value:
    return g.op("Softsign", input)


@form("softshrink")
def softshrink(g: Graph, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, bias=float(lambd), lambd=float(lambd))


@form("hardshrink")
def hardshrink(g: Graph, input: Value, lambd: float = 0.5) -> Value:
    return g.op("Shrink", input, bias=0.0, lambd=float(lambd))


@form("tanhshrink")
def tanhshrink(g: Graph, input: Value) -> Value:
    return g.op("Sub", input, g.op("Tanh", input))


@form("threshold")
def threshold(g: Graph, input: Value, threshold: float, value: float, inplace: bool = False) -> Value:
    above = g.op("Greater", input, _number(g, threshold, input), dtype=cygrad.bool)
    return g.where(above, input, _number(g, value, input))


@form("logsigmoid")
def logsigmoid(g: Graph, input: Value) -> Value:
    # min(x, 0) - log1p(exp(-|x|))
    below = g.op("Min", input, g.constant(0, input.dtype))
    return g.op("Sub", below, log1p(g, g.op("Exp", g.op("Neg", g.op("Abs", input)))))


@form("glu")
def glu(g: Graph, input: Value, dim: int = -1) -> Value:
    axis = input.axis(dim)
    half = input.length(axis) // 2
    a, b = g.op("Split", input, [half, half], n=2, axis=axis)
    return g.op("Mul", a, g.op("Sigmoid", b))


@form("softmax")
def softmax(g: Graph, input: Value, dim: Any = None, *args: Any, dtype: Any = None, **kwargs: Any) -> Value:
    return _normalized(g, "Softmax", input, dim, dtype)


def _normalized(g: Graph, kind: str, input: Value, dim: Any, dtype: Any) -> Value:
    if dim is None:
        dim = 0 if input.rank in (0, 1, 3) else 1
    input_ = g.cast(input, g.results[0].dtype) if dtype is not None else input
    if not input.rank:
        return g.op("Squeeze", g.op(kind, g.reshape(input_, [1]), axis=0))
    return g.op(kind, input_, axis=input.axis(dim))


@form("log_softmax")
def log_softmax(g: Graph, input: Value, dim: Any = None, *args: Any, dtype: Any = None, **kwargs: Any) -> Value:
    return _normalized(g, "LogSoftmax", input, dim, dtype)


@form("softmin")
def softmin(g: Graph, input: Value, dim: Any = None, *args: Any, dtype: Any = None, **kwargs: Any) -> Value:
    negative = g.op("Neg", input)
    return _normalized(g, "Softmax", Value(negative.name, input.dtype, *_shape_of(input)), dim, dtype)


def _shape_of(value: Value) -> Any:
    return [0 if n is None else n for n in value.shape], [d for d, n in enumerate(value.shape) if n is None]


@form("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")
def dropout(g: Graph, input: Value, p: Any = 0.5, training: Any = True, inplace: bool = False, **kwargs: Any) -> Value:
    if isinstance(training, Value) or training is not False and p != 0.0:
        raise Unsupported("random numbers (dropout in training mode); call model.eval()")
    return input
