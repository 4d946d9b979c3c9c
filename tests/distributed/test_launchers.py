"""Starting programs: `cygrad.distributed.run`, and what launchers say in the environment."""

import os
import signal
import subprocess
import sys
import time

import pytest
from mpi_runs import ended, environment, needs_mpi

import cygrad.distributed as dist
from cygrad.distributed import launch, run
from cygrad.distributed._c10d import connection
from cygrad.distributed._c10d.supervision.board import is_alive
from cygrad.distributed._c10d.supervision.launchers import Launch, fill_environment, launched

LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "MPI_LOCAL", "SLURM_")


@pytest.fixture
def no_launcher(monkeypatch):
    for name in list(os.environ):
        if name.startswith(LAUNCHERS) or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ("PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", ("mpiexec", 3, 8, 1, 2)),
        ("PMI_RANK=0 PMI_SIZE=2", ("mpiexec", 0, 2, -1, -1)),
        (
            "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4",
            ("Open MPI's mpiexec", 5, 6, 1, 4),
        ),
        (
            "SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3",
            ("srun", 9, 11, 1, 3),
        ),
        ("PMI_RANK=4 PMI_SIZE=8 SLURM_PROCID=4 SLURM_STEP_NUM_TASKS=8", ("mpiexec", 4, 8, -1, -1)),
        (
            "PMI_RANK=9 PMI_SIZE=11 SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 "
            "SLURM_STEP_TASKS_PER_NODE=4(x2),3",  # srun --mpi=pmi2
            ("srun", 9, 11, 1, 3),
        ),
        (
            "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 "
            "SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x2)",  # mpiexec in a Slurm job
            ("mpiexec", 3, 4, 1, 2),
        ),
        ("RANK=1 WORLD_SIZE=4", None),
        ("SLURM_PROCID=x SLURM_STEP_NUM_TASKS=8", None),
    ],
)
def test_what_launchers_say(variables, expected, no_launcher, monkeypatch):
    for each in variables.split():
        monkeypatch.setenv(*each.split("=", 1))
    assert launched() == (None if expected is None else Launch(*expected))


def test_variables_of_torchrun(no_launcher, monkeypatch):
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in names:  # so that they are put back
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    fill_environment()
    assert "RANK" not in os.environ
    monkeypatch.setenv("MASTER_PORT", "1234")
    for name, value in (("PMI_RANK", 3), ("PMI_SIZE", 8), ("MPI_LOCALRANKID", 1), ("MPI_LOCALNRANKS", 2)):
        monkeypatch.setenv(name, str(value))
    fill_environment()
    assert [os.environ[name] for name in names] == ["3", "8", "1", "2", "127.0.0.1", "1234"]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"rank": 1, "world_size": 4}, r"init_process_group\(\): rank=1, but the launcher has given .* rank=3"),
        ({"rank": 3, "world_size": 2}, r"world_size=2, but the launcher has given this process world_size=4"),
        ({"rank": 0, "world_size": 1, "init_method": "env://"}, "rank=0, but the launcher has given"),
    ],
)
def test_numbers_that_disagree(numbers, message, no_launcher, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(RuntimeError, match=message):
        dist.init_process_group("gloo", **numbers)
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("is_child", "text"), [(False, "nproc-per-node 2 train.py|mpiexec -n 2"), (True, "elastic_launch")]
)
def test_worlds_without_a_launcher(is_child, text, no_launcher, monkeypatch):
    monkeypatch.setattr(connection, "_is_of_multiprocessing", lambda: is_child)
    with pytest.raises(RuntimeError, match=rf"a world of 2 processes, and no launcher[^\n]*\n  to fix it: .*({text})"):
        dist.init_process_group("gloo", rank=0, world_size=2)


def test_a_process_may_stay_alone_under_a_launcher(no_launcher, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setenv("PMI_SIZE", "4")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_world_size() == 1
    dist.destroy_process_group()


def test_options_that_cannot_be_followed(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    for options, error, message in (
        (["--nnodes", "2"], RuntimeError, "MPI starts the processes of all machines from one\n.*--hosts first,second"),
        (["--node-rank", "1"], RuntimeError, "MPI starts the processes of all machines from one"),
        (["--nproc-per-node", "some"], ValueError, "^Unsupported nproc_per_node value: some"),
        (["--nproc-per-node", "0"], ValueError, "^Unsupported nproc_per_node value: 0"),
        (["--nnodes", "1:2:3"], RuntimeError, '^nnodes=1:2:3 is not in "MIN:MAX" format'),
        (["--nnodes", "3", "--hosts", "a,b"], ValueError, "--nnodes 3, and 2 names of machines: a,b"),
    ):
        with pytest.raises(error, match=message):
            run.main([*options, "script.py"])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("HYDRA build details:", ["-n", "6", "-ppn", "3", "-hosts", "a,b"]),
        (
            "mpiexec (Open MPI) 5.0.11",
            ["-n", "6", "--oversubscribe", "--map-by", "ppr:3:node:oversubscribe", "--host", "a:3,b:3"],
        ),
    ],
)
def test_lines_of_mpiexec(version, expected, tmp_path, monkeypatch):
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(run, "_mpiexec", lambda: str(program))
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    args = run.parse_args(["--hosts", "a,b", "--nproc-per-node", "3", "-m", "package.train", "--lr", "1"])
    line = run._line(args, 2, 3)
    assert line[: len(expected) + 1] == [str(program), *expected]
    assert line[len(expected) + 1 :] == [
        sys.executable, "-u", "-m", "cygrad.distributed._child", "module", "package.train", "--lr", "1",
    ]  # fmt: skip


def test_options_in_the_environment(monkeypatch):
    for name, value in (("NPROC_PER_NODE", "4"), ("MAX_RESTARTS", "3"), ("STANDALONE", "1"), ("MODULE", "0")):
        monkeypatch.setenv(f"PET_{name}", value)
    args = run.parse_args(["--max_restarts", "1", "--rdzv-id=7", "--signals-to-handle", "SIGINT", "script.py", "-x"])
    assert (args.nproc_per_node, args.max_restarts, args.standalone, args.module) == ("4", 1, True, False)
    assert (args.rdzv_id, args.training_script, args.training_script_args) == ("7", "script.py", ["-x"])
    assert run.parse_args(["script.py"]).max_restarts == 3


def test_launch_gives_the_script_its_number(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])  # a script changes both
    monkeypatch.setattr(sys, "path", [*sys.path])
    script = tmp_path / "script.py"
    script.write_text("import os, sys\nprint(sys.argv[1:], os.environ['LOCAL_RANK'])\n")
    for options, shown in (([], "['--local-rank=0', '--lr', '1'] 0\n"), (["--use-env"], "['--lr', '1'] 0\n")):
        launch.main([*options, str(script), "--lr", "1"])
        assert capsys.readouterr().out == shown
    with pytest.raises(ValueError, match=r"^When using the '--no-python' flag, you must also set the '--use-env' fl"):
        launch.main(["--no-python", "true"])


def test_without_mpiexec(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"there is no mpiexec.*\n.*pip install mpi4py mpich"):
        run.main(["--nproc-per-node", "2", "script.py"])


def test_without_mpi4py(no_launcher, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"^Distributed package doesn't have MPI built in\n(.|\n)*pip install"):
        dist.init_process_group("gloo")
    assert not dist.is_initialized()


# --- With processes ------------------------------------------------------------------------------

SCRIPT = """
import os, sys, time
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")
told = [os.environ[name] for name in names]
import cygrad.distributed as dist
dist.init_process_group("gloo")
sys.stdout.write(" ".join(["told", *told, *sys.argv[1:]]) + "\\n")  # at once, as others write too
if sys.argv[1] == "fails" and told[0] == told[4] == "0":
    raise ValueError("first try")
if sys.argv[1] == "sleeps":
    sys.stdout.write(f"pid {os.getpid()}\\n")
    time.sleep(100)
dist.barrier()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def line(*options):
    return [sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", "2", *options]


@needs_mpi
def test_run(script):
    code, output = ended(line("--standalone", script, "argument"))
    assert code == 0, output
    assert sorted(output.splitlines()) == ["told 0 0 2 2 0 argument", "told 1 1 2 2 0 argument"]


@needs_mpi
def test_run_a_program_or_a_module(script, tmp_path, monkeypatch):
    code, output = ended(line("--no-python", "sh", "-c", "echo rank $RANK"))
    assert code == 0 and sorted(output.splitlines()) == ["rank 0", "rank 1"]
    launched = [sys.executable, "-m", "cygrad.distributed.launch", "--nproc-per-node", "2", script, "argument"]
    code, output = ended(launched)
    assert code == 0, output
    assert sorted(output.splitlines()) == [f"told {rank} {rank} 2 2 0 --local-rank={rank} argument" for rank in (0, 1)]
    monkeypatch.chdir(tmp_path)  # which `-m` searches first, as in `python -m script`
    code, output = ended(line("-m", "script", "argument"))
    assert code == 0 and "told 0 0 2 2 0 argument" in output, output


@needs_mpi
def test_restarts(script):
    code, output = ended(line("--max-restarts", "2", script, "fails"))
    assert code == 0, output
    assert "rank 0 has failed: ValueError: first try at script.py:9" in output
    assert "[cygrad.distributed.run] the job has failed with code 1; start 1 of 2 more" in output
    assert "told 1 1 2 2 1 fails" in output and "told 1 1 2 2 2 fails" not in output
    code, output = ended(line(script, "fails"))
    assert code == 1 and "start 1" not in output


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(script, number):
    process = subprocess.Popen(
        line(script, "sleeps"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    pids = []
    while len(pids) < 2:
        text = process.stdout.readline()
        assert text, f"the job has ended with {process.wait()}"
        words = text.split()
        pids += [int(words[1])] if words[:1] == ["pid"] else []
    process.send_signal(number) if number == signal.SIGKILL else os.killpg(process.pid, number)  # Ctrl-C: to the group
    assert process.wait(90) != 0
    process.stdout.close()
    end = time.monotonic() + 30
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < end, f"of {pids}, some are left"
        time.sleep(0.05)
