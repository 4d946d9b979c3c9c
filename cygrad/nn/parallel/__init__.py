"""PyTorch's data-parallel wrappers: over processes, and over devices, of which there is one for each process."""

from cygrad.nn.parallel.data_parallel import DataParallel, data_parallel
from cygrad.nn.parallel.distributed import DistributedDataParallel
from cygrad.nn.parallel.scatter_gather import gather, parallel_apply, replicate, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip
