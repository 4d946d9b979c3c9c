"""Modules of which the package imports none before a program asks for them."""

import cygrad as torch
from helpers import fails


def test_attention():
    assert torch.nn.attention.flex_attention.__name__ == "cygrad.nn.attention.flex_attention"
    assert torch.nn.attention.bias.causal_lower_right(2, 3).shape == (2, 3)
    with fails(AttributeError, "module 'cygrad.nn.attention' has no attribute 'foo'"):
        torch.nn.attention.foo  # noqa: B018
