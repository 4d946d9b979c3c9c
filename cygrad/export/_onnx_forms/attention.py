"""ONNX forms of attention."""

import math
from typing import Any

import numpy as np

import cygrad
from cygrad.export._onnx_forms.graph import Graph, Value
from cygrad.export._onnx_forms.table import Unsupported, form


def _causal(g: Graph, rows: Value, columns: Value) -> Value:
    """Write the mask of what may be seen: (rows, columns), where the column is at most the row."""
    return g.op(
        "GreaterOrEqual", g.op("Unsqueeze", g.arange(rows), [1]), g.op("Unsqueeze", g.arange(columns), [0]),
        dtype=cygrad.bool)  # fmt: skip


def _as_scores(g: Graph, mask: Value, dtype: Any, seen: bool) -> Value:
    """Return a mask as numbers to add: -inf where a bool mask hides, which is where it is not `seen`."""
    if mask.dtype is not cygrad.bool:
        return g.cast(mask, dtype)
    zero, hidden = g.constant(0, dtype), g.constant(-np.inf, dtype)
    return g.where(mask, zero, hidden) if seen else g.where(mask, hidden, zero)


def _weights(g: Graph, scores: Value, masked: bool, empty_rows: bool) -> Value:
    found = g.op("Softmax", scores, axis=-1)
    if masked and empty_rows:  # a row in which all is hidden
        found = g.where(g.op("IsNaN", found, dtype=cygrad.bool), g.constant(0, found.dtype), found)
    return found


@form("scaled_dot_product_attention")
def scaled_dot_product_attention(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise Unsupported("random numbers (dropout)")
    if enable_gqa and query.rank >= 3 and query.shape[-3] != key.shape[-3]:
        times = query.length(query.rank - 3) // key.length(key.rank - 3)
        key, value = (_repeated(g, each, times) for each in (key, value))
    factor = 1 / math.sqrt(query.length(query.rank - 1)) if scale is None else scale
    scores = g.op("MatMul", g.op("Mul", query, g.constant(factor, query.dtype)), g.swapped(key, -2, -1))
    if is_causal:
        attn_mask = _causal(g, g.size(query, -2), g.size(key, -2))
    if attn_mask is not None:
        scores = g.op("Add", scores, _as_scores(g, attn_mask, query.dtype, True))
    return g.op("MatMul", _weights(g, scores, attn_mask is not None, not is_causal), value)


def _repeated(g: Graph, heads: Value, times: int) -> Value:
    axis = heads.rank - 3
    sizes = [g.size(heads, d) if n is None else n for d, n in enumerate(heads.shape)]
    copies = [1] * (heads.rank + 1)
    copies[axis + 1] = times
    many = g.op("Tile", g.op("Unsqueeze", heads, [axis + 1]), copies)
    found = g.reshape(many, g.ints([*sizes[:axis], heads.length(axis) * times, *sizes[axis + 1 :]]))
    found._shape = (*heads.shape[:axis], heads.length(axis) * times, *heads.shape[axis + 1 :])
    return found


@form("multi_head_attention_forward")
def multi_head_attention_forward(
    g: Graph, query: Value, key: Value, value: Value, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Value, out_proj_bias: Any, training: bool = True, key_padding_mask: Any = None,
    need_weights: bool = True, attn_mask: Any = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None,
    static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Any:  # fmt: skip
    if static_k is not None or static_v is not None:
        raise Unsupported("`static_k` and `static_v`")
    if training and dropout_p:
        raise Unsupported("random numbers (dropout in training mode); call model.eval()")
    single = query.rank == 2
    batch = g.ints([1]) if single else g.size(query, 1)
    dtype, dim = query.dtype, embed_dim_to_check
    width = dim // num_heads
    weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    if not use_separate_proj_weight:
        weights = [_third(g, in_proj_weight, i, dim) for i in range(3)]
    biases = [None if in_proj_bias is None else _third(g, in_proj_bias, i, dim) for i in range(3)]
    projected = [_projected(g, *each) for each in zip((query, key, value), weights, biases)]
    projected = [g.op("Unsqueeze", each, [1]) if single else each for each in projected]
    mask = None if attn_mask is None else _as_scores(g, attn_mask, dtype, False)
    padding = None if key_padding_mask is None else _as_scores(g, key_padding_mask, dtype, False)
    if padding is not None:  # (N, S) to (N, 1, 1, S)
        padding = g.op("Unsqueeze", padding, [0] if single else [1])
        padding = g.op("Unsqueeze", padding, [1])
    if mask is not None and attn_mask.rank == 3:  # (N * heads, L, S) to (N, heads, L, S)
        mask = g.reshape(mask, g.ints([batch, num_heads, g.size(attn_mask, 1), g.size(attn_mask, 2)]))
    further = 0
    if bias_k is not None:
        for i, bias in ((1, bias_k), (2, bias_v)):
            row = g.op("Expand", bias, g.ints([1, batch, dim]))
            projected[i] = g.op("Concat", projected[i], row, axis=0)
        further += 1
    if add_zero_attn:
        for i in (1, 2):
            row = g.op("Expand", g.constant(0, dtype), g.ints([1, batch, dim]))
            projected[i] = g.op("Concat", projected[i], row, axis=0)
        further += 1
    if further:
        mask, padding = (None if each is None else _longer(g, each, further, rank) for each, rank in (
            (mask, 4 if mask is not None and attn_mask.rank == 3 else 2), (padding, 4)))  # fmt: skip
    heads = [g.op("Reshape", each, g.ints([0, batch, num_heads, width])) for each in projected]
    q, v = (g.op("Transpose", heads[i], perm=[1, 2, 0, 3]) for i in (0, 2))
    k = g.op("Transpose", heads[1], perm=[1, 2, 3, 0])
    scores = g.op("MatMul", g.op("Mul", q, g.constant(1 / math.sqrt(width), dtype)), k)
    for each in (mask, padding):
        scores = scores if each is None else g.op("Add", scores, each)
    attention = _weights(g, scores, False, False)
    if not need_weights:
        attention = _weights(g, scores, mask is not None or padding is not None, True)
    mixed = g.op("Transpose", g.op("MatMul", attention, v), perm=[2, 0, 1, 3])
    found = g.op("Reshape", mixed, [0, 0, dim])
    found = _projected(g, g.op("Squeeze", found, [1]) if single else found, out_proj_weight, out_proj_bias)
    if not need_weights:
        return found, None
    shown = g.op("ReduceMean", attention, [1], keepdims=0) if average_attn_weights else attention
    return found, g.op("Squeeze", shown, [0]) if single else shown


def _third(g: Graph, packed: Value, i: int, dim: int) -> Value:
    found = g.slice(packed, 0, i * dim, (i + 1) * dim)
    found._shape = (dim, *packed.shape[1:])
    return found


def _projected(g: Graph, input: Value, weight: Value, bias: Any) -> Value:
    found = g.op("MatMul", input, g.swapped(weight, 0, 1))
    return found if bias is None else g.op("Add", found, bias)


def _longer(g: Graph, mask: Value, more: int, rank: int) -> Value:
    """Return a mask with further columns, of which nothing is hidden."""
    return g.op("Pad", mask, [0] * (2 * rank - 1) + [more])
