"""A job over two machines: network namespaces of Linux with a cable between them, and other host names.

What stands in for `ssh` starts a command in the second namespace. Needs root, and the program `ip`.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_runs import PROGRAMS, ended, needs_mpi

pytestmark = [needs_mpi, pytest.mark.slow]

SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done  # options
shift  # the host: there is one
exec ip netns exec %s unshare --uts --mount --ipc sh -c "hostname second; mount -t tmpfs none /dev/shm; $*"
"""


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True).stdout


def wait_for_the_cable(spaces):
    """MPI passes over a link that is not up yet, which takes the kernel a moment."""
    for space in spaces:
        for _ in range(100):
            if b" state UP " in ip("-n", space, "link", "show", "cable"):
                break
            time.sleep(0.05)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A function that runs a command on the first of two machines, from which the second can be reached."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs network namespaces: Linux, root, and the programs ip and unshare")
    number = os.getpid()
    first, second = spaces = f"cygrad-a{number}", f"cygrad-b{number}"
    try:
        for space in spaces:
            ip("netns", "add", space)
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for place, space in enumerate(spaces, 1):
            ip("-n", space, "address", "add", f"10.77.0.{place}/24", "dev", "cable")
            for link in ("lo", "cable"):
                ip("-n", space, "link", "set", link, "up")
        wait_for_the_cable(spaces)
    except subprocess.CalledProcessError as error:
        for space in spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode()}")
    ssh = tmp_path_factory.mktemp("ssh") / "ssh"
    ssh.write_text(SSH % second)
    ssh.chmod(0o755)

    def run(*command, **options):
        line = ["ip", "netns", "exec", first, *map(str, command)]
        return ended(line, HYDRA_LAUNCHER="ssh", HYDRA_LAUNCHER_EXEC=str(ssh), **options)

    yield run
    for space in spaces:
        ip("netns", "delete", space)


HOSTS = "10.77.0.1,10.77.0.2"
MPIEXEC = Path(sys.executable).parent / "mpiexec", "-hosts", HOSTS, "-ppn", 2, "-n", 4, sys.executable

WHERE = """
import os, socket, sys
import cygrad as torch, cygrad.distributed as dist
local = os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"]
dist.init_process_group()
x = torch.full((100_000,), dist.get_rank() + 1.0)
dist.all_reduce(x)
group = dist.new_group([1, 2])  # one on each machine
if dist.get_rank() in (1, 2):
    dist.all_reduce(x, group=group)
names = [None] * 4
dist.all_gather_object(names, socket.gethostname())
store = dist.distributed_c10d._get_default_store()
store.set(f"from {dist.get_rank()}", "here")
store.wait([f"from {each}" for each in range(4)])
second = [each for each in names if each == "second"]
sys.stdout.write(f"{dist.get_rank()} {' '.join(local)} {x[0].item()} {names.index('second')} {len(second)}\\n")
dist.destroy_process_group()
"""


def test_two_machines_are_one_world(start, tmp_path):
    script = tmp_path / "where.py"
    script.write_text(WHERE)
    expected = ["0 0 2 10.0 2 2", "1 1 2 20.0 2 2", "2 0 2 20.0 2 2", "3 1 2 10.0 2 2"]
    code, output = start(*MPIEXEC, script)
    assert code == 0 and sorted(output.splitlines()) == expected, output
    run = sys.executable, "-m", "cygrad.distributed.run", "--hosts", HOSTS, "--nproc-per-node", 2
    code, output = start(*run, script)
    assert code == 0 and sorted(output.splitlines()) == expected, output


def test_training_on_two_machines(start):
    code, output = start(*MPIEXEC, PROGRAMS / "training.py", timeout=200)
    assert code == 0 and "check_equals_one_process" in output.split(), output


@pytest.mark.parametrize(
    ("how", "limit", "rank", "texts"),
    [
        (
            "raises", 60, 1,
            [
                r"rank 1 \(pid \d+\) failed: ValueError: bad batch at faults.py:\d+",
                r"rank 0 \(pid \d+\) waited in #4 all_reduce of \(1000,\) float32 at faults.py:\d+",
                r"\[rank 2\] cygrad.distributed.RankFailure: rank 1 has failed: ValueError: bad batch at "
                r"faults.py:\d+\n"
                r"  this rank waited in #4 all_reduce of \(1000,\) float32 at faults.py:\d+",
            ],
        ),
        (
            "is killed", 60, 1,
            [
                r"rank 1 \(pid \d+\) was the first to end \(killed\?\)",
                r"rank 0 \(pid \d+\) waited in #4 all_reduce of \(1000,\) float32 at faults.py:\d+",
            ],
        ),
        (
            "is killed", 60, 2,
            [
                r"rank 2 \(pid \d+\) was the first to end \(killed\?\)",
                r"rank 3 \(pid \d+\) waited in #4 all_reduce of \(1000,\) float32 at faults.py:\d+",
            ],
        ),
        (
            "is late", 1.5, 1,
            [
                r"Timed out waiting 1500ms",
                r"rank 0 \(pid \d+\) waited in #4 all_reduce of \(1000,\) float32 at faults.py:\d+",
            ],
        ),
    ],
)  # fmt: skip
def test_faults(start, tmp_path, how, limit, rank, texts):
    # A copy of its own: other workers of this run start the same program.
    program = shutil.copy(PROGRAMS / "faults.py", tmp_path)
    code, output = start(*MPIEXEC, program, how, limit, rank, timeout=90)
    assert code != 0 and "all through" not in output
    for text in texts:
        assert re.search(text, output), output
    # mpiexec tells the other machine to kill its ranks, and does not wait until they are gone.
    assert gone(program, within=30), output


LEAVES = """
import sys, time
import cygrad as torch, cygrad.distributed as dist
dist.init_process_group()
dist.destroy_process_group()
dist.init_process_group()
x = torch.ones(10)
dist.all_reduce(x)
if dist.get_rank() >= 2:
    sys.exit(0)  # a whole machine
if sys.argv[1] == "pairs":
    if dist.get_rank() == 1:
        time.sleep(6)
    dist.send(x, 1) if dist.get_rank() == 0 else dist.recv(x, 0)
    dist.send(x, 0) if dist.get_rank() == 1 else dist.recv(x, 1)
    sys.stdout.write("met\\n")
    sys.exit(0)
dist.all_reduce(x)  # without a word it waits for half an hour
"""


def test_a_machine_whose_ranks_have_left(start, tmp_path):
    """Other machines do not see its processes; those that do not wait for them go on."""
    script = tmp_path / "leaves.py"
    script.write_text(LEAVES)
    code, output = start(*MPIEXEC, script, "all")
    assert code != 0
    assert re.search(r"RankFailure: rank [23] has left its program or the group, and does not come any more\n", output)
    assert re.search(r"rank 0 \(pid \d+\) (waited in|failed: .*\n *after) #2 all_reduce of \(10,\)", output), output
    code, output = start(*MPIEXEC, script, "pairs")
    assert code == 0 and sorted(output.split()) == ["met", "met"], output


def gone(program, within):
    """Wait until no process runs ``program``, at most ``within`` seconds; false if one still does."""
    end = time.monotonic() + within
    while subprocess.run(["pgrep", "-f", program], capture_output=True, check=False).returncode == 0:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
