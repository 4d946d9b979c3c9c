"""`autocast`, in the module where PyTorch defines it."""

from cygrad.cpu.amp import autocast

__all__ = ["autocast"]
