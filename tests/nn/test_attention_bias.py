"""Attention masks between sequences of different lengths, and the choice of backends, which has no effect."""

import pytest

import cygrad as torch
from cygrad.nn.attention import SDPBackend, sdpa_kernel
from cygrad.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left
from cygrad.nn.functional import scaled_dot_product_attention


def tensors(queries, keys):
    return torch.randn(1, 2, queries, 4), torch.randn(1, 2, keys, 4), torch.randn(1, 2, keys, 4)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (4, 4)])
def test_upper_left_is_causal(sizes):
    q, k, v = tensors(*sizes)
    found = scaled_dot_product_attention(q, k, v, causal_upper_left(*sizes))
    assert type(found) is torch.Tensor
    assert torch.allclose(found, scaled_dot_product_attention(q, k, v, is_causal=True))


def test_lower_right_lets_the_last_query_see_all():
    q, k, v = tensors(2, 5)
    found = scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(2, 5))
    assert torch.allclose(found[:, :, 1], scaled_dot_product_attention(q, k, v)[:, :, 1])
    assert torch.allclose(found[:, :, 0], scaled_dot_product_attention(q, k[:, :, :4], v[:, :, :4])[:, :, 0])


def test_what_a_bias_tells():
    bias = causal_lower_right(2, 3)
    assert isinstance(bias, CausalBias) and isinstance(bias, torch.Tensor)
    assert (bias.variant, bias.seq_len_q, bias.seq_len_kv) == (CausalVariant.LOWER_RIGHT, 2, 3)
    assert repr(bias) == "tensor([[ True,  True, False],\n        [ True,  True,  True]])"
    with pytest.warns(UserWarning, match="^Lower right causal bias will produce NaNs"):
        bias = causal_lower_right(4, 2)
    assert not scaled_dot_product_attention(*tensors(4, 2), bias)[:, :, :2].any()


def test_wrong_arguments():
    for make in (causal_lower_right, causal_upper_left):
        with pytest.raises(AssertionError, match=f"^{make.__name__} only supports 2D tensors"):
            make(1, 2, 3)
    with pytest.raises(AssertionError, match="^variant must be a CausalVariant, got int"):
        CausalBias(1, 2, 3)
    with pytest.raises(AssertionError, match="^Backend must be an instance of SDPBackend or a list .* got int"):
        with sdpa_kernel(3):
            pass


@pytest.mark.parametrize("backends", [SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]])
def test_backends_agree(backends):
    q, k, v = tensors(3, 3)
    with sdpa_kernel(backends, set_priority=True):
        found = scaled_dot_product_attention(q, k, v)
    assert torch.equal(found, scaled_dot_product_attention(q, k, v))
