"""Where the output of processes goes that `run` starts, their variables, and functions that are called in processes."""

import json
import os
import sys
from pathlib import Path

import pytest
from mpi_runs import ended, needs_mpi

from cygrad.distributed import run
from cygrad.distributed._logs import Logs
from cygrad.distributed.launcher import LaunchConfig, launch_agent

SCRIPT = """
import os, sys
names = sorted(name for name in os.environ if name.startswith(("GROUP_", "ROLE_", "TORCHELASTIC_")))
print(" ".join(f"{name}={os.environ[name]}" for name in names))
print("rank", os.environ["RANK"], "complains", file=sys.stderr)
if "fails" in sys.argv and os.environ["RANK"] == sys.argv[2]:
    raise ValueError("bad batch")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def runs(*options, size=2):
    return ended([sys.executable, "-m", "cygrad.distributed.run", "--nproc-per-node", str(size), *options])


@needs_mpi
def test_logs_of_two_processes(script, tmp_path):
    options = ["--log-dir", str(tmp_path / "logs"), "--redirects", "1", "--tee", "0:2", "--role", "trainer"]
    code, output = runs(*options, "--rdzv-id", "7", script)
    assert code == 0, output
    assert output.splitlines() in (
        ["[trainer0]:rank 0 complains", "rank 1 complains"], ["rank 1 complains", "[trainer0]:rank 0 complains"]
    )  # fmt: skip
    (folder,) = (tmp_path / "logs").iterdir()
    assert folder.name.startswith("7_")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.*")}
    assert files == {f"attempt_0/{name}" for name in ("0/stdout.log", "0/stderr.log", "1/stdout.log")}
    for rank in range(2):
        own = folder / "attempt_0" / str(rank)
        told = dict(pair.split("=") for pair in (own / "stdout.log").read_text().split())
        assert told.pop("TORCHELASTIC_ERROR_FILE") == str(own / "error.json")
        assert told == {
            "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": "trainer", "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_RUN_ID": "7", "TORCHELASTIC_USE_AGENT_STORE": "False",
        }  # fmt: skip


@needs_mpi
def test_errors_are_logged_and_hidden_ranks_are_silent(script, tmp_path):
    code, output = runs("--log-dir", str(tmp_path), "-r", "0:3", "--local-ranks-filter", "0", script, "fails", "1")
    assert code != 0
    (folder,) = tmp_path.glob("none_*")
    error = folder / "attempt_0" / "1" / "error.json"
    assert json.loads(error.read_text())["message"]["message"] == "ValueError: bad batch"
    own = [line for line in output.splitlines() if "cygrad.distributed.run" in line or "error.json" in line]
    assert own == [
        f"[cygrad.distributed.run] the logs of the processes are in {folder / 'attempt_0'}",
        f"  rank 1: ValueError: bad batch ({error})",
    ]
    assert "complains" not in output


def test_one_process_is_restarted_and_keeps_its_exit_code(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "print('start', os.environ['TORCHELASTIC_RESTART_COUNT'], os.environ['RANK'], os.environ['WORLD_SIZE'])\n"
        "sys.exit(3)\n"
    )
    code, output = runs("--max-restarts", "1", str(script), size=1)
    assert code == 3
    assert [line for line in output.splitlines() if line.startswith("start")] == ["start 0 0 1", "start 1 0 1"]


@pytest.mark.parametrize(
    ("options", "streams", "shown"),
    [
        (["-r", "3"], {0: 3, 1: 3}, {0, 1}),
        (["-r", "1", "-t", "1:2"], {0: 1, 1: 3}, {0, 1}),
        (["--local-ranks-filter", "1"], {0: 0, 1: 0}, {1}),
    ],
)
def test_options(options, streams, shown, tmp_path):
    logs = Logs(run.parse_args([*options, "--log-dir", str(tmp_path), "script.py"]), 2)
    told = json.loads(logs.variables(2)["CYGRAD_DISTRIBUTED_LOGS"])
    assert {int(rank): value for rank, value in told["streams"].items()} == streams
    assert told["hidden"] == [rank for rank in range(2) if rank not in shown]
    assert Path(told["folder"]).parent.parent == tmp_path and told["folder"].endswith("attempt_2")


def test_wrong_options(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for options, error, text in (
        (["-r", "4"], ValueError, "std stream value must match"),
        (["--local-ranks-filter", "a"], ValueError, "--local_ranks_filter must be a comma-separated list of integers"),
        (["--log-dir", str(file)], NotADirectoryError, f"log_dir: {file} is a file"),
    ):
        with pytest.raises(error, match=text):
            run.main([*options, "script.py"])


def test_standalone_runs_have_names(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    script = tmp_path / "script.py"
    script.write_text("import os\nprint(os.environ['TORCHELASTIC_RUN_ID'], os.environ['ROLE_NAME'])\n")
    for _ in range(2):
        run.main(["--standalone", str(script)])
    first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert len(first[0]) == 36 and first[0] != second[0] and first[1] == "default"
    assert "TORCHELASTIC_RUN_ID" not in os.environ


# --- Functions in processes ----------------------------------------------------------------------

FUNCTIONS = """
import sys
import cygrad as torch, cygrad.distributed as dist
from cygrad.distributed.launcher import LaunchConfig, elastic_launch

def total(x):
    dist.init_process_group()
    y = torch.full((2,), float(x)) * (1 + dist.get_rank())
    dist.all_reduce(y)
    if dist.get_rank() == 1 and x == 7:
        raise ValueError("seven")
    dist.destroy_process_group()
    return y

if __name__ == "__main__":
    config = LaunchConfig(1, 1, nproc_per_node=2, max_restarts=0, start_method=sys.argv[1])
    if sys.argv[1] == "spawn":
        print({rank: y.tolist() for rank, y in elastic_launch(config, total)(2).items()})
    else:
        print(elastic_launch(config, lambda: sys.argv[0] != "")())
    try:
        elastic_launch(config, total)(7)
    except dist.elastic.multiprocessing.errors.ChildFailedError as error:
        rank, failure = error.get_first_failure()
        print("failed", rank, failure.message["message"], error.name)
"""


@needs_mpi
@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=pytest.mark.slow)])
def test_functions_are_called_in_processes(method, tmp_path):
    pytest.importorskip("cloudpickle") if method == "fork" else None
    script = tmp_path / "functions.py"
    script.write_text(FUNCTIONS)
    code, output = ended([sys.executable, str(script), method])
    assert code == 0, output
    first = "{0: [6.0, 6.0], 1: [6.0, 6.0]}" if method == "spawn" else "{0: True, 1: True}"
    assert first in output.splitlines()
    assert "failed 1 ValueError: seven total" in output.splitlines()


def test_functions_that_cannot_be_called():
    with pytest.raises(RuntimeError, match=r"launch_agent\(\): 2 machines; MPI starts"):
        launch_agent(LaunchConfig(2, 2, 1), max, [1])
    with pytest.raises(TypeError, match="the entrypoint 'train.py' is a program, not a function"):
        launch_agent(LaunchConfig(1, 1, 2), "train.py", [])


AS_TORCH = """
import sys, cygrad, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
sys.stdout.write(f"total {x.item()} {torch.Tensor is cygrad.Tensor}\\n")
dist.destroy_process_group()
"""


@needs_mpi
def test_processes_of_a_program_for_which_torch_means_cygrad(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(AS_TORCH)
    line = [sys.executable, "-m", "cygrad", "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    code, output = ended(line)
    assert code == 0 and output.split() == ["total", "2.0", "True"] * 2, output
