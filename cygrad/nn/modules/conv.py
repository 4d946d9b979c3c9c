"""Convolutional layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules._sizes import repeated
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple  # noqa: F401, libraries look for them here
from cygrad.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


def __getattr__(name: str) -> Any:
    """Resolve the lazy layers, which PyTorch also defines in this module."""
    if name.startswith("LazyConv") or name == "_LazyConvXdMixin":
        from cygrad.nn.modules import lazy_layers  # which needs this module

        return getattr(lazy_layers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of all convolutions: filters, bias, and their geometry."""

    weight: Tensor
    bias: Tensor | None
    padding: Any
    dims = 0
    transposed = False

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self.stride = repeated(stride, self.dims)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {set(PADDING_MODES)}, but got padding_mode='{padding_mode}'")
        if self.transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = repeated(kernel_size, self.dims)
        self.padding = padding if isinstance(padding, str) else repeated(padding, self.dims)
        self.dilation = repeated(dilation, self.dims)
        self.output_padding = repeated(output_padding, self.dims)
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        kwargs = {"device": device, "dtype": dtype}
        self.weight = Parameter(cygrad.empty((first, second // groups, *self.kernel_size), **kwargs))
        if bias:
            self.bias = Parameter(cygrad.empty(out_channels, **kwargs))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize weight and bias uniformly in +-1/sqrt(channels per group * taps)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _margins(self) -> list[int]:
        """Return the padding at both ends of each dimension, last dimension first, as `F.pad` expects it."""
        margins: list[int] = []
        for d in reversed(range(self.dims)):
            if self.padding == "same":
                both = self.dilation[d] * (self.kernel_size[d] - 1)
                margins += [both // 2, both - both // 2]
            else:
                margins += [0, 0] if self.padding == "valid" else [int(self.padding[d])] * 2
        return margins

    _computed_names: tuple[str, ...] = ("transposed", "_reversed_padding_repeated_twice")

    def _computed_state(self) -> dict[str, Any]:
        margins = self._margins()
        return {
            "transposed": self.transposed,
            "_reversed_padding_repeated_twice": margins if isinstance(self.padding, str) else tuple(margins),
        }

    def extra_repr(self) -> str:
        """Return the sizes and the settings that differ from the defaults."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        none = (0,) * self.dims
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.dims:
            text += f", dilation={self.dilation}"
        if self.output_padding != none:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = (kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)
        self._set_up(in_channels, out_channels, *given)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve `input`, with or without a batch dimension."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with other weights: subclasses call it by this name, which is PyTorch's."""
        function = getattr(F, f"conv{self.dims}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), mode=self.padding_mode), 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Slides filters along sequences ([n,] in_channels, length): `F.conv1d` with its own weight and bias.

    The output has floor((length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1) elements.

    See `Conv2d`, with one dimension instead of two.

    >>> import cygrad
    >>> cygrad.nn.Conv1d(2, 3, 3)(cygrad.ones(1, 2, 10)).shape
    torch.Size([1, 3, 8])
    """

    dims = 1


class Conv2d(_Conv):
    """Slides filters over images ([n,] in_channels, height, width): `F.conv2d` with its own weight and bias.

    Each output size is floor((length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1).

    `weight` has the shape (out_channels, in_channels / groups, *kernel_size), `bias` (out_channels,) or is None. Both
    are initialized uniformly in +-1/sqrt(in_channels / groups * taps). `padding_mode` determines the values around the
    image: 'zeros', or 'reflect', 'replicate' or 'circular' as in `F.pad`.

    >>> import cygrad
    >>> layer = cygrad.nn.Conv2d(1, 6, 5, padding=2)
    >>> layer
    Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))
    >>> layer(cygrad.ones(2, 1, 28, 28)).shape
    torch.Size([2, 6, 28, 28])
    """

    dims = 2


class Conv3d(_Conv):
    """Slides filters over volumes ([n,] in_channels, depth, height, width): `F.conv3d` with its own weight and bias.

    Each output size is floor((length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1).

    See `Conv2d`, with three dimensions instead of two.

    >>> import cygrad
    >>> cygrad.nn.Conv3d(1, 2, 3)(cygrad.ones(1, 1, 4, 5, 6)).shape
    torch.Size([1, 2, 2, 3, 4])
    """

    dims = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = (kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype)
        self._set_up(in_channels, out_channels, *given)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Scatter each element of `input` through the filters; `output_size` selects one of the valid sizes."""
        function = getattr(F, f"conv_transpose{self.dims}d")
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self.dims, self.dilation
        )
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """Return the output padding that yields `output_size`; the layer's own for None."""
        if output_size is None:
            return self.output_padding
        outer = input.dim() - num_spatial_dims
        wanted = list(output_size)[outer:] if len(output_size) == input.dim() else list(output_size)
        if len(wanted) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                f"{num_spatial_dims} or {input.dim()} elements (got {len(output_size)})"
            )
        if dilation is None:
            dilation = (1,) * num_spatial_dims
        smallest = [
            (n - 1) * s - 2 * int(p) + d * (k - 1) + 1
            for n, s, p, d, k in zip(input.shape[outer:], stride, padding, dilation, kernel_size)
        ]
        largest = [n + s - 1 for n, s in zip(smallest, stride)]
        if any(not low <= n <= high for n, low, high in zip(wanted, smallest, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} (for "
                f"an input of {input.shape[outer:]})"
            )
        return tuple(n - low for n, low in zip(wanted, smallest))


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of `Conv1d`: `F.conv_transpose1d` with its own weight and bias. See `ConvTranspose2d`.

    The output has (length - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 elements.

    >>> import cygrad
    >>> cygrad.nn.ConvTranspose1d(3, 2, 4, stride=2)(cygrad.ones(1, 3, 5)).shape
    torch.Size([1, 2, 12])
    """

    dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of `Conv2d`: `F.conv_transpose2d` with its own weight and bias. Upsamples images.

    Each output size is (length - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

    `weight` has the shape (in_channels, out_channels / groups, *kernel_size), `bias` (out_channels,) or is None. If
    called with `output_size`, it uses the output padding that yields this size.

    >>> import cygrad
    >>> layer = cygrad.nn.ConvTranspose2d(3, 2, 4, stride=2, padding=1)
    >>> layer(cygrad.ones(1, 3, 5, 6)).shape
    torch.Size([1, 2, 10, 12])
    """

    dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of `Conv3d`: `F.conv_transpose3d` with its own weight and bias. See `ConvTranspose2d`.

    Each output size is (length - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

    >>> import cygrad
    >>> cygrad.nn.ConvTranspose3d(1, 2, 2, stride=2)(cygrad.ones(1, 1, 2, 3, 4)).shape
    torch.Size([1, 2, 4, 6, 8])
    """

    dims = 3
