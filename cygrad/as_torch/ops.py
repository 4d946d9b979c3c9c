"""`torch._ops` after `cygrad.as_torch()`: the classes of PyTorch's ops. cygrad's own `_ops` holds families of ops."""

from cygrad import ops as ops
from cygrad.ops import OpOverload as OpOverload
from cygrad.ops import OpOverloadPacket as OpOverloadPacket
from cygrad.ops import _OpNamespace as _OpNamespace
from cygrad.ops._higher_order import HigherOrderOperator as HigherOrderOperator
