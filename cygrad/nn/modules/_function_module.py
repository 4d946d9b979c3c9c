"""Base classes of modules that hold the settings of one function of `nn.functional`."""

from typing import Any, ClassVar

from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn.modules.module import Module


class FunctionModule(Module):
    """Calls `_function` with the attributes listed in `_settings` as keyword arguments.

    A subclass defines both and sets the attributes; its `forward` determines the tensor arguments. In
    `ReLU`, `Sigmoid` and `Tanh`, where half a microsecond matters, `forward` calls the function directly.
    """

    _function: ClassVar[str]
    _settings: tuple[str, ...] = ()

    def _call(self, *tensors: Any, **more: Any) -> Tensor:
        settings = {name: getattr(self, name) for name in self._settings}
        result: Tensor = getattr(F, self._function)(*tensors, **settings, **more)
        return result


class UnaryFunctionModule(FunctionModule):
    """A function of one tensor whose repr shows its settings."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`."""
        return self._call(input)

    def _shown(self) -> tuple[str, ...]:
        return self._settings

    def extra_repr(self) -> str:
        """Return the settings."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown())


class Activation(UnaryFunctionModule):
    """A function of one tensor whose repr shows its settings, `inplace` only if true."""

    def _shown(self) -> tuple[str, ...]:
        return tuple(name for name in self._settings if name != "inplace" or self.inplace)


class InPlaceActivation(Activation):
    """An activation whose only setting is `inplace`."""

    _settings: tuple[str, ...] = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
