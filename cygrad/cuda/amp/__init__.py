"""Deprecated aliases of `cygrad.amp` for GPUs."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import amp
from cygrad._core.errors.sites import warn
from cygrad.amp import custom_bwd, custom_fwd
from cygrad.cuda.amp.common import amp_definitely_not_available as amp_definitely_not_available

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`cygrad.autocast("cuda", ...)`; without a GPU it warns and has no effect.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # PyTorch has deprecated the name
    ...     with cygrad.cuda.amp.autocast():
    ...         x = cygrad.ones(2, 2) @ cygrad.ones(2, 2)  # on the CPU nothing changes
    >>> x.dtype
    torch.float32
    """

    def __init__(self, enabled: bool = True, dtype: Any = cygrad.float16, cache_enabled: bool = True) -> None:
        _warn("autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`cygrad.amp.GradScaler("cuda", ...)`; without a GPU it warns and has no effect.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # PyTorch has deprecated the name
    ...     scaler = cygrad.cuda.amp.GradScaler()
    >>> scaler.is_enabled() == cygrad.cuda.is_available()
    True
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _warn("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def _warn(name):
    warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
    )
