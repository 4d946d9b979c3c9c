"""ONNX forms of pooling."""

import math
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.convolution import batched, spread
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


def _more_padding(x: Value, n: int, out: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """Return how much padding at the end makes windows that `ceil_mode` adds whole ones."""
    sizes = zip(x.fixed(range(2, n + 2)), out, kernel, stride, padding, dilation)
    return [max((o - 1) * s + d * (k - 1) + 1 - (length + 2 * p), 0) for length, o, k, s, p, d in sizes]


def _steps(stride: Any, kernel: Any, n: int) -> Any:
    """Return the strides, by default the lengths of the kernel."""
    return kernel if stride is None or stride == [] or stride == () else spread(stride, n)


def _names(n: int) -> list[str]:
    """Return the names of the adaptive maximum: there is one with indices for images and volumes."""
    return [f"adaptive_max_pool{n}d", *([f"adaptive_max_pool{n}d_with_indices"] if n > 1 else [])]


def _max_pool(n: int) -> None:
    @form(f"max_pool{n}d", f"max_pool{n}d_with_indices")
    def pool(
        g: Graph,
        input: Value,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        kernel, pads, dilations = (spread(each, n) for each in (kernel_size, padding, dilation))
        steps = _steps(stride, kernel, n)

        def pooled(x: Value) -> Any:
            after = list(pads)
            if ceil_mode:
                more = _more_padding(x, n, g.results[0].shape[-n:], kernel, steps, pads, dilations)
                after = [p + e for p, e in zip(pads, more)]
            several = len(g.results) == 2
            found = g.op("MaxPool", x, n=2 if several else 1, kernel_shape=kernel, strides=steps, pads=[*pads, *after],
                         dilations=dilations)  # fmt: skip
            if not several:
                return found
            values, places = found
            places.dtype = cygrad.int64
            plane = g.constant(1, cygrad.int64)
            for d in range(2, n + 2):
                plane = g.op("Mul", plane, g.size(x, d))
            return values, g.op("Mod", places, plane)

        return batched(g, input, n, pooled)

    @form(f"avg_pool{n}d")
    def average(
        g: Graph,
        input: Value,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        kernel, pads = spread(kernel_size, n), spread(padding, n)
        steps = _steps(stride, kernel, n)
        out = g.results[0].shape[-n:]
        return batched(g, input, n, lambda x: averaged(
            g, x, n, kernel, steps, pads, out if ceil_mode else None, count_include_pad, divisor_override))  # fmt: skip

    @form(f"lp_pool{n}d")
    def lp(
        g: Graph, input: Value, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Value:
        kernel = spread(kernel_size, n)
        steps = _steps(stride, kernel, n)
        out = g.results[0].shape[-n:]

        def pooled(x: Value) -> Value:
            raised = g.op("Pow", x, g.constant(norm_type, x.dtype), shape=x.shape)
            total = averaged(g, raised, n, kernel, steps, [0] * n, out if ceil_mode else None, True, None)
            kept = g.op("Mul", g.op("Sign", total), g.op("Relu", g.op("Abs", total)))
            whole = g.op("Mul", kept, g.constant(math.prod(kernel), x.dtype))
            return g.op("Pow", whole, g.constant(1 / norm_type, x.dtype))

        return batched(g, input, n, pooled)

    @form(f"adaptive_avg_pool{n}d")
    def adaptive(g: Graph, input: Value, output_size: Any) -> Value:
        return batched(g, input, n, lambda x: adaptive_mean(g, x, n, spread(output_size, n)))

    @form(*_names(n))
    def largest(g: Graph, input: Value, output_size: Any, return_indices: bool = False) -> Any:
        return batched(g, input, n, lambda x: _adaptive_max(g, x, n, spread(output_size, n)))

    @form(f"max_unpool{n}d")
    def unpool(
        g: Graph,
        input: Value,
        indices: Value,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Value:
        if any(length is None for length in input.shape[-n:]):
            raise Unsupported("planes whose lengths vary")
        size = list(g.results[0].shape[-n:])
        lead = [g.size(input, d) for d in range(input.rank - n)]
        zeros = g.op("Expand", g.constant(0, input.dtype), g.ints([*lead, math.prod(size)]))
        flat = [g.reshape(each, g.ints([*lead, -1])) for each in (indices, input)]
        found = g.op("ScatterElements", zeros, *flat, axis=input.rank - n)
        return g.reshape(found, g.ints([*lead, *size]))


def averaged(
    g: Graph, x: Value, n: int, kernel: Any, steps: Any, pads: Any, ceil_out: Any, include: bool, divisor: Any
) -> Value:
    """Write an average pool; `ceil_out` are the lengths of the result if they are rounded up."""
    more = _more_padding(x, n, ceil_out, kernel, steps, pads, [1] * n) if ceil_out else [0] * n
    if divisor is not None or any(more):
        ends = [p + e for p, e in zip(pads, more)]
        padded = g.op("Pad", x, [0, 0, *pads, 0, 0, *ends])
        total = g.op("AveragePool", padded, kernel_shape=kernel, strides=steps)
        if divisor is not None:
            return g.op("Mul", total, g.constant(math.prod(kernel) / divisor, x.dtype))
        counts = np.ones(())
        for d in range(n):
            length, p = x.length(d + 2), pads[d]
            starts = np.arange(ceil_out[d]) * steps[d] - p
            low, high = (-p, length + p) if include else (0, length)
            count = np.minimum(starts + kernel[d], high) - np.maximum(starts, low)
            counts = np.multiply.outer(counts, count)
        return g.op("Mul", total, g.constant(math.prod(kernel) / counts, x.dtype))
    counted = int(include)
    return g.op("AveragePool", x, kernel_shape=kernel, strides=steps, pads=[*pads, *pads], count_include_pad=counted)


def _ends(length: int, out: int) -> list[tuple[int, int]]:
    """Return the window of each element of an adaptive pool."""
    return [(i * length // out, -(-(i + 1) * length // out)) for i in range(out)]


def adaptive_mean(g: Graph, x: Value, n: int, sizes: Any) -> Value:
    """Write an adaptive average pool: the mean of all, equal windows, or a product with a matrix for each dimension."""
    sizes = [x.shape[d + 2] if size is None else size for d, size in enumerate(sizes)]
    if all(size == 1 for size in sizes):
        return g.op("ReduceMean", x, list(range(2, n + 2)), keepdims=1)
    lengths = x.fixed(range(2, n + 2))
    if all(length % size == 0 for length, size in zip(lengths, sizes)):
        kernel = [length // size for length, size in zip(lengths, sizes)]
        return g.op("AveragePool", x, kernel_shape=kernel, strides=kernel)
    for d, (length, size) in enumerate(zip(lengths, sizes)):
        weights = np.zeros((length, size))
        for i, (start, stop) in enumerate(_ends(length, size)):
            weights[start:stop, i] = 1 / (stop - start)
        order = list(range(n + 2))
        order[d + 2], order[-1] = order[-1], order[d + 2]
        turned = x if d == n - 1 else g.op("Transpose", x, perm=order)
        x = g.op("MatMul", turned, g.constant(weights, x.dtype))
        x = x if d == n - 1 else g.op("Transpose", x, perm=order)
    return x


def _adaptive_max(g: Graph, x: Value, n: int, sizes: Any) -> Any:
    if all(size == 1 for size in sizes) and len(g.results) == 1:
        return g.op("ReduceMax", x, list(range(2, n + 2)), keepdims=1)
    lengths = x.fixed(range(2, n + 2))
    sizes = [length if size is None else size for length, size in zip(lengths, sizes)]
    if all(length % size == 0 for length, size in zip(lengths, sizes)):
        kernel = [length // size for length, size in zip(lengths, sizes)]
        if len(g.results) == 1:
            return g.op("MaxPool", x, kernel_shape=kernel, strides=kernel)
        values, places = g.op("MaxPool", x, n=2, kernel_shape=kernel, strides=kernel)
        places.dtype = cygrad.int64
        return values, g.op("Mod", places, g.constant(math.prod(lengths), cygrad.int64))
    if len(g.results) == 2:
        raise Unsupported("indices of windows with different lengths")
    for d, (length, size) in enumerate(zip(lengths, sizes)):
        parts = [
            g.op("ReduceMax", g.slice(x, d + 2, start, stop), [d + 2], keepdims=1)
            for start, stop in _ends(length, size)
        ]
        x = g.op("Concat", *parts, axis=d + 2)
    return x


for _n in (1, 2, 3):
    _max_pool(_n)
