"""`torch.distributed`: groups of processes, the collectives between them, and what is built on these.

`init_process_group` finds the processes that `mpiexec`, `srun` or `cygrad.distributed.run` has started, by MPI, or
makes a group of this process alone. Without a group everything that libraries import answers as in PyTorch.

Collectives take `group=`, all processes by default, and most `async_op=`: then they return a `Work` to wait for, else
None. All processes of the group call them, in the same order. A process that is not in it gets a warning and does
nothing. They raise TypeError for what is no tensor, ValueError before `init_process_group`, and DistBackendError if a
process has failed or is not there in time.

>>> import cygrad, cygrad.distributed as dist
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> x = cygrad.ones(2)
>>> work = dist.all_reduce(x, async_op=True)
>>> work.wait(), x
(True, tensor([1., 1.]))
>>> dist.destroy_process_group()
"""

from importlib import import_module as _import_module

from cygrad.distributed import constants as constants
from cygrad.distributed import distributed_c10d as distributed_c10d
from cygrad.distributed._c10d.supervision.launchers import end_job_on_failure as _end_job_on_failure
from cygrad.distributed._c10d.supervision.launchers import fill_environment as _fill_environment
from cygrad.distributed.distributed_c10d import *
from cygrad.distributed.distributed_c10d import _all_gather_base as _all_gather_base
from cygrad.distributed.distributed_c10d import _coalescing_manager as _coalescing_manager
from cygrad.distributed.distributed_c10d import _get_process_group_name as _get_process_group_name
from cygrad.distributed.distributed_c10d import _rank_not_in_group as _rank_not_in_group
from cygrad.distributed.distributed_c10d import _reduce_scatter_base as _reduce_scatter_base
from cygrad.distributed.distributed_c10d import default_pg_timeout as default_pg_timeout

_fill_environment()
_end_job_on_failure()

__all__ = [
    "DeviceMesh", "MicroBatchSampler", "default_pg_timeout", "deterministic", "get_shards", "init_device_mesh",
    "mean_loss", "my_shards", "should_stop", *distributed_c10d.__all__,
]  # fmt: skip

# Imported on first use: few programs need them.
_MODULES = {
    "_composable", "_functional_collectives", "_shard", "_tensor", "algorithms", "autograd", "checkpoint",
    "collective_utils", "device_mesh", "elastic", "fsdp", "launch", "launcher", "nn", "optim", "pipelining",
    "remote_device", "rpc", "run", "tensor", "utils",
}  # fmt: skip
_ELSEWHERE = {
    "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh", "GradBucket": "_c10d.grad_bucket",
    "MicroBatchSampler": "_deterministic", "deterministic": "_deterministic", "get_shards": "_deterministic",
    "mean_loss": "_data_parallel.averages", "my_shards": "_deterministic", "should_stop": "_preemption",
    "_DEFAULT_FIRST_BUCKET_BYTES": "_data_parallel.buckets", "_broadcast_coalesced": "_data_parallel.agreement",
    "_compute_bucket_assignment_by_size": "_data_parallel.buckets",
    "_verify_params_across_processes": "_data_parallel.agreement",
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
