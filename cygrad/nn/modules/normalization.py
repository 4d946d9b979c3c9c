"""Normalization layers (batch, instance, group, layer), with learned scale and shift and running statistics."""

from __future__ import annotations

import numbers
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.modules._function_module import UnaryFunctionModule
from cygrad.nn.modules.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.utils.warning import warn

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CrossMapLRN2d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class _Affine(Module):
    """The learned affine map after normalization: a scale `weight`, initially 1, and a shift `bias`, initially 0."""

    weight: Tensor | None
    bias: Tensor | None

    def _make_parameters(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            made = Parameter(cygrad.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        bias = self._parameters.get("bias")
        if bias is not None:
            init.zeros_(bias)


# --- With running statistics --


class _NormBase(_Affine):
    """Normalizes each channel (dimension 1), optionally keeping running means and variances for evaluation."""

    # Version 2: `num_batches_tracked` is part of the state.
    _version = 2
    ranks: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def _set_up(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(num_features, affine, affine and bias, device, dtype)
        like = {"device": device, "dtype": dtype}
        tracked = track_running_stats
        self.register_buffer("running_mean", cygrad.zeros(num_features, **like) if tracked else None)
        self.register_buffer("running_var", cygrad.ones(num_features, **like) if tracked else None)
        count = cygrad.tensor(0, dtype=cygrad.long, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics: mean 0, variance 1, batch count 0."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.ranks:
            expected = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """Return the number of channels and the settings of the normalization."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._set_up(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _count_batch(self) -> float:
        """Count this batch and return its weight in the running statistics; without momentum, all weigh the same."""
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                return 1.0 / float(self.num_batches_tracked)
        return 0.0 if self.momentum is None else self.momentum

    def forward(self, input: Tensor) -> Tensor:
        """Normalize by batch statistics in training, by running statistics (if any) in evaluation."""
        self._check_input_dim(input)
        weight_of_batch = self._count_batch()
        mean, var = self.running_mean, self.running_var
        by_batch = self.training or mean is None and var is None
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, weight_of_batch, self.eps)


class BatchNorm1d(_BatchNorm):
    """Normalizes channels over a batch of vectors (N, C) or sequences (N, C, L), as `F.batch_norm`.

    Computes `(x - mean) / sqrt(var + eps) * weight + bias` for each channel.

    Training uses the mean and biased variance of the batch, and updates `running_mean` and `running_var`
    with `momentum` (None: a cumulative average); evaluation uses these running statistics.

    >>> import cygrad
    >>> layer = cygrad.nn.BatchNorm1d(1)
    >>> layer(cygrad.tensor([[1.0], [3.0]])).detach().round(decimals=3)
    tensor([[-1.],
            [ 1.]])
    >>> layer.running_mean, layer.num_batches_tracked
    (tensor([0.2000]), tensor(1))
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images (N, C, H, W).

    >>> import cygrad
    >>> cygrad.nn.BatchNorm2d(3)(cygrad.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes (N, C, D, H, W).

    >>> import cygrad
    >>> cygrad.nn.BatchNorm3d(3)(cygrad.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    ranks = (5,)


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._set_up(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _get_no_batch_dim(self) -> int:
        """Return the number of dimensions of a single instance."""
        return min(self.ranks)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each channel of each instance; `input` may be a single instance without a batch dimension."""
        self._check_input_dim(input)
        single = input.dim() == self._get_no_batch_dim()
        self._check_channels(input, 0 if single else 1)
        by_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        learnt = (self.running_mean, self.running_var, self.weight, self.bias)
        result = F.instance_norm(input.unsqueeze(0) if single else input, *learnt, by_input, momentum, self.eps)
        return result.squeeze(0) if single else result

    def _check_channels(self, input: Tensor, dim: int) -> None:
        if input.shape[dim] == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                f"but got: {input.shape[dim]}."
            )
        warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
            "in num_features, which is not used because affine=False"
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sequence (N, C, L) or (C, L) independently, as `F.instance_norm`.

    Computes `(x - mean) / sqrt(var + eps) * weight + bias`; without `affine` there is no weight and no bias.

    >>> import cygrad
    >>> cygrad.nn.InstanceNorm1d(1)(cygrad.tensor([[[1.0, 3.0]]])).round(decimals=3)
    tensor([[[-1.,  1.]]])
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each image (N, C, H, W) or (C, H, W) independently.

    Computes `(x - mean) / sqrt(var + eps) * weight + bias`; without `affine` there is no weight and no bias.

    >>> import cygrad
    >>> cygrad.nn.InstanceNorm2d(3)(cygrad.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each volume (N, C, D, H, W) or (C, D, H, W) independently.

    Computes `(x - mean) / sqrt(var + eps) * weight + bias`; without `affine` there is no weight and no bias.

    >>> import cygrad
    >>> cygrad.nn.InstanceNorm3d(3)(cygrad.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    ranks = (4, 5)


# --- Without running statistics --


def _shape(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, numbers.Integral) else tuple(given)  # type: ignore[return-value]


class LayerNorm(_Affine):
    """Normalizes over the last dimensions: `(x - mean) / sqrt(var + eps) * weight + bias`, as `F.layer_norm`.

    Input and output shape (*, *normalized_shape). `weight` and `bias` have the shape `normalized_shape`, and start at
    1 and 0. Raises RuntimeError if the last dimensions of the input differ.

    >>> import cygrad
    >>> cygrad.nn.LayerNorm(2)(cygrad.tensor([1.0, 3.0])).detach().round(decimals=3)
    tensor([-1.,  1.])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalize the last dimensions of `input`.

        `input` ends in `normalized_shape`; RuntimeError otherwise. The result has its shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.LayerNorm(2)(cygrad.tensor([[1.0, 3.0], [0.0, 4.0]]))
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
        """
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the shape and the learned parts.

        >>> from cygrad import nn
        >>> nn.LayerNorm(4).extra_repr()
        '(4,), eps=1e-05, elementwise_affine=True, bias=True'
        """
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Divides the last dimensions, which have the shape `normalized_shape`, by their root mean square, as `F.rms_norm`.

    Computes `x / sqrt(mean(x^2) + eps) * weight`; without `elementwise_affine` there is no weight.

    >>> import cygrad
    >>> cygrad.nn.RMSNorm(2)(cygrad.tensor([1.0, 7.0])).detach()
    tensor([0.2000, 1.4000])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        kwargs = {"device": device, "dtype": dtype}
        made = Parameter(cygrad.empty(self.normalized_shape, **kwargs)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimensions of `x`.

        `x` ends in `normalized_shape`; RuntimeError otherwise. The result has its shape.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.RMSNorm(2)(cygrad.tensor([[3.0, 4.0]]))
        tensor([[0.8485, 1.1314]], grad_fn=<MulBackward0>)
        """
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the shape and whether a scale is learned.

        >>> from cygrad import nn
        >>> nn.RMSNorm(4).extra_repr()
        '(4,), eps=None, elementwise_affine=True'
        """
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Normalizes each of `num_groups` groups of channels (dimension 1), as `F.group_norm`.

    Computes `(x - mean) / sqrt(var + eps) * weight + bias`, with a weight and a bias for each channel.

    Raises `ValueError` unless `num_groups` divides `num_channels`.

    >>> import cygrad
    >>> cygrad.nn.GroupNorm(2, 6)(cygrad.ones(2, 6, 5)).shape
    torch.Size([2, 6, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Normalize the groups of `input`.

        `input` and the result have the shape (N, C, ...). Raises RuntimeError for another number of channels.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.GroupNorm(1, 2)(cygrad.tensor([[1.0, 3.0]]))
        tensor([[-1.0000,  1.0000]], grad_fn=<NativeGroupNormBackward0>)
        """
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the numbers of groups and channels, and the learned parts.

        >>> from cygrad import nn
        >>> nn.GroupNorm(2, 4).extra_repr()
        '2, 4, eps=1e-05, affine=True, bias=True'
        """
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(UnaryFunctionModule):
    """Divides each element by a power of the squares in `size` neighboring channels, as `F.local_response_norm`.

    Computes `x / (k + alpha * average)^beta`, with the average of the squares.

    >>> import cygrad
    >>> cygrad.nn.LocalResponseNorm(2)(cygrad.ones(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    _function = "local_response_norm"
    _settings = ("size", "alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        """Return the constants of the formula.

        >>> from cygrad import nn
        >>> nn.LocalResponseNorm(3).extra_repr()
        '3, alpha=0.0001, beta=0.75, k=1.0'
        """
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`input / (k + alpha / size * S)^beta`, where S sums the squares over nearby channels; input (N, C, H, W).

    With p = (size + 1) // 2, S of channel c sums over channels c - p + 1 to c + p - 1 and, as in PyTorch, also over
    channel 0. The gradient is the exact derivative of this formula; PyTorch's is not. For a window of `size` channels,
    use `LocalResponseNorm`. Raises ValueError for inputs that are not 4-D.

    >>> import cygrad
    >>> cygrad.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(cygrad.ones(1, 3, 1, 1)).flatten()
    tensor([0.3333, 0.2500, 0.2500])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Normalize `input`.

        `input` and the result have the shape (N, C, H, W).

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.CrossMapLRN2d(3)(cygrad.ones(1, 4, 2, 2)).shape
        torch.Size([1, 4, 2, 2])
        """
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        channels = cygrad.arange(input.shape[1])
        to, of = channels.unsqueeze(1), channels.unsqueeze(0)
        reach = (self.size + 1) // 2
        near = (of < to + reach) & ((of > to - reach) | (of == 0))
        squares = near.to(input.dtype) @ input.square().flatten(2)
        return input * (squares * (self.alpha / self.size) + self.k).pow(-self.beta).view_as(input)

    def extra_repr(self) -> str:
        """Return the constants of the formula.

        >>> from cygrad import nn
        >>> nn.CrossMapLRN2d(3).extra_repr()
        '3, alpha=0.0001, beta=0.75, k=1'
        """
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
