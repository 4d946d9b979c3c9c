"""`faults.py HOW LIMIT [RANK]`: three collectives, and then something goes wrong in rank 1, or RANK, in this way."""

import os
import signal
import sys
import time
from datetime import timedelta

import cygrad as torch
import cygrad.distributed as dist

how, limit = sys.argv[1], float(sys.argv[2])
victim = int(sys.argv[3]) if len(sys.argv) > 3 else 1
if how == "fails elsewhere":  # as if each rank were on a machine of its own
    from mpi4py import MPI

    from cygrad.distributed._c10d import connection

    real = connection.Guard
    connection.Guard = lambda everyone, here: real(everyone, MPI.COMM_SELF)
if how == "is slow":
    from cygrad.distributed._c10d.supervision import guard

    guard._NOTE_AFTER = 0.2
dist.init_process_group("gloo", timeout=timedelta(seconds=limit))


def fork():
    """Let a child try a collective; it must not be taken for this rank."""
    if os.fork() == 0:
        try:
            dist.barrier()
        except RuntimeError as error:
            os.write(2, f"child: {error}\n".encode())
        os._exit(0)
    os.wait()


def go_wrong(x):
    if how in ("raises", "fails elsewhere"):
        raise ValueError("bad batch")
    if how == "is killed":
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "is stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "leaves":
        sys.exit(0)
    if how == "is slow":
        time.sleep(2)  # the others say that they wait
    if how == "forks":
        fork()
    if how == "skips a monitored barrier":
        time.sleep(99)
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
    if step == 3 and dist.get_rank() == victim:
        go_wrong(x)
    if step == 3 and how == "skips a monitored barrier":
        dist.monitored_barrier(timeout=timedelta(seconds=0.5), wait_all_ranks=True)
    dist.all_reduce(x)  # the call that the others wait in
dist.barrier()
dist.destroy_process_group()
try:
    dist.all_reduce(x)
except ValueError as error:
    assert str(error).startswith("Default process group has not been initialized"), error
    print("all through", flush=True)
