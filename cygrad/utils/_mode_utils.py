"""Blocks without `__torch_dispatch__`, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cygrad._core.registry import dispatch

__all__ = ["all_same_mode", "no_dispatch"]


@contextmanager
def no_dispatch() -> Iterator[None]:
    """In the block, neither modes nor classes with `__torch_dispatch__` see ops."""
    with dispatch.without_classes():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are equal to the first one."""
    return all(mode == modes[0] for mode in modes)
