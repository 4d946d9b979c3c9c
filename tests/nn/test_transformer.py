"""Attention and transformers against NumPy formulas."""

import warnings

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn
from cygrad.nn import functional as F
from helpers import fails


def softmax(a):
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention_of(layer, query, memory, hidden=None):
    """Return (result, weights of each head) of `layer` for a batch (N, L, E)."""
    packed, bias = layer.in_proj_weight.detach().numpy(), layer.in_proj_bias.detach().numpy()
    q, k, v = (x @ w.T + b for x, w, b in zip((query, memory, memory), np.split(packed, 3), np.split(bias, 3)))
    results, weights = [], []
    for head in range(layer.num_heads):
        part = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        scores = q[..., part] @ k[..., part].swapaxes(1, 2) / np.sqrt(layer.head_dim)
        weights.append(softmax(scores if hidden is None else np.where(hidden, -np.inf, scores)))
        results.append(weights[-1] @ v[..., part])
    result = np.concatenate(results, -1) @ layer.out_proj.weight.detach().numpy().T
    return result + layer.out_proj.bias.detach().numpy(), np.stack(weights, 1)


def made(kind, *args, **kwargs):
    layer = getattr(nn, kind)(*args, dtype=torch.float64, **kwargs)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer.eval()


@pytest.mark.parametrize("is_masked", [False, True])
def test_attention_is_its_formula(is_masked):
    layer = made("MultiheadAttention", 6, 2, batch_first=True)
    query, memory = np.random.default_rng(0).standard_normal((2, 3, 4, 6))[:, :2]
    hidden = np.triu(np.ones((2, 4, 4), bool), 1)[:1] if is_masked else None
    expected, weights = attention_of(layer, query, memory, hidden)
    mask = torch.from_numpy(hidden[0]) if is_masked else None
    result, found = layer(*map(torch.from_numpy, (query, memory, memory)), attn_mask=mask, average_attn_weights=False)
    np.testing.assert_allclose(result.detach().numpy(), expected, 1e-9, 1e-12)
    np.testing.assert_allclose(found.detach().numpy(), weights, 1e-9, 1e-12)


def test_all_ways_to_mask_agree():
    layer = made("MultiheadAttention", 6, 2, batch_first=True)
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    causal = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    masks = [causal, causal == -torch.inf, causal.expand(4, 4, 4)]
    results = [layer(x, x, x, attn_mask=mask, need_weights=need)[0] for mask in masks for need in (False, True)]
    results.append(layer(x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0])
    q, k, v = (
        t.unflatten(2, (2, 3)).transpose(1, 2)
        for t in F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    )
    direct = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    results.append(layer.out_proj(direct.transpose(1, 2).flatten(2)))
    assert all(torch.allclose(result, results[0]) for result in results)


@pytest.mark.parametrize("length", [4, 150])  # by separate ops, and blocked
@pytest.mark.parametrize("is_boolean", [False, True])
def test_a_mask_and_an_order_both_hide(length, is_boolean):
    q = torch.randn(2, length, 6, dtype=torch.float64)
    mask = torch.randn(length, length, dtype=torch.float64)
    mask = mask > 0 if is_boolean else mask
    both = torch.ones(length, length).tril() > 0
    both = both & mask if is_boolean else mask.masked_fill(~both, -torch.inf)
    found = F.scaled_dot_product_attention(q, q, q, mask, is_causal=True)
    assert torch.allclose(found, F.scaled_dot_product_attention(q, q, q, both))


def test_padding_does_not_matter():
    layer = made("TransformerEncoderLayer", 6, 2, 8, batch_first=True)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    found = layer(x, src_key_padding_mask=padding)
    assert torch.allclose(found[1, :3], layer(x[1, :3]))
    assert torch.allclose(found[0], layer(x[0]))


def test_a_query_that_may_attend_to_nothing():
    layer = made("MultiheadAttention", 6, 2)
    x = torch.randn(3, 1, 6, dtype=torch.float64)
    hidden = torch.ones(1, 3, dtype=torch.bool)
    assert layer(x, x, x, key_padding_mask=hidden)[0].isnan().all()
    result = layer(x, x, x, key_padding_mask=hidden, need_weights=False)[0]
    assert torch.allclose(result, layer.out_proj.bias.expand(3, 1, 6))


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_is_its_formula(norm_first):
    layer = made("TransformerEncoderLayer", 6, 2, 8, batch_first=True, norm_first=norm_first)
    x = torch.randn(2, 4, 6, dtype=torch.float64)

    def attend(y):
        return torch.from_numpy(attention_of(layer.self_attn, y.detach().numpy(), y.detach().numpy())[0])

    def network(y):
        return layer.linear2(layer.linear1(y).relu())

    if norm_first:
        y = x + attend(layer.norm1(x))
        expected = y + network(layer.norm2(y))
    else:
        y = layer.norm1(x + attend(x))
        expected = layer.norm2(y + network(y))
    assert torch.allclose(layer(x), expected)


def test_decoder_looks_at_the_past_alone_and_at_its_memory():
    model = made("Transformer", 6, 2, 2, 2, 8, batch_first=True)
    src, tgt = (torch.randn(2, 4, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mask = model.generate_square_subsequent_mask(4, dtype=torch.float64)
    model(src, tgt, tgt_mask=mask, tgt_is_causal=True)[:, 1].sum().backward()
    assert (tgt.grad[:, 2:] == 0).all() and (tgt.grad[:, :2] != 0).any() and (src.grad != 0).all()
    with pytest.raises(AssertionError):
        assert torch.equal(model(src, tgt), model(src, tgt, tgt_mask=mask))


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
    assert len({id(p) for p in stack.parameters()}) == 26
    assert all(torch.equal(a, b) for a, b in zip(stack.layers[0].parameters(), stack.layers[1].parameters()))


def test_dropout_in_training():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5)
    x = torch.ones(3, 1, 4)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_errors():
    with fails(ValueError, "embed_dim and num_heads must be greater than 0, got embed_dim=8 and num_heads=0 instead"):
        nn.MultiheadAttention(8, 0)
    with fails(RuntimeError, "the batch number of src and tgt must be equal"):
        nn.Transformer(8, 2, 1, 1, 8)(torch.ones(3, 2, 8), torch.ones(3, 1, 8))


def test_masks_of_different_types_warn():
    x, hidden = torch.ones(3, 1, 8), torch.zeros(1, 3, dtype=torch.bool)
    layer, encoder = nn.MultiheadAttention(8, 2), nn.TransformerEncoderLayer(8, 2)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask is deprecated"):
        layer(x, x, x, key_padding_mask=hidden, attn_mask=torch.zeros(3, 3))
    with pytest.warns(UserWarning, match="mismatched src_key_padding_mask and src_mask is deprecated"):
        encoder(x, src_mask=torch.zeros(3, 3), src_key_padding_mask=hidden)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder(x, src_mask=torch.zeros(3, 3, dtype=torch.bool), src_key_padding_mask=hidden)
