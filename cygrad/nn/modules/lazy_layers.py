"""Layers that infer their number of input features from the first input."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
)
from cygrad.nn.modules.lazy import LazyModuleMixin
from cygrad.nn.modules.linear import Linear
from cygrad.nn.modules.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from cygrad.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class _LazyLayer(LazyModuleMixin):
    """A layer whose attribute `_size_name` and parameter shapes follow from the input."""

    _size_name: str

    def _size_of(self, input: Tensor) -> int:
        """Return the number of features of an input."""
        raise NotImplementedError

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters and buffers for `size` features."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Reinitialize all parameters, if they have been materialized."""
        if not self.has_uninitialized_params() and getattr(self, self._size_name):
            super().reset_parameters()  # type: ignore[misc]

    def _initialize(self, input: Tensor) -> None:
        size = self._size_of(input)
        is_new = self.has_uninitialized_params()
        if is_new:
            with cygrad.no_grad():
                for name, shape in self._shapes(size).items():
                    if is_lazy(getattr(self, name)):
                        getattr(self, name).materialize(shape)
        setattr(self, self._size_name, size)
        if is_new:
            self.reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Create the parameters to fit this input."""
        self._initialize(input)


class LazyLinear(_LazyLayer, Linear):
    """`Linear` that infers `in_features` from its first input.

    >>> import cygrad
    >>> layer = cygrad.nn.LazyLinear(3)
    >>> layer
    LazyLinear(in_features=0, out_features=3, bias=True)
    >>> layer(cygrad.ones(2, 4)).shape
    torch.Size([2, 3])
    >>> layer
    Linear(in_features=4, out_features=3, bias=True)
    """

    cls_to_become = Linear
    _size_name = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size_of(self, input: Tensor) -> int:
        size: int = input.shape[-1]
        if not is_lazy(self.weight) and self.weight.shape[-1] != size:
            raise AssertionError(
                f"The in_features inferred from input: {size} is not equal to in_features from self.weight: "
                f"{self.weight.shape[-1]}"
            )
        return size

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, size)} | ({} if self.bias is None else {"bias": (self.out_features,)})


# --- Convolutions --


class _LazyConvXdMixin(_LazyLayer, _ConvNd):
    _size_name = "in_channels"

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Finish `__init__`: make weight and bias of the channel-less layer uninitialized."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _size_of(self, input: Tensor) -> int:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise RuntimeError(
                f"Expected {self.dims + 1}D (unbatched) or {self.dims + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        channels: int = input.shape[-self.dims - 1]
        if channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        return channels

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        first, second = (size, self.out_channels) if self.transposed else (self.out_channels, size)
        weight = {"weight": (first, second // self.groups, *self.kernel_size)}
        return weight | ({} if self.bias is None else {"bias": (self.out_channels,)})

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Create the parameters to fit this input."""
        self._initialize(input)


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyConv1d(3, 3)(cygrad.ones(1, 2, 10)).shape
    torch.Size([1, 3, 8])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> layer = cygrad.nn.LazyConv2d(6, 5)
    >>> layer(cygrad.ones(2, 1, 28, 28)).shape
    torch.Size([2, 6, 24, 24])
    >>> layer
    Conv2d(1, 6, kernel_size=(5, 5), stride=(1, 1))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyConv3d(2, 3)(cygrad.ones(1, 1, 4, 5, 6)).shape
    torch.Size([1, 2, 2, 3, 4])
    """

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
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
        how = (stride, padding, output_padding, groups, False, dilation, padding_mode)
        super().__init__(0, 0, kernel_size, *how)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyConvTranspose1d(2, 4, stride=2)(cygrad.ones(1, 3, 5)).shape
    torch.Size([1, 2, 12])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyConvTranspose2d(2, 4, stride=2, padding=1)(cygrad.ones(1, 3, 5, 6)).shape
    torch.Size([1, 2, 10, 12])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` that infers `in_channels` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyConvTranspose3d(2, 2, stride=2)(cygrad.ones(1, 1, 2, 3, 4)).shape
    torch.Size([1, 2, 4, 6, 8])
    """

    cls_to_become = ConvTranspose3d


# --- Norms --


class _LazyNormBase(_LazyLayer, _NormBase):
    _size_name = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        kwargs = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**kwargs)
        if affine and bias:
            self.bias = UninitializedParameter(**kwargs)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kwargs)
            self.running_var = UninitializedBuffer(**kwargs)
            self.num_batches_tracked = cygrad.tensor(0, dtype=cygrad.long, device=device)

    def _size_of(self, input: Tensor) -> int:
        channels: int = input.shape[1]
        return channels

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        names = ("weight", "bias", "running_mean", "running_var")
        return {name: (size,) for name in names if getattr(self, name) is not None}


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """`BatchNorm1d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> layer = cygrad.nn.LazyBatchNorm1d()
    >>> layer(cygrad.ones(2, 3)).shape, layer.num_features
    (torch.Size([2, 3]), 3)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """`BatchNorm2d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyBatchNorm2d()(cygrad.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """`BatchNorm3d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyBatchNorm3d()(cygrad.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """`InstanceNorm1d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyInstanceNorm1d()(cygrad.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """`InstanceNorm2d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyInstanceNorm2d()(cygrad.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """`InstanceNorm3d` that infers `num_features` from its first input.

    >>> import cygrad
    >>> cygrad.nn.LazyInstanceNorm3d()(cygrad.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = InstanceNorm3d
