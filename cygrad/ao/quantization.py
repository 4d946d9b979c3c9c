"""What models written so that they can be quantized are made of. Quantizing one raises RuntimeError."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from cygrad import Tensor
from cygrad.nn import Module

__all__ = [
    "DeQuantStub", "QConfig", "QuantStub", "QuantWrapper", "convert", "default_qconfig", "get_default_qat_qconfig",
    "get_default_qconfig", "prepare", "prepare_qat", "quantize", "quantize_dynamic",
]  # fmt: skip

QConfig = namedtuple("QConfig", ("activation", "weight"))
QConfig.__doc__ = "How the results and the weights of a layer are observed: a pair of functions that make modules."
default_qconfig = QConfig(None, None)


class QuantStub(Module):
    """Marks where numbers become quantized: returns its argument.

    >>> import cygrad
    >>> cygrad.ao.quantization.QuantStub()(cygrad.ones(1))
    tensor([1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Any:
        """Return x."""
        return x


class DeQuantStub(QuantStub):
    """Marks where numbers become floating-point numbers: returns its argument."""


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(qconfig), DeQuantStub(qconfig), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """Call the module."""
        return self.dequant(self.module(self.quant(X)))


def get_default_qconfig(backend: str = "x86", version: int = 0) -> Any:
    """Return the pair for a back end: one without functions, as nothing is observed."""
    return default_qconfig


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> Any:
    """Return the pair for training with quantization in mind: one without functions, as nothing is observed."""
    return default_qconfig


def _quantizes(name):
    def quantizer(*args, **kwargs):
        """Raises RuntimeError: there are no quantized tensors."""
        raise RuntimeError(
            f"torch.ao.quantization.{name}: cygrad has no quantized tensors\n"
            "  call model.half() or model.bfloat16() for weights of half the size"
        )

    quantizer.__name__ = quantizer.__qualname__ = name
    return quantizer


convert, prepare, prepare_qat = _quantizes("convert"), _quantizes("prepare"), _quantizes("prepare_qat")
quantize, quantize_dynamic = _quantizes("quantize"), _quantizes("quantize_dynamic")
