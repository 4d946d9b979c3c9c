"""saves.py KIND save|load|async|kill DIRECTORY: trains and saves, or loads and prints what comes of it."""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where `support` is

from support import checkpoint_checks as checks

import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp

kind, what, directory = sys.argv[1:]
dist.init_process_group("mpi")
if what == "load":
    result = checks.loads(kind, directory)
    if dist.get_rank() == 0:
        for name, value in result.items():
            print(name, [round(each, 3) + 0.0 for each in value.reshape(-1)[:3].tolist()])
elif what == "kill":
    write = dcp.FileSystemWriter.write_part

    def write_and_die(self, rank, *arguments):
        write(self, rank, *arguments)
        if rank == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    dcp.FileSystemWriter.write_part = write_and_die
    checks.trains_and_saves(kind, directory, steps=5)
else:
    checks.trains_and_saves(kind, directory, is_async=what == "async")
dist.destroy_process_group()
