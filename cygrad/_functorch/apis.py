"""`vmap` and gradients by PyTorch's private name."""

from cygrad.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
