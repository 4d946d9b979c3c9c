"""Automatic mixed precision: matrix products in bfloat16, precision-critical ops in float32, and loss scaling."""

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
