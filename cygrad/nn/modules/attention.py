"""Multi-head attention."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules.linear import NonDynamicallyQuantizableLinear
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention between linear projections: `F.multi_head_attention_forward` with its own weights.

    With Q, K, V the projections of query, key and value, split into heads of width d = embed_dim / num_heads, head h is
    `softmax(Q_h @ K_h^T / sqrt(d) + mask) @ V_h`; `out_proj` projects all heads, joined.

    Called with query (L, N, embed_dim), key (S, N, kdim) and value (S, N, vdim), or with N first if `batch_first`, or
    all without N, returns (result (L, N, embed_dim), weights). The weights are (N, L, S), averaged over the heads, or
    (N, num_heads, L, S) without `average_attn_weights`; None without `need_weights`, which is faster. Masks are True,
    or -inf, where attention is *not* allowed: `key_padding_mask` (N, S), `attn_mask` (L, S) or (N * num_heads, L, S);
    `is_causal` is a hint that the latter is causal.

    `in_proj_weight` (3 * embed_dim, embed_dim) stacks the projections of query, key and value; if `kdim` or `vdim`
    differ, there are `q_proj_weight`, `k_proj_weight` and `v_proj_weight` instead. `add_bias_kv` appends a learned key
    and value, `add_zero_attn` a key and value of zeros. Matrices are initialized Xavier-uniform, biases to 0. Raises
    ValueError or AssertionError for sizes that do not match.

    >>> import cygrad
    >>> attention = cygrad.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = cygrad.randn(4, 5, 8)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Any
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        kwargs = {"device": device, "dtype": dtype}
        joint = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        apart = {f"{name}_proj_weight": (embed_dim, n) for name, n in zip("qkv", (embed_dim, self.kdim, self.vdim))}
        used, unused = (joint, apart) if self._qkv_same_embed_dim else (apart, joint)
        for name, shape in used.items():
            setattr(self, name, Parameter(cygrad.empty(shape, **kwargs)))
        for name in unused:
            self.register_parameter(name, None)
        if bias:
            self.in_proj_bias = Parameter(cygrad.empty(3 * embed_dim, **kwargs))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj: Any = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kwargs)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, Parameter(cygrad.empty((1, 1, embed_dim), **kwargs)) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Reinitialize all parameters except the weight of the output projection."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return (attended values per query, attention weights or None).

        The shapes are (L, N, embed_dim) for the query, (S, N, kdim) for the key and (S, N, vdim) for the value, with N
        first if `batch_first`, or without N. The weights have the shape (N, L, S), or (N, num_heads, L, S) unless
        `average_attn_weights`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.MultiheadAttention(4, num_heads=2, batch_first=True)
        >>> x = cygrad.ones(1, 3, 4)
        >>> out, weights = m(x, x, x)
        >>> out.shape, weights.shape
        (torch.Size([1, 3, 4]), torch.Size([1, 3, 3]))
        """
        is_swapped = self.batch_first and query.dim() == 3
        if is_swapped:
            # Transpose a tensor passed several times only once: self-attention is then projected in a single matmul.
            swapped = {id(t): t.transpose(0, 1) for t in (query, key, value) if t.dim() == 3}
            query, key, value = (swapped.get(id(t), t) for t in (query, key, value))
        weights: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            weights = {f"{name}_proj_weight": getattr(self, f"{name}_proj_weight") for name in "qkv"}
        result, attention = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **weights,
        )
        return result.transpose(0, 1) if is_swapped else result, attention

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Return (the merged mask, its type: 0 for `attn_mask` alone, 1 for `key_padding_mask` alone, 2 for all heads).

        `query` is (N, L, embed_dim).

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.MultiheadAttention(4, num_heads=2, batch_first=True)
        >>> mask, kind = m.merge_masks(None, cygrad.tensor([[False, True]]), cygrad.ones(1, 2, 4))
        >>> mask, kind
        (tensor([[False,  True]]), 1)
        """
        if attn_mask is None:
            return (None, None) if key_padding_mask is None else (key_padding_mask, 1)
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length)
        return merged, 2
