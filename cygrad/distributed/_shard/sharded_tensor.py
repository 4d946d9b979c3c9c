"""`ShardedTensor` and what describes its parts. No such tensors are made in one process: libraries ask `isinstance`."""

import sys
from dataclasses import dataclass, field
from typing import Any

from cygrad import Tensor
from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.module_names import also_named

__all__ = ["ChunkShardingSpec", "EnumerableShardingSpec", "Shard", "ShardMetadata", "ShardedTensor", "ShardingSpec"]


@dataclass
class ShardMetadata:
    """Where a part begins, its size, and the process and device that has it."""

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: Any = None


@dataclass
class Shard:
    """A part of a tensor, in this process."""

    tensor: Tensor
    metadata: ShardMetadata


class ShardingSpec:
    """The base of descriptions of how a tensor is cut."""


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """The tensor is cut along `dim` into equal parts, one for each of the places."""

    dim: int
    placements: list[Any]


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """The tensor is cut into the parts of this list."""

    shards: list[ShardMetadata] = field(default_factory=list)


class ShardedTensor:
    """A tensor in parts. Raises RuntimeError on construction: `distributed.tensor.DTensor` works in one process."""

    def __init__(self, *args, **kwargs):
        raise one_process("ShardedTensor, which is in several processes")


also_named(__name__, api=sys.modules[__name__], metadata=sys.modules[__name__], shard=sys.modules[__name__])
