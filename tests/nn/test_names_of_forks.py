"""Private helpers of PyTorch's layers that copies of these layers in libraries import."""

import pytest

import cygrad as torch
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
