"""`GradScaler`, in the module where PyTorch defines it."""

from cygrad.cpu.amp import GradScaler

__all__ = ["GradScaler"]
