"""Batch norms, under PyTorch's module path: for `isinstance(layer, nn.modules.batchnorm._BatchNorm)` and the like.

>>> from cygrad import nn
>>> isinstance(nn.BatchNorm2d(3), nn.modules.batchnorm._BatchNorm)
True
"""

from cygrad.nn.modules.lazy_layers import LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d
from cygrad.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from cygrad.nn.modules.normalization import _BatchNorm as _BatchNorm
from cygrad.nn.modules.normalization import _NormBase as _NormBase
from cygrad.nn.modules.sync_batch_norm import SyncBatchNorm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]
