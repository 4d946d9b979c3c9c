"""Pooling layers."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.modules._function_module import UnaryFunctionModule

# PyTorch has these here:
from cygrad.nn.modules.fractional_pooling import FractionalMaxPool2d as FractionalMaxPool2d
from cygrad.nn.modules.fractional_pooling import FractionalMaxPool3d as FractionalMaxPool3d
from cygrad.nn.modules.unpooling import MaxUnpool1d as MaxUnpool1d
from cygrad.nn.modules.unpooling import MaxUnpool2d as MaxUnpool2d
from cygrad.nn.modules.unpooling import MaxUnpool3d as MaxUnpool3d
from cygrad.nn.modules.unpooling import _MaxUnpoolNd as _MaxUnpoolNd

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _MaxPoolNd(UnaryFunctionModule):
    _settings: tuple[str, ...] = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _shown(self) -> tuple[str, ...]:
        return self._settings[:-1]


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of sequences, as `F.max_pool1d`.

    The length of the output is (length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up
    with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.MaxPool1d(2)(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    _function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of images, as `F.max_pool2d`.

    Input shape ([n,] channels, height, width). Each output size is
    (length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.MaxPool2d(2)(cygrad.ones(1, 6, 28, 28)).shape
    torch.Size([1, 6, 14, 14])
    """

    _function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of volumes, as `F.max_pool3d`.

    Each output size is (length + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or up
    with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.MaxPool3d(2)(cygrad.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _function = "max_pool3d"


class _AvgPoolNd(UnaryFunctionModule):
    _settings: tuple[str, ...] = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")

    def _shown(self) -> tuple[str, ...]:
        return self._settings[:3]


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of sequences, as `F.avg_pool1d`.

    The length of the output is (length + 2 padding - kernel_size) / stride + 1, rounded down, or up with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.AvgPool1d(2)(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    _function = "avg_pool1d"

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = (
            tuple(value) if isinstance(value, (list, tuple)) else (value,)
            for value in (kernel_size, stride if stride is not None else kernel_size, padding)
        )
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad


class _AvgPoolOfImages(_AvgPoolNd):
    _settings = (*_AvgPoolNd._settings, "divisor_override")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPoolOfImages):
    """The mean of each window of images, as `F.avg_pool2d`.

    Input shape ([n,] channels, height, width). Each output size is
    (length + 2 padding - kernel_size) / stride + 1, rounded down, or up with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.AvgPool2d(2)(cygrad.ones(1, 6, 28, 28)).shape
    torch.Size([1, 6, 14, 14])
    """

    _function = "avg_pool2d"


class AvgPool3d(_AvgPoolOfImages):
    """The mean of each window of volumes, as `F.avg_pool3d`.

    Each output size is (length + 2 padding - kernel_size) / stride + 1, rounded down, or up with `ceil_mode`.

    >>> import cygrad
    >>> cygrad.nn.AvgPool3d(2)(cygrad.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _function = "avg_pool3d"


class _Adaptive(UnaryFunctionModule):
    _settings: tuple[str, ...] = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveAvgPoolNd(_Adaptive):
    """Base of the layers that take means, for `isinstance`."""


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover each sequence, as `F.adaptive_avg_pool1d`.

    Window i of m begins at floor(i length / m) and ends before ceil((i + 1) length / m).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveAvgPool1d(5)(cygrad.ones(1, 2, 8)).shape
    torch.Size([1, 2, 5])
    """

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover each image, as `F.adaptive_avg_pool2d`.

    Input shape ([n,] channels, height, width), output shape ([n,] channels, *output_size). Window i of n begins at
    floor(i length / n) and ends before ceil((i + 1) length / n).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveAvgPool2d((5, None))(cygrad.ones(1, 2, 8, 9)).shape
    torch.Size([1, 2, 5, 9])
    """

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover each volume, as `F.adaptive_avg_pool3d`.

    Window i of m begins at floor(i length / m) and ends before ceil((i + 1) length / m).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveAvgPool3d(1)(cygrad.ones(1, 2, 8, 9, 3)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    _function = "adaptive_avg_pool3d"


class _AdaptiveMaxPoolNd(_Adaptive):
    _settings: tuple[str, ...] = ("output_size", "return_indices")

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def _shown(self) -> tuple[str, ...]:
        return ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover each sequence, as `F.adaptive_max_pool1d`.

    Window i of m begins at floor(i length / m) and ends before ceil((i + 1) length / m).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveMaxPool1d(5)(cygrad.ones(1, 2, 8)).shape
    torch.Size([1, 2, 5])
    """

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover each image, as `F.adaptive_max_pool2d`.

    Window i of m begins at floor(i length / m) and ends before ceil((i + 1) length / m).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveMaxPool2d((5, None))(cygrad.ones(1, 2, 8, 9)).shape
    torch.Size([1, 2, 5, 9])
    """

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover each volume, as `F.adaptive_max_pool3d`.

    Window i of m begins at floor(i length / m) and ends before ceil((i + 1) length / m).

    >>> import cygrad
    >>> cygrad.nn.AdaptiveMaxPool3d(1)(cygrad.ones(1, 2, 8, 9, 3)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    _function = "adaptive_max_pool3d"


class _LPPoolNd(UnaryFunctionModule):
    _settings: tuple[str, ...] = ("kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return self._call(input, float(self.norm_type))

    def _shown(self) -> tuple[str, ...]:
        return ("norm_type", *self._settings)


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of sequences, as `F.lp_pool1d`.

    It is (sum of x^p)^(1/p) over the window. The output has floor((length - kernel_size) / stride + 1) elements.

    >>> import cygrad
    >>> cygrad.nn.LPPool1d(2, 2)(cygrad.tensor([[3.0, 4.0, 6.0, 8.0]]))
    tensor([[ 5., 10.]])
    """

    _function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of images, as `F.lp_pool2d`.

    It is (sum of x^p)^(1/p) over the window. Each output size is floor((length - kernel_size) / stride + 1).

    >>> import cygrad
    >>> cygrad.nn.LPPool2d(2, 2)(cygrad.ones(1, 6, 28, 28)).shape
    torch.Size([1, 6, 14, 14])
    """

    _function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of volumes, as `F.lp_pool3d`.

    It is (sum of x^p)^(1/p) over the window. Each output size is floor((length - kernel_size) / stride + 1).

    >>> import cygrad
    >>> cygrad.nn.LPPool3d(2, 2)(cygrad.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _function = "lp_pool3d"
