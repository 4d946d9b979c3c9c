"""The legacy weight norm, which recomputes the weight before each `forward`."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.parameter import Parameter, is_lazy
from cygrad.nn.utils._before_forward import hook_on, take_hook
from cygrad.nn.utils.parametrizations import norm_except
from cygrad.utils.warning import warn

__all__ = ["remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: `w = g * v / ||v||`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """Return the weight for the module's current magnitude and direction."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """The legacy form of `nn.utils.parametrizations.weight_norm`, with the parameters `weight_g` and `weight_v`.

    Raises `RuntimeError` if the weight is already normalized, `ValueError` if it is uninitialized.

    >>> from cygrad import nn
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     m = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> [name for name, _ in m.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    if hook_on(module, WeightNorm, name):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
            "before applying weight normalization"
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except(weight, hook.dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`: the weight is a parameter again. Raises `ValueError` if it is not normalized.

    >>> from cygrad import nn
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     m = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> m = nn.utils.remove_weight_norm(m)
    >>> [name for name, _ in m.named_parameters()]
    ['bias', 'weight']
    """
    hook = take_hook(module, WeightNorm, name, "weight_norm")
    weight = hook.compute_weight(module)
    delattr(module, name)
    for part in "gv":
        del module._parameters[f"{name}_{part}"]
    setattr(module, name, Parameter(weight))
    return module
