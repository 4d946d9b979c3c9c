"""Backends of `nn.functional.scaled_dot_product_attention` for compatibility, and masks for it (`bias`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, IntEnum
from importlib import import_module
from typing import Any

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """PyTorch's attention backends.

    They are named in `sdpa_kernel`.

    >>> import cygrad
    >>> from cygrad.nn.attention import SDPBackend, sdpa_kernel
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     x = cygrad.ones(1, 2, 4)
    ...     print(cygrad.nn.functional.scaled_dot_product_attention(x, x, x).shape)
    torch.Size([1, 2, 4])
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = Enum.__str__  # the name, not the number


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """Select attention backends within this context; cygrad has a single implementation, so this has no effect.

    Raises AssertionError unless `backends` is a backend or a list.

    >>> import cygrad
    >>> from cygrad.nn.attention import SDPBackend, sdpa_kernel
    >>> query = cygrad.ones(1, 2)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     cygrad.nn.functional.scaled_dot_product_attention(query, query, query)
    tensor([[1., 1.]])
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    yield {}


def __getattr__(name: str) -> Any:
    if name not in ("bias", "flex_attention"):
        raise AttributeError(f"module 'cygrad.nn.attention' has no attribute {name!r}", name=name)
    return import_module(f"cygrad.nn.attention.{name}")  # rare, so on first use
