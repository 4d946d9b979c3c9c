"""Three collectives, and then something goes wrong in rank 1, in a way that the first argument names."""

import os
import signal
import sys
import time
from datetime import timedelta

import cygrad as torch
import cygrad.distributed as dist

how, limit = sys.argv[1], float(sys.argv[2])
dist.init_process_group("gloo", timeout=timedelta(seconds=limit))


def go_wrong(x):
    if how == "raises":
        raise ValueError("bad batch")
    if how == "is killed":
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "is stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "leaves":
        sys.exit(0)
    if how == "is late":
        time.sleep(100)
    if how == "calls another":
        dist.broadcast(x, 0)
    if how == "has another shape":
        dist.all_reduce(x[:10])
    if how == "has another dtype":
        dist.all_reduce(x.double())
    if how == "has another op":
        dist.all_reduce(x, dist.ReduceOp.MAX)
    if how == "raises in backward":
        weight = torch.ones(3, requires_grad=True)
        weight.register_hook(lambda gradient: 1 / 0)
        weight.sum().backward()


for step in range(5):
    x = torch.ones(1000)
    if step == 3 and dist.get_rank() == 1:
        go_wrong(x)
    dist.all_reduce(x)  # the call that the others wait in
print("all through", flush=True)
