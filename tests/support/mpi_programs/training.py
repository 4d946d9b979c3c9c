"""All checks of training on top of collectives, in each rank; rank 0 prints the names of those that are through."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where `support` is

from support import data_parallel_checks, sharding_checks

import cygrad.distributed as dist

dist.init_process_group("mpi")
for name, check in {**data_parallel_checks.CHECKS, **sharding_checks.CHECKS}.items():
    check()
    dist.barrier()
    if dist.get_rank() == 0:
        print(name, flush=True)
dist.destroy_process_group()
