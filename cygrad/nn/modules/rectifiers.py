"""Piecewise activations: rectifiers, their smooth variants, and threshold functions."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init as initializers
from cygrad.nn.modules._function_module import Activation, InPlaceActivation
from cygrad.nn.parameter import Parameter
from cygrad.utils.warning import warn

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Softplus",
    "Softshrink",
    "Threshold",
]


class ReLU(InPlaceActivation):
    """max(x, 0), elementwise; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.ReLU()(cygrad.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.ReLU()(cygrad.tensor([-2.0, 3.0]))
        tensor([0., 3.])
        """
        return F.relu(input, self.inplace)


class LeakyReLU(Activation):
    """x where x > 0, else negative_slope * x; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.LeakyReLU(0.1)(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    _function = "leaky_relu"
    _settings = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace


class RReLU(Activation):
    """Leaky ReLU whose slope is drawn for each element, uniformly between `lower` and `upper`.

    x where x >= 0, else slope * x.

    In evaluation mode the slope is the mean of the two bounds. `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.RReLU(0.1, 0.3).eval()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    _function = "rrelu"
    _settings = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of any shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.RReLU(lower=0.5, upper=0.5)(cygrad.tensor([-2.0, 3.0]))
        tensor([-1.,  3.])
        """
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Activation):
    """Leaky ReLU with a learned slope: x where x > 0, else weight * x.

    The parameter `weight` has `num_parameters` elements, initially `init`: one for the whole
    input, or one per channel (the input's second dimension).

    >>> import cygrad
    >>> cygrad.nn.PReLU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(cygrad.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the slopes to `init`.

        >>> from cygrad import nn
        >>> m = nn.PReLU(init=0.1)
        >>> m.weight.data.fill_(5)
        tensor([5.])
        >>> m.reset_parameters()
        >>> m.weight
        Parameter containing:
        tensor([0.1000], requires_grad=True)
        """
        initializers.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply to `input`, of shape (N, C, ...) if there is a slope per channel.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.PReLU()(cygrad.tensor([-2.0, 3.0]))
        tensor([-0.5000,  3.0000], grad_fn=<PreluKernelBackward0>)
        """
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of slopes.

        >>> from cygrad import nn
        >>> nn.PReLU(3).extra_repr()
        'num_parameters=3'
        """
        return f"num_parameters={self.num_parameters}"


class _Exponential(Activation):
    """An exponential below zero that saturates at -alpha."""

    _settings = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class ELU(_Exponential):
    """x where x > 0, else alpha * (exp(x) - 1); `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.ELU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _function = "elu"


class CELU(_Exponential):
    """x where x > 0, else alpha * (exp(x / alpha) - 1); `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.CELU(2.0)(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.7869,  2.0000])
    """

    _function = "celu"


class SELU(InPlaceActivation):
    """A scaled ELU that preserves mean 0 and variance 1 through layers with LeCun-normal weights.

    1.0507 x where x > 0, else 1.0507 * 1.6733 (exp(x) - 1).

    The constants are those of Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    >>> import cygrad
    >>> cygrad.nn.SELU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    _function = "selu"


class GELU(Activation):
    """x * P(Z <= x) with Z standard normal; `approximate="tanh"` uses the tanh approximation of the probability.

    The approximation is x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.

    >>> import cygrad
    >>> cygrad.nn.GELU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _function = "gelu"
    _settings = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate


class SiLU(InPlaceActivation):
    """x * sigmoid(x), also called swish; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.SiLU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    _function = "silu"


class Mish(InPlaceActivation):
    """x * tanh(softplus(x)); `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.Mish()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    _function = "mish"


class Softplus(Activation):
    """log(1 + exp(beta * x)) / beta, a smooth ReLU; x itself where beta * x > threshold.

    >>> import cygrad
    >>> cygrad.nn.Softplus()(cygrad.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """

    _function = "softplus"
    _settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class Threshold(Activation):
    """x where x > threshold, else `value`; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.Threshold(0.1, 20)(cygrad.tensor([-1.0, 2.0]))
    tensor([20.,  2.])
    """

    _function = "threshold"
    _settings = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace


class Hardtanh(Activation):
    """x clamped to [`min_val`, `max_val`]; `inplace` overwrites the input.

    max(min_val, min(max_val, x)), elementwise.

    `min_value` and `max_value` are deprecated names of the bounds, which must not be equal.

    >>> import cygrad
    >>> cygrad.nn.Hardtanh(-2, 2)(cygrad.tensor([-3.0, 0.5]))
    tensor([-2.0000,  0.5000])
    """

    _function = "hardtanh"
    _settings = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = min_val if min_value is None else _renamed("min_val", min_value)
        self.max_val = max_val if max_value is None else _renamed("max_val", max_value)
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.ReLU6()(cygrad.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return whether the layer works in place.

        >>> from cygrad import nn
        >>> nn.ReLU6(inplace=True).extra_repr()
        'inplace=True'
        """
        return "inplace=True" if self.inplace else ""


class _Hard(InPlaceActivation):
    """A piecewise function whose repr never shows its setting."""

    def extra_repr(self) -> str:
        """Return an empty string, as in PyTorch."""
        return ""


class Hardsigmoid(_Hard):
    """x / 6 + 1/2, clamped to [0, 1]; `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.Hardsigmoid()(cygrad.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    _function = "hardsigmoid"


class Hardswish(_Hard):
    """x * hardsigmoid(x); `inplace` overwrites the input.

    >>> import cygrad
    >>> cygrad.nn.Hardswish()(cygrad.tensor([0.0, 1.0, 1.5]))
    tensor([0.0000, 0.6667, 1.1250])
    """

    _function = "hardswish"


class _Shrink(Activation):
    """Zero between -lambd and lambd."""

    _settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """Return the bound without its name."""
        return str(self.lambd)


class Softshrink(_Shrink):
    """x - lambd above lambd, x + lambd below -lambd, 0 between.

    >>> import cygrad
    >>> cygrad.nn.Softshrink()(cygrad.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    _function = "softshrink"


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0.

    >>> import cygrad
    >>> cygrad.nn.Hardshrink()(cygrad.tensor([-1.0, 0.25, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    _function = "hardshrink"


def _renamed(name: str, value: float) -> float:
    """Return `value` after warning that its argument has been renamed to `name`."""
    warn(f"keyword argument `{name}ue` is deprecated and renamed to `{name}`", FutureWarning)
    return value
