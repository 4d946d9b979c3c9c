"""`phases.py PHASE RANK HOW FOLDER`: train and save; in this phase this rank goes wrong in this way.

PHASE is "init", "forward", "backward", "hook", "collective", "checkpoint" or "exit"; HOW is "kill", "raise",
"interrupt" (SIGINT) or "leave".
"""

import atexit
import os
import signal
import sys
import threading
import time

import cygrad as torch
import cygrad.distributed as dist
import cygrad.distributed.checkpoint as dcp
from cygrad.distributed._c10d.supervision.leftovers import files_of_mpi

phase, victim, how, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
is_victim = int(os.environ["PMI_RANK"]) == victim
step = -1


def go_wrong(here):
    """The end of the victim, if it is in this phase."""
    if not is_victim or phase != here or step not in (-1, 2):
        return
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if how == "leave":
        sys.exit(3)
    raise ValueError(f"wrong in {here}")


def soon(here):
    """Let the victim end while it does something else; an exception ends a thread only."""
    if is_victim and phase == here and step == 2 and how in ("kill", "interrupt"):
        threading.Thread(target=lambda: (time.sleep(0.05), go_wrong(here)), daemon=True).start()


go_wrong("init")
dist.init_process_group("gloo")
shared = "".join(f"file {path}\n" for path in files_of_mpi([os.getpid()]))  # which it leaves if it is killed
sys.stderr.write(f"pid {os.getpid()}\n{shared}")
if phase == "exit":
    atexit.register(go_wrong, "exit")
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))), bucket_cap_mb_list=[0.01]
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
model.module[1].register_forward_pre_hook(lambda *_: go_wrong("forward"))
model.module[2].weight.register_hook(lambda gradient: go_wrong("backward"))
model.module[2].weight.register_post_accumulate_grad_hook(lambda parameter: go_wrong("hook"))
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    if phase == "collective" and step == 2:
        if is_victim:
            soon("collective")
            work = dist.all_reduce(torch.ones(1000), async_op=True)
            if how in ("raise", "leave"):
                go_wrong("collective")
            time.sleep(2)
        dist.all_reduce(torch.ones(1000))
        dist.barrier()
    if phase == "checkpoint":
        soon("checkpoint")
    dcp.save({"model": model.module.state_dict(), "step": step}, checkpoint_id=os.path.join(folder, f"step-{step}"))
    if phase == "checkpoint" and step == 2 and is_victim:
        time.sleep(2)
    go_wrong("checkpoint")
step = -1
sys.stdout.write("through\n")
