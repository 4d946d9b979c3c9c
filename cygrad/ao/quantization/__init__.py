"""What models written so that they can be quantized are made of. Quantizing one raises RuntimeError."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from cygrad import Tensor, tensor, uint8
from cygrad.ao.quantization.observer import Factory, ObserverBase
from cygrad.ao.quantization.qconfig import (
    QConfig,
    default_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from cygrad.nn import Module

__all__ = [
    "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "QuantWrapper", "convert",
    "default_qconfig", "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat", "quantize",
    "quantize_dynamic",
]  # fmt: skip


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
    """Marks where numbers become floating-point numbers: returns its argument.

    >>> import cygrad
    >>> cygrad.ao.quantization.DeQuantStub()(cygrad.ones(2))
    tensor([1., 1.])
    """


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`.

    >>> import cygrad
    >>> model = cygrad.ao.quantization.QuantWrapper(cygrad.nn.ReLU())
    >>> model(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(qconfig), DeQuantStub(qconfig), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """Call the module."""
        return self.dequant(self.module(self.quant(X)))


class FakeQuantizeBase(ABC, Module):
    """Base class of modules that round as quantizing would; the buffers `..._enabled` switch its parts on and off.

    >>> import cygrad
    >>> from cygrad.ao.quantization import FakeQuantizeBase
    >>> class RoundToHalves(FakeQuantizeBase):
    ...     def forward(self, x):
    ...         return (x * 2).round() / 2 if self.fake_quant_enabled[0] else x
    ...     def calculate_qparams(self):
    ...         return 0.5, 0
    >>> module = RoundToHalves()
    >>> module(cygrad.tensor([0.7])), module.calculate_qparams()
    (tensor([0.5000]), (0.5, 0))
    >>> module.disable_fake_quant()
    >>> module(cygrad.tensor([0.7]))
    tensor([0.7000])
    >>> module.enable_fake_quant()
    >>> module.disable_observer()
    >>> module.enable_observer()
    >>> type(RoundToHalves.with_args()()).__name__
    'RoundToHalves'
    """

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Round a tensor."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Return the scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switch rounding on or off."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self) -> None:
        """Switch rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Switch the statistics on or off."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self) -> None:
        """Switch the statistics off."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> Factory:
        """Return a factory of modules made with these arguments."""
        return Factory(partial(cls, **kwargs), {})


def _quantizes(name):
    def quantizer(*args, **kwargs):
        raise RuntimeError(
            f"torch.ao.quantization.{name}: cygrad has no quantized tensors\n"
            "  call model.half() or model.bfloat16() for weights of half the size"
        )

    quantizer.__name__ = quantizer.__qualname__ = name
    quantizer.__doc__ = f"""Raises RuntimeError: there are no quantized tensors.

    >>> import cygrad
    >>> cygrad.ao.quantization.{name}(cygrad.nn.Linear(2, 1))
    Traceback (most recent call last):
        ...
    RuntimeError: torch.ao.quantization.{name}: cygrad has no quantized tensors...
    """
    return quantizer


convert, prepare, prepare_qat = _quantizes("convert"), _quantizes("prepare"), _quantizes("prepare_qat")
quantize, quantize_dynamic = _quantizes("quantize"), _quantizes("quantize_dynamic")
