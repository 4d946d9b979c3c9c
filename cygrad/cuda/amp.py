"""Deprecated aliases of `cygrad.amp` for GPUs."""

import sys

import cygrad
from cygrad import amp
from cygrad._core.errors.sites import warn
from cygrad.amp import custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`cygrad.autocast("cuda", ...)`; without a GPU it warns and has no effect."""

    def __init__(self, enabled=True, dtype=cygrad.float16, cache_enabled=True):
        _warn("autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`cygrad.amp.GradScaler("cuda", ...)`; without a GPU it warns and has no effect."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _warn("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def _warn(name):
    warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
    )


# PyTorch has a module for each.
sys.modules.update({f"{__name__}.{_name}": sys.modules[__name__] for _name in ("autocast_mode", "grad_scaler")})
