"""`vmap` by the module of PyTorch that defines it."""

from cygrad.func import vmap

__all__ = ["vmap"]
