"""What models written so that they can be quantized are made of. Quantizing one raises RuntimeError."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from functools import partial
from typing import Any

from cygrad import Tensor, tensor, uint8
from cygrad.nn import Module

__all__ = [
    "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "QuantWrapper", "convert",
    "default_qconfig", "get_default_qat_qconfig", "get_default_qconfig", "prepare", "prepare_qat", "quantize",
    "quantize_dynamic",
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


class _Factory:
    """A class with arguments, and functions whose results are further arguments."""

    def __init__(self, p: Any, callable_args: dict[str, Any]) -> None:
        self.p, self.callable_args = p, callable_args

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        called = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **called)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> _Factory:
        """Return a factory that also passes these arguments."""
        return _Factory(partial(self, **kwargs), {})

    def with_callable_args(self, **kwargs: Any) -> _Factory:
        """Return a factory that also passes the results of these functions, called anew each time."""
        return _Factory(self.p, {**self.callable_args, **kwargs})


class ObserverBase(ABC, Module):
    """Base class of modules that gather statistics of the tensors that they are called with.

    A class defines `forward(x)`, and `calculate_qparams()`, which returns what it makes of the statistics.
    """

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Take in a tensor, and return it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Return the scale and the zero point."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> _Factory:
        """Return a factory of modules made with these arguments."""
        return _Factory(partial(cls, **kwargs), {})

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> _Factory:
        """Return a factory of modules made with the results of these functions."""
        return _Factory(cls, kwargs)


class FakeQuantizeBase(ABC, Module):
    """Base class of modules that round as quantizing would; the buffers `..._enabled` switch its parts on and off."""

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
    def with_args(cls, **kwargs: Any) -> _Factory:
        """Return a factory of modules made with these arguments."""
        return _Factory(partial(cls, **kwargs), {})


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
