"""Deprecated aliases of `cygrad.amp` for the CPU."""

import cygrad
from cygrad import amp
from cygrad._core.errors.sites import warn

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`cygrad.autocast("cpu", ...)`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # PyTorch has deprecated the name
    ...     context = cygrad.cpu.amp.autocast()
    >>> with context:
    ...     (cygrad.ones(2, 2) @ cygrad.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        _warn("autocast")
        super().__init__("cpu", cygrad.bfloat16 if dtype is None else dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`cygrad.amp.GradScaler("cpu", ...)`.

    >>> import cygrad
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # PyTorch has deprecated the name
    ...     scaler = cygrad.cpu.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale(cygrad.ones(1))
    tensor([8.])
    """

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _warn("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def _warn(name):
    warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
    )
