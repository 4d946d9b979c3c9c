"""`autocast` and its decorators, in the module where PyTorch defines them."""

from cygrad.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
