"""Transformers: stacks of attention and pointwise feed-forward layers with residual connections.

After A. Vaswani et al., "Attention is all you need" (NeurIPS 2017).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules.attention import MultiheadAttention
from cygrad.nn.modules.container import ModuleList
from cygrad.nn.modules.dropout import Dropout
from cygrad.nn.modules.linear import Linear
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.normalization import LayerNorm
from cygrad.nn.modules.rectifiers import GELU, ReLU

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

ACTIVATIONS: dict[str, Callable[..., Any]] = {"relu": F.relu, "gelu": F.gelu}


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """Return the function of that name. Raises RuntimeError for others than relu and gelu."""
    if activation not in ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return ACTIVATIONS[activation]


def _number_of(activation: Any) -> int:
    """Return 1 for relu, 2 for gelu, 0 for others."""
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a mask (sz, sz) that hides future positions: -inf above the diagonal, else 0."""
    return cygrad.triu(cygrad.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Return the hint, or whether the mask hides exactly the future positions."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    sz = mask.shape[-2] if size is None else size
    return mask.shape == (sz, sz) and cygrad.equal(mask, _generate_square_subsequent_mask(sz, mask.device, mask.dtype))


class _Layer(Module):
    """Base of encoder and decoder layers: the feed-forward network, the norms, and how the blocks are combined."""

    activation: Any

    def _set_up(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Any,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        kwargs: dict[str, Any],
        attentions: tuple[str, ...],
    ) -> None:
        super().__init__()
        for name in attentions:
            made = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **kwargs)
            setattr(self, name, made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kwargs)
        self.norm_first = norm_first
        count = len(attentions) + 1
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kwargs))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def _attend(self, attention: Any, dropout: Any, query: Tensor, memory: Tensor, *masks: Any) -> Tensor:
        mask, padding, is_causal = masks
        result = attention(
            query, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )
        dropped: Tensor = dropout(result[0])
        return dropped

    def _sa_block(self, x: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        return self._attend(self.self_attn, self.dropout1, x, x, attn_mask, key_padding_mask, is_causal)

    def _feed_forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return hidden

    def _add(self, x: Tensor, norm: Any, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the residual connection around one block, with the norm before or after it."""
        added: Tensor = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return added


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a two-layer feed-forward network, each with a residual connection, dropout and layer norm.

    With f either of the two blocks, x = norm(x + dropout(f(x))), or with `norm_first` x = x + dropout(f(norm(x))); the
    network is linear2(dropout(activation(linear1(x)))).

    `activation` is "relu", "gelu" or a function; `norm_first` normalizes before each block instead of after it. Input
    and result are (S, N, d_model), with `batch_first` (N, S, d_model), or (S, d_model); masks are as in
    `MultiheadAttention`.

    >>> import cygrad
    >>> layer = cygrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(cygrad.randn(4, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self._set_up(*sizes, {"device": device, "dtype": dtype}, ("self_attn",))
        self.activation_relu_or_gelu = _number_of(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encode `src`.

        The result has the shape of `src`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> causal = nn.Transformer.generate_square_subsequent_mask(4)
        >>> layer(cygrad.ones(1, 4, 8), src_mask=causal).shape
        torch.Size([1, 4, 8])
        """
        other = None if src_mask is None else src_mask.dtype
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "src_mask", src.dtype)
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = self._add(src, self.norm1, lambda x: self._sa_block(x, mask, padding, is_causal))
        return self._add(x, self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout2(self._feed_forward(x))
        return dropped


class TransformerDecoderLayer(_Layer):
    """Self-attention, cross-attention to a memory, then a feed-forward network; see `TransformerEncoderLayer`.

    With f each of the three blocks, x = norm(x + dropout(f(x))), or with `norm_first` x = x + dropout(f(norm(x))).

    >>> import cygrad
    >>> layer = cygrad.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(cygrad.randn(4, 3, 8), cygrad.randn(4, 5, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self._set_up(*sizes, {"device": device, "dtype": dtype}, ("self_attn", "multihead_attn"))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt`, attending to itself and to `memory`.

        The result has the shape of `tgt`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(cygrad.ones(1, 3, 8), cygrad.ones(1, 4, 8)).shape
        torch.Size([1, 3, 8])
        """
        x = self._add(tgt, self.norm1, lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        masks = memory_mask, memory_key_padding_mask, memory_is_causal
        x = self._add(x, self.norm2, lambda x: self._mha_block(x, memory, *masks))
        return self._add(x, self.norm3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Tensor:
        return self._attend(self.multihead_attn, self.dropout2, x, mem, attn_mask, key_padding_mask, is_causal)

    def _ff_block(self, x: Tensor) -> Tensor:
        dropped: Tensor = self.dropout3(self._feed_forward(x))
        return dropped


def _get_clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """A stack of `num_layers` copies of an encoder layer, then `norm` if given.

    With `enable_nested_tensor`, padding positions yield zeros in the cases where PyTorch skips them: in `eval()`,
    without gradients, batch first, with `src_key_padding_mask` alone, and with the padding at the end unless
    `mask_check=False`. With `is_causal=None` the mask is inspected.

    >>> import cygrad
    >>> layer = cygrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> cygrad.nn.TransformerEncoder(layer, 2)(cygrad.randn(4, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _can_be_nested(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode `src`.

        The result has the shape of `src`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> nn.TransformerEncoder(layer, num_layers=2)(cygrad.ones(1, 4, 8)).shape
        torch.Size([1, 4, 8])
        """
        other = None if mask is None else mask.dtype
        padding = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", other, "mask", src.dtype)
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype)
        hint = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, self.layers[0].self_attn.batch_first))
        hidden = self._hidden(src, mask, padding)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=hint, src_key_padding_mask=padding)
        if hidden is not None:
            src = src.masked_fill(hidden, 0.0)
        return src if self.norm is None else self.norm(src)

    def _hidden(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Return the mask of positions PyTorch skips: padding, if nothing else is masked and no grad is needed."""
        if not self.use_nested_tensor or self.layers[0].training or src.dim() != 3 or mask is not None:
            return None
        if padding is None or cygrad.is_autocast_enabled(src.device.type):
            return None
        if cygrad.is_grad_enabled() and any(t.requires_grad for t in (src, *self.layers[0].parameters())):
            return None
        hidden = padding != 0
        if self.mask_check and bool((hidden[:, :-1] & ~hidden[:, 1:]).any()):
            return None
        return hidden.unsqueeze(2)


def _can_be_nested(layer: Any) -> bool:
    """Whether PyTorch would use nested tensors for such layers."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first:
        return False
    attention: Any = layer.self_attn
    return (
        attention.batch_first
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and attention.num_heads % 2 == 0
        and layer.activation_relu_or_gelu != 0
        and layer.norm1.eps == layer.norm2.eps
    )


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """Return the sequence length of a batch or of a single sequence."""
    return src.shape[1] if src.dim() == 3 and batch_first else src.shape[0]


class TransformerDecoder(Module):
    """A stack of `num_layers` copies of a decoder layer, then `norm` if given.

    >>> import cygrad
    >>> layer = cygrad.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> cygrad.nn.TransformerDecoder(layer, 2)(cygrad.randn(4, 3, 8), cygrad.randn(4, 5, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt`, attending to itself and to `memory`.

        The result has the shape of `tgt`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> nn.TransformerDecoder(layer, num_layers=2)(cygrad.ones(1, 3, 8), cygrad.ones(1, 4, 8)).shape
        torch.Size([1, 3, 8])
        """
        hint = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, self.layers[0].self_attn.batch_first))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=hint,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of `src`, and a decoder of `tgt` that attends to the encoder's output.

    Shapes: src (S, N, d_model), tgt and result (T, N, d_model), with `batch_first` N first, or all without N. Masks are
    as in `MultiheadAttention`. `custom_encoder` and `custom_decoder` replace the two stacks. All matrices are
    initialized Xavier-uniform. Raises RuntimeError if the sizes of `src` and `tgt` do not match.

    >>> import cygrad
    >>> model = cygrad.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(cygrad.randn(4, 5, 8), cygrad.randn(4, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kwargs = {"device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def stacked(kind: Any, layer: Any, count: int) -> Any:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kwargs)
            return kind(layer(*sizes, **kwargs), count, norm)

        if custom_encoder is None:
            custom_encoder = stacked(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        if custom_decoder is None:
            custom_decoder = stacked(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt`, given `src`.

        The shapes are (S, N, d_model) and (T, N, d_model), with N first if `batch_first`; the result has that of `tgt`.
        Raises RuntimeError for different numbers of samples or sizes.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, batch_first=True)
        >>> m(cygrad.ones(1, 4, 8), cygrad.ones(1, 3, 8)).shape
        torch.Size([1, 3, 8])
        """
        if src.dim() == 3:
            batch_dim = 0 if self.batch_first else 1
            if src.size(batch_dim) != tgt.size(batch_dim):
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        result: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return a mask (sz, sz) that hides future positions: -inf above the diagonal, else 0.

        >>> import cygrad
        >>> cygrad.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
