"""PyTorch's data-parallel wrappers: over processes, and over devices, of which there is one for each process."""

import sys as _sys

from cygrad.nn.parallel import scatter_gather
from cygrad.nn.parallel.data_parallel import DataParallel, data_parallel
from cygrad.nn.parallel.distributed import DistributedDataParallel
from cygrad.nn.parallel.scatter_gather import gather, parallel_apply, replicate, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip

for _name in ("parallel_apply", "replicate"):  # modules of their own in PyTorch
    _sys.modules[f"{__name__}.{_name}"] = scatter_gather
