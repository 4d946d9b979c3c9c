"""FSDP: parameters, gradients and the optimizer's state are spread over the processes of a group."""

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.fsdp import _fully_shard, api, fully_sharded_data_parallel, wrap
from cygrad.distributed.fsdp._fully_shard import *
from cygrad.distributed.fsdp.api import *
from cygrad.distributed.fsdp.fully_sharded_data_parallel import FlatParameter, FullyShardedDataParallel

__all__ = ["FlatParameter", "FullyShardedDataParallel", *_fully_shard.__all__, *api.__all__]

also_named(
    __name__,
    _common_utils=fully_sharded_data_parallel,
    _flat_param=fully_sharded_data_parallel,
    _runtime_utils=fully_sharded_data_parallel,
    _traversal_utils=fully_sharded_data_parallel,
    _wrap_utils=wrap,
)
