"""SyncBatchNorm for a single process, where it is a batch norm for any number of dimensions."""

from __future__ import annotations

from typing import Any

from cygrad import Tensor
from cygrad.nn.modules.module import Module
from cygrad.nn.modules.normalization import _BatchNorm

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm1d` for inputs (N, C, ...) of any shape. With a single process there is nothing to synchronize.

    `process_group` is accepted for compatibility and has no effect.

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
