"""Attention with PyTorch's private arguments and results."""

import math

import cygrad
from cygrad._ops.nn.multi_head_attention import scaled_dot_product_attention
from cygrad._ops.nn.scaled_dot_product import weights_of
from cygrad.ops._aten.table import aten


def _attention(query, key, value, mask, dropout_p, is_causal, scale):
    return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale)


@aten
def _scaled_dot_product_flash_attention_for_cpu(
    query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None
):
    """Return attention, and the logarithms of the sums of the exponentials of its scores, of shape (..., length)."""
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        hidden = cygrad.ones(scores.shape[-2:], dtype=cygrad.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        is_bool = attn_mask.dtype is cygrad.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if is_bool else scores + attn_mask
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale), scores.logsumexp(-1)


@aten
def _scaled_dot_product_attention_math(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    dropout_mask=None,
    *,
    scale=None,
    enable_gqa=False,
):
    """Return attention, and its weights."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    mask = attn_mask
    if mask is not None and mask.dtype is cygrad.bool:
        mask = cygrad.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -math.inf)
    weights = weights_of(query, key, mask, scale, is_causal)
    if dropout_mask is not None:
        return weights.masked_fill(~dropout_mask, 0) * (1 / (1 - dropout_p)) @ value, weights
    return cygrad.dropout(weights, dropout_p, True) @ value, weights


def _of_gpus(name):
    """Return a function that only GPUs have; it raises as PyTorch does on a machine without one."""

    def function(*args, **kwargs):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. This could be because the operator "
            "doesn't exist for this backend\n  to fix it: call nn.functional.scaled_dot_product_attention"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Attention by a kernel of PyTorch for GPUs: raises NotImplementedError."
    return aten(function)


for _kernel in ("flash", "efficient", "cudnn"):
    for _end in ("", "_backward"):
        _of_gpus(f"_scaled_dot_product_{_kernel}_attention{_end}")
