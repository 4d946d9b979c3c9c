"""ONNX forms of convolutions."""

from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


def spread(value: Any, n: int) -> list[int]:
    """Return a number for each of n dimensions."""
    numbers = list(value) if isinstance(value, (tuple, list)) else [value]
    return numbers * n if len(numbers) == 1 else numbers


def batched(g: Graph, input: Value, n: int, function: Any) -> Any:
    """Write an op on (N, C, ...) for values that may lack the batch; `n` is the number of further dimensions."""
    if input.rank == n + 2:
        return function(input)
    one = g.op("Unsqueeze", input, [0])
    one._shape = (1, *input.shape)
    found = function(one)
    return (
        tuple(g.op("Squeeze", each, [0]) for each in found) if isinstance(found, tuple) else g.op("Squeeze", found, [0])
    )


def _convolution(n: int) -> None:
    @form(f"conv{n}d")
    def conv(
        g: Graph,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Value:
        kernel, dilations = weight.fixed(range(2, n + 2)), spread(dilation, n)
        if isinstance(padding, str):
            total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilations, kernel)]
            before = [each // 2 for each in total]
            pads = [*before, *(each - b for each, b in zip(total, before))]
        else:
            pads = spread(padding, n) * 2
        return batched(g, input, n, lambda x: g.op(
            "Conv", x, weight, bias, kernel_shape=kernel, strides=spread(stride, n), pads=pads, dilations=dilations,
            group=groups))  # fmt: skip

    @form(f"conv_transpose{n}d")
    def transposed(
        g: Graph,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Value:
        return batched(g, input, n, lambda x: g.op(
            "ConvTranspose", x, weight, bias, kernel_shape=weight.fixed(range(2, n + 2)), strides=spread(stride, n),
            pads=spread(padding, n) * 2, output_padding=spread(output_padding, n), dilations=spread(dilation, n),
            group=groups))  # fmt: skip


for _n in (1, 2, 3):
    _convolution(_n)


@form("nn.functional.unfold")
def im2col(g: Graph, input: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Value:
    def columns(x: Value) -> Value:
        channels, *size = x.fixed(range(1, 4))
        pads, steps, dilations, kernel = (spread(each, 2) for each in (padding, stride, dilation, kernel_size))
        padded = g.op("Pad", x, [0, 0, *pads, 0, 0, *pads])
        height, width = (s + 2 * p for s, p in zip(size, pads))
        offsets = [np.arange(k) * d for k, d in zip(kernel, dilations)]
        starts = [
            np.arange(0, full - d * (k - 1), step)
            for full, k, d, step in zip((height, width), kernel, dilations, steps)
        ]
        rows = offsets[0][:, None, None, None] + starts[0][None, None, :, None]
        places = rows * width + offsets[1][None, :, None, None] + starts[1][None, None, None, :]
        places = places.reshape(len(offsets[0]) * len(offsets[1]), -1)
        flat = g.op("Reshape", padded, [0, channels, height * width])
        found = g.op("Gather", flat, g.constant(places, cygrad.int64), axis=2)
        return g.op("Reshape", found, [0, channels * places.shape[0], places.shape[1]])

    return batched(g, input, 2, columns)


@form("fold")
def fold(
    g: Graph, input: Value, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Value:
    return batched(g, input, 1, lambda x: g.op(
        "Col2Im", x, spread(output_size, 2), spread(kernel_size, 2), dilations=spread(dilation, 2),
        pads=spread(padding, 2) * 2, strides=spread(stride, 2)))  # fmt: skip


@form("Tensor.unfold")
def windows(g: Graph, input: Value, dimension: int, size: int, step: int) -> Value:
    axis = input.axis(dimension)
    if not input.rank:
        raise Unsupported("a tensor without dimensions")
    places = np.arange(0, input.length(axis) - size + 1, step)[:, None] + np.arange(size)
    found = g.op("Gather", input, g.constant(places, cygrad.int64), axis=axis)
    order = [*range(axis + 1), *range(axis + 2, input.rank + 1), axis + 1]
    return g.op("Transpose", found, perm=order)
