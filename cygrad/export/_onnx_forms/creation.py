"""ONNX forms of functions that make tensors."""

from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form
from cygrad.export._programs.sizes import Formula


def filled(g: Graph, sizes: Value, number: Any, dtype: Any) -> Value:
    """Write a tensor of equal elements."""
    return g.op("Expand", g.value(number, dtype), sizes)


def _sizes(g: Graph, size: Any, named: dict[str, Any]) -> Value:
    if "size" in named:
        size = (named["size"],)
    return g.ints(list(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else list(size))


def _constant(first: str, number: int) -> None:
    @form(first)
    def write(g: Graph, *size: Any, **named: Any) -> Value:
        return filled(g, _sizes(g, size, named), number, g.results[0].dtype)

    @form(f"{first}_like")
    def like(g: Graph, input: Value, **named: Any) -> Value:
        return filled(g, g.sizes(input), number, g.results[0].dtype)

    @form(f"new_{first}")
    def new(g: Graph, input: Value, *size: Any, **named: Any) -> Value:
        return filled(g, _sizes(g, size, named), number, g.results[0].dtype)


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)


@form("full")
def full(g: Graph, size: Any, fill_value: Any, **named: Any) -> Value:
    return filled(g, _sizes(g, (size,), {}), fill_value, g.results[0].dtype)


@form("full_like")
def full_like(g: Graph, input: Value, fill_value: Any, **named: Any) -> Value:
    return filled(g, g.sizes(input), fill_value, g.results[0].dtype)


@form("new_full")
def new_full(g: Graph, input: Value, size: Any, fill_value: Any, **named: Any) -> Value:
    return filled(g, _sizes(g, (size,), {}), fill_value, g.results[0].dtype)


@form("arange")
def arange(g: Graph, *args: Any, start: Any = 0, end: Any = None, step: Any = 1, **named: Any) -> Value:
    numbers = list(args)
    if len(numbers) == 1:
        end = numbers[0]
    elif numbers:
        start, end, *rest = numbers
        step = rest[0] if rest else step
    dtype = g.results[0].dtype
    if not any(isinstance(each, (Formula, Value)) for each in (start, end, step)):
        return _own_result(g)
    # counted in int64 or float64, as is done here
    whole = all(type(each) is int or (isinstance(each, Formula) and each.is_int()) for each in (start, end, step))
    count = cygrad.int64 if whole else cygrad.float64
    return g.cast(g.op("Range", *(g.value(each, count) for each in (start, end, step))), dtype)


def _own_result(g: Graph) -> Value:
    """Write what was made while recording, as a constant."""
    t = g.results[0]
    return g.constant(t.detach().to(cygrad.float32 if t.dtype is cygrad.bfloat16 else t.dtype).numpy(), t.dtype)


@form("eye")
def eye(g: Graph, n: Any, m: Any = None, **named: Any) -> Value:
    if isinstance(n, Formula) or isinstance(m, Formula):
        rows, columns = g.number(n, cygrad.int64, (1,)), g.number(n if m is None else m, cygrad.int64, (1,))
        a = g.reshape(g.arange(rows), [-1, 1])
        return g.cast(g.op("Equal", a, g.arange(columns), dtype=cygrad.bool), g.results[0].dtype)
    return _own_result(g)


@form("linspace", "logspace", "tril_indices", "triu_indices", "hann_window", "hamming_window", "blackman_window",
      "bartlett_window", "kaiser_window")  # fmt: skip
def fixed(g: Graph, *args: Any, **named: Any) -> Value:
    if any(isinstance(each, (Formula, Value)) for each in (*args, *named.values())):
        raise Unsupported("a number that varies with the lengths of the arguments")
    return _own_result(g)


@form("one_hot")
def one_hot(g: Graph, tensor: Value, num_classes: int = -1) -> Value:
    if num_classes == -1:
        raise Unsupported("`num_classes=-1`, which follows the values")
    numbers = g.constant(np.array([0, 1]), cygrad.int64)
    return g.op("OneHot", tensor, g.ints([num_classes]), numbers, dtype=cygrad.int64, axis=-1)


# -- random numbers, which another generator draws ---------------------------------------------------------


def _drawn(g: Graph, kind: str, sizes: Value, dtype: Any, **attributes: Any) -> Value:
    numbers: dict[str, Any] = {name: float(value) for name, value in attributes.items()}
    return g.op(f"Random{kind}Like", filled(g, sizes, 0, dtype), dtype=dtype, **numbers)


@form("rand")
def rand(g: Graph, *size: Any, **named: Any) -> Value:
    return _drawn(g, "Uniform", _sizes(g, size, named), g.results[0].dtype)


@form("randn")
def randn(g: Graph, *size: Any, **named: Any) -> Value:
    return _drawn(g, "Normal", _sizes(g, size, named), g.results[0].dtype)


@form("rand_like")
def rand_like(g: Graph, input: Value, **named: Any) -> Value:
    return _drawn(g, "Uniform", g.sizes(input), g.results[0].dtype)


@form("randn_like")
def randn_like(g: Graph, input: Value, **named: Any) -> Value:
    return _drawn(g, "Normal", g.sizes(input), g.results[0].dtype)


@form("uniform")
def uniform(g: Graph, input: Value, from_: float = 0, to: float = 1, *, generator: Any = None, **named: Any) -> Value:
    return _drawn(g, "Uniform", g.sizes(input), input.dtype, low=named.get("from", from_), high=to)


@form("normal")
def normal(g: Graph, input: Any, mean: Any = 0, std: Any = 1, **named: Any) -> Value:
    if not isinstance(input, Value) or isinstance(mean, Value) or "size" in named:
        raise Unsupported("torch.normal; Tensor.normal_ has a form")
    return _drawn(g, "Normal", g.sizes(input), input.dtype, mean=mean, scale=std)


@form("bernoulli")
def bernoulli(g: Graph, input: Value, p: Any = None, *, generator: Any = None, out: Any = None) -> Value:
    if isinstance(p, Value):
        raise Unsupported("a tensor of probabilities apart from the input")
    shares = input if p is None else filled(g, g.sizes(input), p, input.dtype)
    drawn = g.op("RandomUniformLike", shares)  # ONNX's own Bernoulli is run with the opposite share by onnxruntime
    return g.cast(g.op("Less", drawn, shares, dtype=cygrad.bool), input.dtype)


@form("multinomial")
def multinomial(g: Graph, input: Value, num_samples: int, replacement: bool = False, **named: Any) -> Value:
    if not replacement and num_samples > 1:
        raise Unsupported("several draws without replacement")
    logs = g.op("Log", input if input.rank > 1 else g.op("Unsqueeze", input, [0]))
    found = g.cast(g.op("Multinomial", logs, dtype=cygrad.int32, sample_size=num_samples), cygrad.int64)
    return found if input.rank > 1 else g.op("Squeeze", found, [0])
