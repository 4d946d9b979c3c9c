"""`GradScaler`, in the module where PyTorch defines it."""

from cygrad.amp.grad_scaler import OptState
from cygrad.cuda.amp import GradScaler

__all__ = ["GradScaler", "OptState"]
