"""The classes of PyTorch's older form of tensors spread over processes, which `DTensor` has replaced."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed._shard import sharded_tensor

also_named(__name__, _utils=sharded_tensor, api=sharded_tensor, metadata=sharded_tensor, sharding_spec=sharded_tensor)
