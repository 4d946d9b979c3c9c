"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


def __getattr__(name: str) -> Any:
    """Resolve the lazy layer, which PyTorch also defines in this module."""
    if name == "LazyLinear":
        from cygrad.nn.modules import lazy_layers  # which needs this module

        return getattr(lazy_layers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Identity(Module):
    """Returns its input. Constructor arguments are accepted and ignored.

    >>> import cygrad
    >>> cygrad.nn.Identity(54, unused=True)(cygrad.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return `input`.

        >>> import cygrad
        >>> from cygrad import nn
        >>> x = cygrad.ones(2)
        >>> nn.Identity()(x) is x
        True
        """
        return input


class Linear(Module):
    """The affine map `y = x @ weight.T + bias`.

    Input shape (*, in_features), output shape (*, out_features). `weight` has the shape
    (out_features, in_features), `bias` (out_features,) or is None. Both are initialized
    uniformly in +-1/sqrt(in_features). Raises RuntimeError if the last dimension of the input
    is not in_features.

    >>> import cygrad
    >>> layer = cygrad.nn.Linear(20, 30)
    >>> layer(cygrad.randn(128, 20)).shape
    torch.Size([128, 30])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        kwargs = {"device": device, "dtype": dtype}
        self.weight = Parameter(cygrad.empty((out_features, in_features), **kwargs))
        if bias:
            self.bias = Parameter(cygrad.empty(out_features, **kwargs))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias.

        Both are drawn uniformly from [-b, b] with b = 1 / sqrt(in_features).

        >>> from cygrad import nn
        >>> m = nn.Linear(4, 3)
        >>> m.reset_parameters()
        >>> bool(m.weight.abs().max() <= 0.5)
        True
        """
        # With a=sqrt(5) the bound is 1/sqrt(fan_in), for any nonlinearity.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the map to the last dimension of `input`.

        The shape (..., in_features) gives (..., out_features). Raises RuntimeError for another last size or dtype.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.Linear(2, 3)(cygrad.ones(5, 2)).shape
        torch.Size([5, 3])
        """
        own: dict[str, Any] = self._parameters
        if "weight" in own and "bias" in own:  # attribute lookups would take a quarter of a small layer's time
            return F.linear(input, own["weight"], own["bias"])
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes and whether there is a bias.

        >>> from cygrad import nn
        >>> nn.Linear(2, 3).extra_repr()
        'in_features=2, out_features=3, bias=True'
        """
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name PyTorch uses for the output projection of `MultiheadAttention`."""


class Bilinear(Module):
    """The bilinear map `y = x1 @ weight @ x2 + bias` of two inputs, for each output feature, as `F.bilinear`.

    `weight` has the shape (out_features, in1_features, in2_features). It and `bias` are initialized
    uniformly in +-1/sqrt(in1_features). Raises `ValueError` unless `in1_features` is positive.

    >>> import cygrad
    >>> cygrad.nn.Bilinear(20, 30, 40)(cygrad.randn(8, 20), cygrad.randn(8, 30)).shape
    torch.Size([8, 40])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        kwargs = {"device": device, "dtype": dtype}
        self.weight = Parameter(cygrad.empty((out_features, in1_features, in2_features), **kwargs))
        if bias:
            self.bias = Parameter(cygrad.empty(out_features, **kwargs))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias.

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Bilinear(2, 3, 4)
        >>> before = m.weight.clone()
        >>> m.reset_parameters()
        >>> cygrad.equal(m.weight, before)
        False
        """
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the map to the last dimensions of both inputs.

        The shapes (..., in1_features) and (..., in2_features) give (..., out_features).

        >>> import cygrad
        >>> from cygrad import nn
        >>> m = nn.Bilinear(2, 3, 4)
        >>> m(cygrad.ones(5, 2), cygrad.ones(5, 3)).shape
        torch.Size([5, 4])
        """
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes and whether there is a bias.

        >>> from cygrad import nn
        >>> nn.Bilinear(2, 3, 4).extra_repr()
        'in1_features=2, in2_features=3, out_features=4, bias=True'
        """
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
