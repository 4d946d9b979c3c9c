"""Train until a signal tells rank 1 (or the launcher) to stop; each rank prints the step after which it has stopped.

`stops.py WHO`: rank 1 sends itself SIGUSR1 ("itself"), or SIGUSR2 ("other"), or twice ("twice"), or waits ("nobody").
"""

import os
import signal
import sys
import time

import cygrad as torch
import cygrad.distributed as dist

who = sys.argv[1]
seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
dist.init_process_group("gloo")
names = ["SIGUSR2"] if who == "other" else ["SIGUSR1"]
assert not dist.should_stop(signals=names)
rank = dist.get_rank()
sys.stdout.write(f"ready {os.getpid()}\n")
for step in range(2000):
    dist.all_reduce(torch.ones(1000))
    if step == 3 and rank == 1 and who != "nobody":
        os.kill(os.getpid(), getattr(signal, names[0]))
    if dist.should_stop(signals=names):
        break
    time.sleep(0.01)
assert dist.should_stop()
if who == "itself":
    assert seen == ([signal.SIGUSR1] if rank == 1 else []), seen
sys.stdout.write(f"rank {rank} stopped after {step}\n")
sys.stdout.flush()
if who == "twice" and rank == 1:
    os.kill(os.getpid(), signal.SIGUSR1)
    assert len(seen) == 2
dist.destroy_process_group()
