"""Memory sharing with other libraries through DLPack.

>>> import cygrad, numpy
>>> a = numpy.from_dlpack(cygrad.zeros(2))
>>> cygrad.utils.dlpack.from_dlpack(a).shape
torch.Size([2])
"""

from cygrad import from_dlpack, to_dlpack
from cygrad._ops.creation.dlpack import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
