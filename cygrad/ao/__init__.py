"""The names of `torch.ao`, for models written so that they can be quantized. They run in floating point."""

from cygrad.ao import nn, quantization

__all__ = ["nn", "quantization"]
