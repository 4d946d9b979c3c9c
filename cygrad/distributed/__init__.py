"""`torch.distributed` for programs that run in one process.

Everything that libraries import is here, and answers as in PyTorch where no group has been made. `init_process_group`
makes a group of one process, in which all collectives, `DistributedDataParallel`, FSDP and the rest work; a larger
world raises RuntimeError.
"""

from importlib import import_module as _import_module

from cygrad.distributed import constants as constants
from cygrad.distributed import distributed_c10d as distributed_c10d
from cygrad.distributed._c10d.launchers import fill_environment as _fill_environment
from cygrad.distributed.distributed_c10d import *
from cygrad.distributed.distributed_c10d import _all_gather_base as _all_gather_base
from cygrad.distributed.distributed_c10d import _rank_not_in_group as _rank_not_in_group
from cygrad.distributed.distributed_c10d import _reduce_scatter_base as _reduce_scatter_base
from cygrad.distributed.distributed_c10d import default_pg_timeout as default_pg_timeout

_fill_environment()

__all__ = [
    "DeviceMesh", "MicroBatchSampler", "default_pg_timeout", "deterministic", "get_shards", "init_device_mesh",
    "my_shards", *distributed_c10d.__all__,
]  # fmt: skip

# Imported on first use: few programs need them.
_MODULES = {
    "_composable", "_functional_collectives", "_shard", "_tensor", "algorithms", "autograd", "checkpoint",
    "device_mesh", "elastic", "fsdp", "launch", "launcher", "nn", "optim", "pipelining", "rpc", "run",
    "tensor", "utils",
}  # fmt: skip
_ELSEWHERE = {
    "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "GradBucket": "_c10d.grad_bucket",
    "MicroBatchSampler": "_deterministic", "deterministic": "_deterministic", "get_shards": "_deterministic",
    "my_shards": "_deterministic", "_compute_bucket_assignment_by_size": "_data_parallel.buckets",
}  # fmt: skip


def __getattr__(name):
    if name in _ELSEWHERE:
        globals()[name] = value = getattr(_import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
        return value
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'cygrad.distributed' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULES, *_ELSEWHERE})
