"""Prints digests of the weights after training under `deterministic`, with dropout, for several numbers of shards."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where `support` is

from support import data_parallel_checks

import cygrad.distributed as dist

dist.init_process_group("mpi")
for shards in (4, 7, 8):
    digests = data_parallel_checks.weights_in_order(shards, dropout=0.3)
    data_parallel_checks.same_everywhere(digests)
    if dist.get_rank() == 0:
        print(shards, *digests.values(), flush=True)
dist.destroy_process_group()
