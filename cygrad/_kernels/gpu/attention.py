"""Attention by blocks of heads and queries on GPUs; the arguments are those of `_kernels/attention.py`.

A block's scores are a product of matrices, of which one kernel makes weights in place; backward two products and one
kernel. Scratch memory does not grow with the number of heads, nor with that of queries.
"""

import numpy as np

from cygrad._kernels.gpu.blas import matmul
from cygrad._kernels.gpu.library import cupy, dense
from cygrad._kernels.gpu.programs import on_gpu, wide_type
from cygrad._kernels.gpu.rows import RowProgram

_SCRATCH = 1 << 28  # bytes of scores

_SCORE = """
// The score of key i, of which the row's query is number `query` of a head; `mask` is the head's, or NULL.
__device__ inline W score(W product, double scale, const T* mask, whole query, whole i, whole down, whole across,
                          whole causal) {
    if (causal && i > query) return -infinity(W());
    return product * W(scale) + (mask ? W(mask[query * down + i * across]) : W(0));
}
"""
_ARGUMENTS = """double scale, const T* mask, const whole* offsets, whole first, whole queries, whole length, whole down,
    whole across, whole causal, whole rows, whole n"""
_QUERY = """
        whole head = row / queries, query = first % length + row % queries;
        const T* own = mask ? mask + offsets[first / length + head] : 0;
"""
_WEIGHTS = RowProgram(
    "attention_weights",
    f"""{_SCORE}
extern "C" __global__ void attention_weights(T* scores, W* logs, {_ARGUMENTS}) {{
    EACH_ROW(row, rows) {{{_QUERY}
        Row x(scores + row * n, n);
        W largest = -infinity(W());
        EACH(i, k, n) largest = Larger()(score(x.get(k, i), scale, own, query, i, down, across, causal), largest);
        largest = over_row(largest, Larger());
        bool none = largest == -infinity(W());
        W sum = 0;
        EACH(i, k, n) {{
            W s = score(x.get(k, i), scale, own, query, i, down, across, causal);
            sum += none ? W(0) : exp(s - largest);
        }}
        sum = over_row(sum, Add());
        EACH(i, k, n) {{
            W s = score(x.get(k, i), scale, own, query, i, down, across, causal);
            scores[row * n + i] = T(none ? W(0) : exp(s - largest) / sum);
        }}
        if (!threadIdx.x) logs[row] = none ? largest : largest + log(sum);
    }}
}}
""",
)
# Scores become weights, and the gradients of weights those of scores.
_SLOPES = RowProgram(
    "attention_slopes",
    f"""{_SCORE}
extern "C" __global__ void attention_slopes(T* scores, T* slopes, const W* logs, {_ARGUMENTS}) {{
    EACH_ROW(row, rows) {{{_QUERY}
        Row x(scores + row * n, n), g(slopes + row * n, n);
        W log = logs[row], sum = 0;
        bool none = log == -infinity(W());
        EACH(i, k, n) {{
            W s = score(x.get(k, i), scale, own, query, i, down, across, causal);
            sum += (none ? W(0) : exp(s - log)) * g.get(k, i);
        }}
        sum = over_row(sum, Add());
        EACH(i, k, n) {{
            W s = score(x.get(k, i), scale, own, query, i, down, across, causal);
            W weight = none ? W(0) : exp(s - log);
            slopes[row * n + i] = T(weight * (g.get(k, i) - sum) * W(scale));
            scores[row * n + i] = T(weight);
        }}
    }}
}}
""",
)


class _Heads:
    """The heads of a call one after the other, and the blocks that their scores are computed in."""

    def __init__(self, query, key, value, mask, scale, is_causal):
        self.leading, self.length = query.shape[:-2], query.shape[-2]
        self.query, self.key, self.value = (self.matrices(a) for a in (query, key, value))
        self.heads, self.keys = len(self.query), key.shape[-2]
        self.scale, self.causal = float(scale), int(is_causal)
        self.mask, self.offsets, self.steps = None, None, (0, 0)
        if mask is not None:
            mask = cupy().broadcast_to(mask.astype(query.dtype, copy=False), (*self.leading, self.length, self.keys))
            self.mask = mask  # what the kernel gets is where its memory begins
            self.offsets = on_gpu(_offsets(mask))
            self.steps = tuple(step // mask.itemsize for step in mask.strides[-2:])

    def matrices(self, a):
        return dense(a).reshape(-1, *a.shape[-2:])

    def blocks(self):
        """(heads, queries) of each block, as slices: whole heads, or some queries of one."""
        head = self.length * self.keys * self.query.itemsize
        if head <= _SCRATCH:
            step = max(1, _SCRATCH // max(head, 1))
            return [(slice(h, min(h + step, self.heads)), slice(0, self.length)) for h in range(0, self.heads, step)]
        step = max(1, _SCRATCH // (self.keys * self.query.itemsize))
        spans = [slice(first, min(first + step, self.length)) for first in range(0, self.length, step)]
        return [(slice(h, h + 1), span) for h in range(self.heads) for span in spans]

    def products(self, heads, queries):
        return dense(matmul(self.query[heads, queries], self.key[heads].swapaxes(1, 2)))

    def run(self, program, arrays, heads, queries):
        first, count = heads.start * self.length + queries.start, queries.stop - queries.start
        rows = (heads.stop - heads.start) * count
        own = self.scale, self.mask, self.offsets, first, count, self.length, *self.steps, self.causal
        program.over_rows(arrays[0].dtype, rows, self.keys, (*arrays, *own))


def _offsets(mask):
    """How many elements the matrix of each head is behind the first."""
    places = np.zeros(1, np.int64)
    for n, step in zip(mask.shape[:-2], mask.strides[:-2]):
        places = (places[:, None] + np.arange(n) * (step // mask.itemsize)).reshape(-1)
    return places


def attend(query, key, value, mask, scale, is_causal):
    """(softmax(query @ key^T * scale + mask) @ value, logarithms of the sums of the rows' exponentials)."""
    call = _Heads(query, key, value, mask, scale, is_causal)
    out = cupy().empty((call.heads, call.length, value.shape[-1]), query.dtype)
    logs = cupy().empty((call.heads, call.length), wide_type(query.dtype))
    for heads, queries in call.blocks():
        scores = call.products(heads, queries)
        own = cupy().empty(scores.shape[:2], logs.dtype)
        call.run(_WEIGHTS, (scores, own), heads, queries)
        logs[heads, queries] = own
        out[heads, queries] = matmul(scores, call.value[heads])
    return out.reshape(*call.leading, *out.shape[1:]), logs.reshape(query.shape[:-1])


def attend_backward(grad, query, key, value, mask, scale, is_causal, out, logs):
    """The gradients of query, key and value, from that of the result and from what `attend` gave."""
    call = _Heads(query, key, value, mask, scale, is_causal)
    grad, logs = call.matrices(grad), logs.reshape(call.heads, call.length)
    of_query, of_key, of_value = (cupy().zeros_like(a) for a in (call.query, call.key, call.value))
    for heads, queries in call.blocks():
        weights, g = call.products(heads, queries), grad[heads, queries]
        slopes = dense(matmul(g, call.value[heads].swapaxes(1, 2)))
        call.run(_SLOPES, (weights, slopes, dense(logs[heads, queries])), heads, queries)
        of_value[heads] += matmul(weights.swapaxes(1, 2), g)
        of_query[heads, queries] = matmul(slopes, call.key[heads])
        of_key[heads] += matmul(slopes.swapaxes(1, 2), call.query[heads, queries])
    return tuple(found.reshape(a.shape) for found, a in zip((of_query, of_key, of_value), (query, key, value)))
