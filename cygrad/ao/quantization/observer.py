"""Modules that gather statistics of tensors, from which scales of quantized tensors are computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from cygrad.nn import Module

__all__ = ["ObserverBase"]


class Factory:
    """A class with arguments, and functions whose results are further arguments."""

    def __init__(self, p: Any, callable_args: dict[str, Any]) -> None:
        self.p, self.callable_args = p, callable_args

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        called = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **called)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> Factory:
        """Return a factory that also passes these arguments."""
        return Factory(partial(self, **kwargs), {})

    def with_callable_args(self, **kwargs: Any) -> Factory:
        """Return a factory that also passes the results of these functions, called anew each time."""
        return Factory(self.p, {**self.callable_args, **kwargs})


class ObserverBase(ABC, Module):
    """Base class of modules that gather statistics of the tensors that they are called with.

    A class defines `forward(x)`, and `calculate_qparams()`, which returns what it makes of the statistics.

    >>> import cygrad
    >>> from cygrad.ao.quantization import ObserverBase
    >>> class Largest(ObserverBase):
    ...     largest = 0.0
    ...     def forward(self, x):
    ...         self.largest = max(self.largest, x.abs().max().item())
    ...         return x
    ...     def calculate_qparams(self):
    ...         return self.largest / 128, 0
    >>> observer = Largest(dtype=cygrad.int8)
    >>> x = observer(cygrad.tensor([-2.0, 1.0]))
    >>> observer.calculate_qparams()
    (0.015625, 0)
    >>> Largest.with_args(dtype=cygrad.int8)().dtype
    torch.int8
    >>> Largest.with_callable_args(dtype=lambda: cygrad.int8)().dtype
    torch.int8
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
    def with_args(cls, **kwargs: Any) -> Factory:
        """Return a factory of modules made with these arguments."""
        return Factory(partial(cls, **kwargs), {})

    @classmethod
    def with_callable_args(cls, **kwargs: Any) -> Factory:
        """Return a factory of modules made with the results of these functions."""
        return Factory(cls, kwargs)


class _Observer(ObserverBase):
    """The base of the observers that compute scales of quantized tensors. Making one raises RuntimeError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__module__}.{type(self).__name__}: cygrad has no quantized tensors\n"
            "  call model.half() or model.bfloat16() for weights of half the size"
        )

    def forward(self, x: Any) -> Any:
        """Return x, which nothing is gathered of."""
        return x

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Never called, as there is no such module."""


_KINDS = (
    "AffineQuantizedObserverBase FixedQParamsObserver HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver NoopObserver PerChannelMinMaxObserver PlaceholderObserver RecordingObserver "
    "ReuseInputObserver UniformQuantizationObserverBase"
)
_DOC = """Gathers statistics: cannot be made, since there are no quantized tensors. Programs can name it.

>>> import cygrad
>>> {0}()
Traceback (most recent call last):
    ...
RuntimeError: {0}: cygrad has no quantized tensors..."""
_OBSERVERS = {
    name: type(name, (_Observer,), {"__module__": __name__, "__doc__": _DOC.format(f"{__name__}.{name}")})
    for name in _KINDS.split()
}
globals().update(_OBSERVERS)
__all__ += list(_OBSERVERS)
