"""The base of modules that hold the settings of one function of `nn.functional`."""

from __future__ import annotations

from typing import Any, ClassVar

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module


class FunctionModule(Module):
    """Calls `_function` with the attributes that `_settings` names, under these names.

    A subclass names both and sets the attributes; its `forward` says which tensors there are. Where half
    a microsecond counts, in `ReLU`, `Sigmoid` and `Tanh`, `forward` calls the function itself.
    """

    _function: ClassVar[str]
    _settings: ClassVar[tuple[str, ...]] = ()

    def _call(self, *tensors: Any, **more: Any) -> Tensor:
        settings = {name: getattr(self, name) for name in self._settings}
        result: Tensor = getattr(F, self._function)(*tensors, **settings, **more)
        return result


class UnaryFunctionModule(FunctionModule):
    """A function of one tensor, whose settings are shown."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`."""
        return self._call(input)

    def _shown(self) -> tuple[str, ...]:
        return self._settings

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown())


class Activation(UnaryFunctionModule):
    """A function of one tensor; its settings are shown, `inplace` only where it is true."""

    def _shown(self) -> tuple[str, ...]:
        return tuple(name for name in self._settings if name != "inplace" or self.inplace)


class InPlaceActivation(Activation):
    """An activation whose one setting is whether it overwrites its input."""

    _settings: ClassVar[tuple[str, ...]] = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
