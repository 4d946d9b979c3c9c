"""Causal masks for attention between sequences of different lengths."""

from __future__ import annotations

from enum import IntEnum

import cygrad
from cygrad import Tensor
from cygrad.utils.warning import warn

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the mask that its diagonal passes through: (0, 0), or that of the last query and key.

    >>> import cygrad
    >>> from cygrad.nn.attention.bias import CausalVariant
    >>> list(CausalVariant)
    [<CausalVariant.UPPER_LEFT: 1>, <CausalVariant.LOWER_RIGHT: 2>]
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask (L, S) for `attn_mask`, True where one of L queries may attend to one of S keys.

    Raises AssertionError unless `variant` is a `CausalVariant`.

    >>> from cygrad.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        diagonal = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        mask = cygrad.ones(seq_len_q, seq_len_kv, dtype=cygrad.bool).tril(diagonal)
        made: CausalBias = mask.as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!\n"
                "(In cygrad, queries that may attend to nothing get zeros.)"
            )

    def __repr__(self) -> str:
        return repr(self.as_subclass(Tensor))


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask of `is_causal=True`: query i may attend to keys 0 to i. Size (L, S).

    >>> import cygrad.nn.attention.bias
    >>> cygrad.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the mask where the last query may attend to all keys, the one before to all but the last, ... Size (L, S).

    >>> import cygrad.nn.attention.bias
    >>> cygrad.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
