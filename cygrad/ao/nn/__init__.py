"""Layers on quantized tensors, as names: cygrad has none."""

from cygrad.ao.nn import quantized

__all__ = ["quantized"]
