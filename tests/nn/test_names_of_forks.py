"""Private helpers of PyTorch's layers that copies of these layers in libraries import."""

import pytest

import cygrad as torch
import cygrad.nn.functional as F
from cygrad.nn.modules import conv, transformer, utils


def test_paddings_and_sizes():
    assert conv._pair(3) == (3, 3) and conv._single(1) == (1,) and conv._triple((1, 2, 3)) == (1, 2, 3)
    assert conv._reverse_repeat_tuple is utils._reverse_repeat_tuple
    assert utils._reverse_repeat_tuple((1, 2, 3), 2) == (3, 3, 2, 2, 1, 1)
    assert utils._list_with_default([None, 3], [8, 7, 5]) == [7, 3]
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        utils._list_with_default([None, 2], [3, 4])


def test_masks_of_transformers():
    mask = transformer._generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0.0, -torch.inf, -torch.inf], [0.0, 0.0, -torch.inf], [0.0, 0.0, 0.0]]
    assert transformer._detect_is_causal_mask(mask) and transformer._detect_is_causal_mask(mask, size=3)
    assert not transformer._detect_is_causal_mask(mask, size=4) and not transformer._detect_is_causal_mask(mask * 0)
    assert transformer._detect_is_causal_mask(None, True) and not transformer._detect_is_causal_mask(mask, False)
    assert (
        transformer._get_seq_len(torch.ones(2, 5, 4), True) == 5
        and transformer._get_seq_len(torch.ones(5, 4), True) == 5
    )
    assert transformer._get_seq_len(torch.ones(2, 5, 4), False) == 2


def test_parts_of_attention():
    q, k, v = (torch.randn(4, 2, 6) for _ in range(3))
    w, b = torch.randn(18, 6), torch.randn(18)
    for bias in (b, None):
        found = F._in_projection_packed(q, k, v, w, bias)
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        for part, x, weight, one in zip(found, (q, k, v), w.chunk(3), biases, strict=True):
            torch.testing.assert_close(part, F.linear(x, weight, one))
        for part, other in zip(found, F._in_projection(q, k, v, *w.chunk(3), *biases), strict=True):
            assert part.equal(other)
    assert F._mha_shape_check(q, k, v, None, None, 2) is True
    assert F._mha_shape_check(q[0], k[0], v[0], None, None, 2) is False
    with pytest.raises(AssertionError, match="query should be unbatched 2D or batched 3D"):
        F._mha_shape_check(q[None], k, v, None, None, 2)
    assert F._none_or_dtype(None) is None and F._none_or_dtype(q) is torch.float32
    with pytest.raises(RuntimeError, match="must be None or torch.Tensor"):
        F._none_or_dtype(3)
    assert F._Reduction.get_enum("sum") == 2
