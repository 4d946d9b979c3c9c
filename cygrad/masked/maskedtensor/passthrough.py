"""Ops that move elements: they do to the mask what they do to the data."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.masked.maskedtensor.core import data_of, mask_of, masked
from cygrad.ops import aten

__all__: list[str] = []

NAMES = """
    select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat
    unsqueeze unfold unfold_backward im2col col2im stack
""".split()
PASSTHROUGH_FNS = [packet for name in NAMES if (packet := getattr(aten, name, None)) is not None]


def passed_through(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer an op."""
    return _together(func(*map(data_of, args), **kwargs), func(*map(mask_of, args), **kwargs))


def _together(data: Any, mask: Any) -> Any:
    if isinstance(data, Tensor):
        return masked(data.clone(), mask.clone())
    return type(data)(map(_together, data, mask)) if isinstance(data, (list, tuple)) else NotImplemented


def _is_pass_through_fn(fn: Any) -> bool:
    """Whether this is one of these ops."""
    return fn in PASSTHROUGH_FNS


def _apply_pass_through_fn(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Run one of these ops; NotImplemented for others."""
    return fn(*args, **kwargs) if _is_pass_through_fn(fn) else NotImplemented
