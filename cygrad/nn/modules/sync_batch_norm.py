"""SyncBatchNorm: a batch norm whose statistics are those of the batches of all processes."""

from __future__ import annotations

from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.normalization import _BatchNorm

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, ...) of any shape, over the joined batch of all processes of a group.

    In training each process sends the mean, the variance and the number of its elements of each channel to all, which
    combine them: mean = sum n_r mean_r / n, var = sum n_r (var_r + (mean_r - mean)^2) / n, with n = sum n_r. Gradients
    flow through this exchange, to the inputs of all processes. Batches may differ in size, and be empty in some.
    `process_group` is by default that of all processes; without one, or in evaluation, this is a usual batch norm.

    Raises ValueError for inputs with fewer than two dimensions, and if all processes together have just one value per
    channel.

    >>> import cygrad
    >>> cygrad.nn.SyncBatchNorm(3)(cygrad.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Normalize a batch, of which each process has a part.

        Without a group of processes, it is batch norm of `input`. Raises ValueError for fewer than 2 dimensions.

        >>> import cygrad
        >>> from cygrad import nn
        >>> nn.SyncBatchNorm(1)(cygrad.tensor([[1.0], [3.0]]))
        tensor([[-1.0000],
                [ 1.0000]], grad_fn=<NativeBatchNormBackward0>)
        """
        uses_batch = self.training or self.running_mean is None
        if not uses_batch or not cygrad.distributed.is_initialized():
            return super().forward(input)
        group = self.process_group or cygrad.distributed.group.WORLD
        if group.size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        mean, variance, count = self._statistics(input, group)
        if self.training and self.track_running_stats:
            self._track(mean.detach(), variance.detach(), count)
        shape = [1, -1] + [1] * (input.dim() - 2)
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        shift = -mean * scale if self.bias is None else self.bias - mean * scale
        if input.dtype != scale.dtype:
            return (input.to(scale.dtype) * scale.view(shape) + shift.view(shape)).to(input.dtype)
        return input * scale.view(shape) + shift.view(shape)

    def _statistics(self, input: Tensor, group: Any) -> tuple[Tensor, Tensor, int]:
        """Mean and variance of each channel over all processes, and the number of elements they are of."""
        from cygrad.distributed.nn.functional import all_gather  # few programs use a process group

        kind = cygrad.float64 if input.dtype == cygrad.float64 else cygrad.float32
        channels = input.shape[1]
        number = input.numel() // channels if channels else 0
        dims = [dim for dim in range(input.dim()) if dim != 1]
        if number:
            variance, mean = cygrad.var_mean(input.to(kind), dims, correction=0)
        else:  # an empty sum, which has a gradient for the empty input all the same
            mean = input.to(kind).sum(dims)
            variance = mean * 0
        own = cygrad.cat([mean, variance, cygrad.full((1,), number, dtype=kind, device=input.device)])
        rows = cygrad.stack(list(all_gather(own, group=group)))
        means, variances, counts = rows[:, :channels], rows[:, channels:-1], rows[:, -1:].detach()
        total = int(counts.sum().item())
        if total <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
        shares = counts / total
        mean = (shares * means).sum(0)
        return mean, (shares * (variances + (means - mean).square())).sum(0), total

    @cygrad.no_grad()
    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics towards those of a batch."""
        assert self.num_batches_tracked is not None and self.running_mean is not None and self.running_var is not None
        self.num_batches_tracked.add_(1)
        factor = 1 / float(self.num_batches_tracked.item()) if self.momentum is None else self.momentum
        unbiased = variance * (count / (count - 1))
        for running, value in ((self.running_mean, mean), (self.running_var, unbiased)):
            running.lerp_(value.to(running.dtype), factor)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Return `module` with all batch norms replaced by this class, keeping parameters and statistics.

        >>> from cygrad import nn
        >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))).__name__
        'SyncBatchNorm'
        """
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        if not isinstance(module, _BatchNorm):
            return module
        new = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
        new.process_group = process_group
        new._parameters.update(module._parameters)
        new._buffers.update(module._buffers)
        return new.train(module.training)
