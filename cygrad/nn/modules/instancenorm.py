"""Instance norms, under PyTorch's module path: for `isinstance(layer, nn.modules.instancenorm._InstanceNorm)` etc.

>>> from cygrad import nn
>>> isinstance(nn.InstanceNorm2d(3), nn.modules.instancenorm._InstanceNorm)
True
"""

from cygrad.nn.modules.lazy_layers import LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d
from cygrad.nn.modules.normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from cygrad.nn.modules.normalization import _InstanceNorm as _InstanceNorm

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]
