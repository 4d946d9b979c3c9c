"""All checks of collectives, in each rank; rank 0 prints the names of those that are through."""

from collective_checks import CHECKS

import cygrad.distributed as dist

dist.init_process_group("mpi")
for name, check in CHECKS.items():
    check()
    dist.barrier()
    if dist.get_rank() == 0:
        print(name, flush=True)
dist.destroy_process_group()
