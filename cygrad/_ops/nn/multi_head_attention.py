"""Attention: averages of values, weighted by how well their keys match a query."""

import math

import numpy as np

from cygrad._core.errors import messages
from cygrad._core.errors.sites import warn
from cygrad._core.graph.internals import memory_of, tensor_of
from cygrad._core.graph.opdef import ELSEWHERE, facts, publish
from cygrad._core.graph.tensor import Tensor
from cygrad._ops.base.arguments import require
from cygrad._ops.base.arithmetic import add
from cygrad._ops.base.copying import contiguous
from cygrad._ops.base.creation import zeros_like
from cygrad._ops.base.products import linear, matmul
from cygrad._ops.base.reductions import mean
from cygrad._ops.base.slicing import cat, chunk
from cygrad._ops.base.views import permute, reshape, squeeze, transpose, unsqueeze, view
from cygrad._ops.indexing.masked_fill import masked_fill
from cygrad._ops.nn.scaled_dot_product import attended, hiding, later, scores
from cygrad._ops.nn.softmax import softmax
from cygrad._ops.random.dropout import dropout
from cygrad._ops.shape.repeating import repeat, repeat_interleave

# -- scaled dot product attention --


@facts(autocast="lower", autocast_gpu="lower")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """`softmax(query @ key^T * scale + attn_mask) @ value` over the last two dimensions; the others broadcast.

    Shapes: query (..., L, E), key (..., S, E), value (..., S, V), result (..., L, V). A boolean `attn_mask` is True
    where a query may attend to a key; a floating-point one is added to the scores. `is_causal` hides keys that come
    after the query. Both can be combined (PyTorch refuses some of these calls): then only keys allowed by both are
    visible. The result for a query that may attend to no key is 0. `scale` defaults to 1 / sqrt(E). With `enable_gqa`,
    each key and value head serves several heads (dimension -3) of the query. `dropout_p` is the fraction of weights
    that are dropped. Raises RuntimeError for invalid arguments.

    >>> import cygrad
    >>> query, key, value = cygrad.zeros(1, 2), cygrad.ones(3, 2), cygrad.tensor([[1.0], [2.0], [6.0]])
    >>> cygrad.nn.functional.scaled_dot_product_attention(query, key, value)
    tensor([[3.]])
    """
    _check_attention(query, key, value, attn_mask)
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa:
        key, value = (repeat_interleave(t, query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    if attn_mask is not None and attn_mask.dtype.name == "bool":
        attn_mask = hiding(~attn_mask, query)
    if attn_mask is not None and is_causal:
        attn_mask, is_causal = add(attn_mask, hiding(later(query.shape[-2], key.shape[-2], query), query)), False
    return attended(query, key, value, attn_mask, scale, is_causal, dropout_p)


def _check_attention(query, key, value, attn_mask):
    name = "scaled_dot_product_attention"
    for position, (t, word) in enumerate(((query, "query"), (key, "key"), (value, "value")), 1):
        require(t, name, word, position)
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {messages.c_word(query)} "
            f"key.dtype: {messages.c_word(key)} and value.dtype: {messages.c_word(value)} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is None:
        return
    kind = require(attn_mask, name, "attn_mask", 4).dtype
    if kind.name not in ("bool", "float32") and kind is not query.dtype:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{messages.c_word(attn_mask)} and  query.dtype: {messages.c_word(query)} instead."
        )


# -- multi-head attention --


@facts(in_python=True)
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Multi-head attention with linear projections. Return (result, weights), or (result, None) without `need_weights`.

    With Q, K, V the projections of query, key and value, split into heads of width d = E / heads, head h is
    `softmax(Q_h @ K_h^T / sqrt(d) + mask) @ V_h`; the result is the projection of all heads, joined.

    Shapes: query (L, N, E), key and value (S, N, E), result (L, N, E), weights (N, L, S), or (N, heads, L, S) without
    `average_attn_weights`; unbatched arguments and results all lack N. `in_proj_weight` (3 E, E) stacks the projections
    of query, key and value; with `use_separate_proj_weight` they are passed separately. Masks are True, or -inf, where
    *not* to attend: `key_padding_mask` has shape (N, S), `attn_mask` (L, S) or (N * heads, L, S). `bias_k` and `bias_v`
    append a learned key and value, `add_zero_attn` a key and value of zeros. Raises AssertionError or RuntimeError for
    invalid arguments.

    >>> import cygrad
    >>> x, eye = cygrad.ones(3, 2), cygrad.eye(2)
    >>> stacked = cygrad.cat([eye, eye, eye])
    >>> result, weights = cygrad.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, stacked, None, None, None, False, 0.0, eye, None)
    >>> weights[0]
    tensor([0.3333, 0.3333, 0.3333])
    """
    is_batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, is_causal and attn_mask is None)
    other = None if attn_mask is None else attn_mask.dtype
    padding = _canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
    mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    if not is_batched:
        batches = {id(t): unsqueeze(t, 1) for t in (query, key, value)}  # keep shared tensors shared
        query, key, value = (batches[id(t)] for t in (query, key, value))
        padding = None if padding is None else unsqueeze(padding, 0)
    tensors = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)
    length, batch, width = tensors[0].shape
    mask = _checked_mask(mask, length, tensors[1].shape[0], batch, num_heads)
    if is_causal and padding is None and not need_weights:  # trust the hint, as PyTorch does
        mask = hiding(later(length, tensors[1].shape[0], query), query)
    statics = {"static_k": static_k, "static_v": static_v}
    tensors = _with_learnt(tensors, bias_k, bias_v, statics)
    # (N, heads, L, width of a head)
    q, k, v = (permute(view(t, (len(t), batch, num_heads, width // num_heads)), (1, 2, 0, 3)) for t in tensors)
    k, v = (_static_or(t, name, statics[name]) for t, name in ((k, "static_k"), (v, "static_v")))
    if add_zero_attn:
        k, v = (cat([t, _zeros(t, (batch, num_heads, 1, t.shape[3]))], 2) for t in (k, v))
    appended = (bias_k is not None) + bool(add_zero_attn)
    mask = _joined(_widened(mask, appended), _widened(padding, appended), batch, k.shape[2])
    dropped = dropout_p if training else 0.0
    if need_weights:
        weights = softmax(scores(q, k, mask), -1)
        weights = dropout(weights, dropped) if dropped else weights
        seen = matmul(weights, v)
    else:
        weights, seen = None, attended(q, k, v, mask, dropout_p=dropped)
    if _is_swapped(query):  # so are the gradients
        result = linear(reshape(permute(seen, (0, 2, 1, 3)), (batch, length, width)), out_proj_weight, out_proj_bias)
        result = contiguous(transpose(result, 0, 1))
    else:
        result = reshape(permute(seen, (2, 0, 1, 3)), (length, batch, width))
        result = linear(result, out_proj_weight, out_proj_bias)
    if need_weights and average_attn_weights:
        weights = mean(weights, 1)
    if is_batched:
        return result, weights
    return squeeze(result, 1), weights if weights is None else squeeze(weights, 0)


def _check_sizes(query, key, value, embed_dim, num_heads, lacks_mask):
    width = query.shape[-1]
    if lacks_mask:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if width != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {width}")
    if width // num_heads * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")


def _projected(query, key, value, in_proj_weight, in_proj_bias, separate):
    """Project query, key and value; if all three are the same tensor, with a single linear layer."""
    if separate is not None:
        if key.shape[:-1] != value.shape[:-1]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:-1]} do not match value's {value.shape[:-1]}"
            )
        for matrix, name in zip(separate, "qkv"):
            if matrix is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        if query is key is value:
            if not _is_swapped(query):
                return chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1)
            parts = chunk(linear(transpose(query, 0, 1), in_proj_weight, in_proj_bias), 3, -1)
            return [transpose(part, 0, 1) for part in parts]
        separate = chunk(in_proj_weight, 3)
    biases = (None,) * 3 if in_proj_bias is None else chunk(in_proj_bias, 3)
    return [_as_it_lies(t, matrix, b) for t, matrix, b in zip((query, key, value), separate, biases)]


def _is_swapped(t):
    """Whether a tensor (L, N, E) is contiguous as (N, L, E), as with `batch_first`: a linear layer would copy it."""
    length, batch, width = t.shape
    return length > 1 and batch > 1 and t.stride() == (width, length * width, 1)


def _as_it_lies(t, weight, bias):
    """Project a tensor (L, N, E)."""
    return transpose(linear(transpose(t, 0, 1), weight, bias), 0, 1) if _is_swapped(t) else linear(t, weight, bias)


def _with_learnt(tensors, bias_k, bias_v, statics):
    """Append the learned key and value, if given."""
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is None:
        return tensors
    for name, word in (("static_k", "key"), ("static_v", "value")):
        if statics[name] is not None:
            raise AssertionError(f"bias cannot be added to static {word}.")
    q, k, v = tensors
    return [q, *(cat([t, repeat(added, 1, t.shape[1], 1)]) for t, added in ((k, bias_k), (v, bias_v)))]


def _static_or(projected, name, static):
    """Return the keys or values of all heads: those projected, or those given as (N * heads, S, width of a head)."""
    if static is None:
        return projected
    batch, heads, _, width = projected.shape
    for d, wanted in ((0, batch * heads), (2, width)):
        if static.shape[d] != wanted:
            raise AssertionError(f"expecting {name}.size({d}) of {wanted}, but got {static.shape[d]}")
    return view(static, (batch, heads, *static.shape[1:]))


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Return whether the arguments are batched. Raises AssertionError for the wrong number of dimensions."""
    ranks = {3: ("batched (3-D)", 2, (2, 3)), 2: ("unbatched (2-D)", 1, (2, 3))}
    ndim = require(query, "multi_head_attention_forward", "query").ndim
    if ndim not in ranks:
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    word, of_padding, of_mask = ranks[ndim]
    if not key.ndim == value.ndim == ndim:
        raise AssertionError(
            f"For {word} `query`, expected `key` and `value` to be {ndim}-D but found {key.ndim}-D and {value.ndim}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != of_padding:
        raise AssertionError(
            f"For {word} `query`, expected `key_padding_mask` to be `None` or {of_padding}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in of_mask:
        raise AssertionError(
            f"For {word} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor "
            "instead"
        )
    if ndim == 2 and attn_mask is not None and attn_mask.ndim == 3:
        wanted = (num_heads, query.shape[0], key.shape[0])
        if attn_mask.shape != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return ndim == 3


def _check_key_padding_mask(key_padding_mask, src_len, bsz):
    """Raise AssertionError unless the mask has a row for each sample and a column for each key."""
    for d, wanted in enumerate((bsz, src_len)):
        found = key_padding_mask.shape[d]
        if found != wanted:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {wanted}, but got {found}")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """Convert a mask (or None) to the additive form for scores of `target_type`: -inf where a boolean mask is True.

    Warns if the other mask (dtype `other_type`, None if absent) has a different dtype. Raises AssertionError for
    integers.
    """
    if mask is None:
        return None
    if not (mask.dtype.is_floating_point or mask.dtype.name == "bool"):
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.dtype.is_floating_point:
        return mask
    return masked_fill(zeros_like(mask, dtype=target_type), mask, -math.inf)


def _none_or_dtype(input):
    """Return the dtype of a mask, or None for none. Raises RuntimeError for anything else."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _in_projection_packed(q, k, v, w, b=None):
    """Project query, key and value by the three parts of one weight (3E, E), and of one bias."""
    return _in_projection(q, k, v, *chunk(w, 3), *((None,) * 3 if b is None else chunk(b, 3)))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Project query, key and value, each by a weight and a bias of its own."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _checked_mask(mask, length, keys, batch, heads):
    """Check the shape of the mask, and split the first dimension of a 3-D mask into batch and heads."""
    if mask is None:
        return None
    wanted = (length, keys) if mask.ndim == 2 else (batch * heads, length, keys)
    if mask.shape != wanted:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask if mask.ndim == 2 else view(mask, (batch, heads, length, keys))


def _widened(mask, appended):
    """Append zeros to the mask for the appended keys."""
    if mask is None or not appended:
        return mask
    return cat([mask, _zeros(mask, (*mask.shape[:-1], appended))], -1)


def _zeros(like, shape):
    """Return zeros with the dtype and on the device of `like`."""
    return tensor_of(np.zeros(shape, memory_of(like).dtype, like=memory_of(like)))


def _joined(mask, padding, batch, keys):
    """Combine both masks, either of which may be None, into one."""
    if padding is None:
        return mask
    for d, length in enumerate((batch, keys)):
        if padding.shape[d] != length:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {length}, but got {padding.shape[d]}")
    padding = reshape(padding, (batch, 1, 1, keys))
    return padding if mask is None else add(mask, padding)


composite = dict.fromkeys(("scaled_dot_product_attention", "multi_head_attention_forward"), ELSEWHERE)
functions = publish(globals())
