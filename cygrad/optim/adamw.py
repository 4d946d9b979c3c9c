"""AdamW, in PyTorch's place; see adam.py."""

from cygrad.optim.adam import AdamW

__all__ = ["AdamW"]
