"""Automatic mixed precision: products in bfloat16, what needs the precision in float32, and scaled losses."""

from cygrad.amp import autocast_mode, grad_scaler
from cygrad.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available, op_lists
from cygrad.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
    "op_lists",
]
