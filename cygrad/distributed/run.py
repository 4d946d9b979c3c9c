"""`python -m cygrad.distributed.run --nproc-per-node 4 script.py`: `torchrun`'s command line, for MPI.

It puts together the line of `mpiexec` and starts it, again after a failure if asked to. The processes find `RANK`,
`WORLD_SIZE`, `LOCAL_RANK` and the rest of `torchrun`'s variables. One process needs no MPI, and is this one unless it
may have to be started again or its output goes to a file.
"""

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import uuid

from cygrad import cuda
from cygrad.distributed._c10d.errors import HOW_TO_INSTALL
from cygrad.distributed._child import AS_TORCH, LOCAL_RANK_ARGUMENT, run_script
from cygrad.distributed._logs import Logs
from cygrad.distributed.launcher import as_rank_zero

__all__ = ["determine_local_world_size", "get_args_parser", "main", "parse_args", "parse_min_max_nnodes", "run"]

_IGNORED = (
    "--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf", "--monitor-interval", "--start-method", "--local-addr",
    "--duplicate-stdout-filters", "--duplicate-stderr-filters", "--event-log-handler", "--logs-specs",
    "--numa-binding", "--shutdown-timeout", "--signals-to-handle",
)  # fmt: skip
_END = 10  # seconds for processes to end when this one is stopped


def get_args_parser():
    """Return the parser of `torchrun`'s options; those that MPI has no use for are read and ignored.

    >>> from cygrad.distributed.run import get_args_parser
    >>> get_args_parser().parse_args(["--nproc-per-node", "2", "train.py"]).nproc_per_node
    '2'
    """
    parser = argparse.ArgumentParser(
        prog="python -m cygrad.distributed.run", description="Run a script as one process or several."
    )
    parser.add_argument("--nnodes", default="1:1", help="machines, as a number or min:max")
    parser.add_argument(
        "--nproc-per-node", "--nproc_per_node", default="1", help="processes on each: a number, or cpu, gpu or auto"
    )
    parser.add_argument("--hosts", default="", help="names of the machines, as a,b; else those of the Slurm job")
    parser.add_argument("--max-restarts", "--max_restarts", type=int, default=0, help="times to start after a failure")
    parser.add_argument("--rdzv-id", "--rdzv_id", default="none", help="a name for the run")
    parser.add_argument("--node-rank", "--node_rank", type=int, default=0, help="0: MPI starts the other machines")
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="what MASTER_ADDR is set to")
    parser.add_argument("--master-port", "--master_port", default="29500", help="what MASTER_PORT is set to")
    parser.add_argument("--standalone", action="store_true", help="one machine")
    parser.add_argument("--role", default="default", help="what ROLE_NAME is set to")
    parser.add_argument("--log-dir", "--log_dir", help="where each process has a folder for its output and its error")
    parser.add_argument(
        "-r",
        "--redirects",
        default="0",
        help="what goes to files alone: 1, 2 or 3 (stdout, stderr, both), or 0:3,1:1",
    )
    parser.add_argument("-t", "--tee", default="0", help="output that goes to files and here, as for --redirects")
    parser.add_argument("--local-ranks-filter", "--local_ranks_filter", default="", help="whose output is shown: 0,2")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="the script is a program")
    parser.add_argument("--run-path", "--run_path", action="store_true", help=argparse.SUPPRESS)  # as is always done
    for option in _IGNORED:
        names = sorted({option, "--" + option[2:].replace("-", "_")})
        parser.add_argument(*names, help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    for action in parser._actions:  # PET_NNODES and the like, as for torchrun
        given = os.environ.get(f"PET_{action.dest.upper()}")
        if given is not None and action.option_strings:
            action.default = bool(int(given)) if action.nargs == 0 else given
    return parser


def parse_args(args):
    """Parse the options of `torchrun`.

    >>> from cygrad.distributed.run import parse_args
    >>> args = parse_args(["--standalone", "train.py", "--epochs", "3"])
    >>> args.training_script, args.training_script_args
    ('train.py', ['--epochs', '3'])
    """
    return get_args_parser().parse_args(args)


def run(args):
    """Run the script of parsed options; several processes end this one with their exit code if they fail.

    >>> import os, tempfile
    >>> from cygrad.distributed.run import parse_args, run
    >>> folder = tempfile.TemporaryDirectory()
    >>> script = os.path.join(folder.name, "train.py")
    >>> with open(script, "w") as file:
    ...     size = file.write("print('trained')")
    >>> run(parse_args([script]))
    trained
    >>> folder.cleanup()
    """
    nodes, local_size = _number_of_nodes(args), determine_local_world_size(args.nproc_per_node)
    if not getattr(args, "use_env", True):  # started by `launch`
        args.training_script_args.insert(0, LOCAL_RANK_ARGUMENT)
    if args.standalone:
        args.rdzv_id = str(uuid.uuid4())
    logs = Logs(args, local_size)
    if nodes * local_size == 1 and not (args.no_python or args.max_restarts or logs.are_needed):
        with as_rank_zero(args.rdzv_id, args.role):
            run_script(args.training_script, args.training_script_args, args.module)
        return
    code = _supervised(_line(args, nodes, local_size), _environment(args, local_size), args.max_restarts, logs)
    if code != 0:
        sys.exit(code)


def call_in_processes(folder, args):
    """Start the processes of parsed options, each of which calls the function in a folder; returns the exit code."""
    nodes, local_size = _number_of_nodes(args), determine_local_world_size(args.nproc_per_node)
    args.training_script = folder
    line = _line(args, nodes, local_size, "function")
    logs = Logs(args, local_size)
    logs.reports = False  # its caller does
    return _supervised(line, _environment(args, local_size), args.max_restarts, logs)


def parse_min_max_nnodes(nnodes):
    """Return the least and the largest number of machines, of "2" or "1:4".

    >>> from cygrad.distributed.run import parse_min_max_nnodes
    >>> parse_min_max_nnodes("2"), parse_min_max_nnodes("1:4")
    ((2, 2), (1, 4))
    """
    numbers = [int(part) for part in nnodes.split(":")]
    if len(numbers) > 2:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return numbers[0], numbers[-1]


def _number_of_nodes(args):
    nodes, _ = parse_min_max_nnodes(args.nnodes)
    hosts = len(args.hosts.split(",")) if args.hosts else 0
    if hosts and nodes not in (1, hosts):
        raise ValueError(f"--nnodes {args.nnodes}, and {hosts} names of machines: {args.hosts}")
    nodes = hosts or nodes
    if args.node_rank > 0 or (nodes > 1 and not hosts and "SLURM_JOB_NODELIST" not in os.environ):
        raise RuntimeError(
            f"--nnodes {args.nnodes} --node-rank {args.node_rank}: MPI starts the processes of all machines from one\n"
            "  to fix it: run this on the first machine only, with --hosts first,second (and ssh to them without a "
            "password), or in a Slurm job"
        )
    return nodes


def determine_local_world_size(text):
    """Return the number of processes on each machine.

    "cpu" stands for the processors, "gpu" for the GPUs, and "auto" for the GPUs if there are any.

    >>> from cygrad.distributed.run import determine_local_world_size
    >>> determine_local_world_size("4")
    4

    Raises ValueError for other texts, and for "gpu" on a machine without one.
    """
    if text in ("auto", "gpu") and cuda.is_available():
        return cuda.device_count()
    if text == "gpu":
        raise ValueError("Cuda is not available.\n  to fix it: --nproc-per-node cpu, or a number")
    if text in ("auto", "cpu"):
        return _cores()
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"Unsupported nproc_per_node value: {text}")
    return int(text)


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- The command ---------------------------------------------------------------------------------


def _mpiexec():
    """The path of `mpiexec`: that of this environment, or else the first one in PATH."""
    found = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if found is None:
        raise RuntimeError(f"there is no mpiexec, which starts the processes\n  {HOW_TO_INSTALL}")
    return found


def _line(args, nodes, local_size, kind=None):
    """The line that starts all processes: that of `mpiexec`, whose options differ between Open MPI and the others."""
    kind = kind or ("program" if args.no_python else "module" if args.module else "script")
    python = [sys.executable, "-u", "-m", "cygrad.distributed._child", kind]
    python += [args.training_script, *args.training_script_args]
    if nodes * local_size == 1:
        return python
    mpiexec = _mpiexec()
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    size = str(nodes * local_size)
    hosts = args.hosts.split(",") if args.hosts else []
    if "Open MPI" in version or "open-mpi" in version or "prte" in version.lower():
        line = [mpiexec, "-n", size, "--oversubscribe", "--map-by", f"ppr:{local_size}:node:oversubscribe"]
        line += ["--host", ",".join(f"{host}:{local_size}" for host in hosts)] if hosts else []
        line += ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    else:
        line = [mpiexec, "-n", size]
        line += ["-ppn", str(local_size)] if nodes > 1 else []
        line += ["-hosts", ",".join(hosts)] if hosts else []
    return line + python


def _environment(args, local_size):
    """The variables of this process, and those that are the same in all; each core serves one process."""
    threads = str(max(1, _cores() // local_size))
    given = {
        "LOCAL_WORLD_SIZE": str(local_size),
        "MASTER_ADDR": args.master_addr,
        "MASTER_PORT": args.master_port,
        "ROLE_NAME": args.role,
        "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    unless_set = dict.fromkeys(
        ("CYGRAD_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
    )
    if sys.modules.get("torch") is sys.modules["cygrad"]:  # of a program that `python -m cygrad` runs
        given[AS_TORCH] = "1"
    inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    return unless_set | inherited | given


# --- The processes -------------------------------------------------------------------------------


def _supervised(line, environment, max_restarts, logs):
    """Run the line, again after each failure up to so many times; returns its exit code."""
    for restart in range(max_restarts + 1):
        with logs.shown(restart):
            count = {"TORCHELASTIC_RESTART_COUNT": str(restart)}
            code = _run_once(line, environment | count | logs.variables(restart))
        if code == 0:
            break
        logs.report(restart)
        if restart == max_restarts:
            break
        print(
            f"[cygrad.distributed.run] the job has failed with code {code}; start {restart + 1} of {max_restarts} more",
            file=sys.stderr,
            flush=True,
        )
    return code


def _run_once(line, environment):
    """Run the line, and return its exit code; its processes end when this one is stopped, and get its SIGUSR1."""
    process = subprocess.Popen(line, env=environment, preexec_fn=_end_with_parent if sys.platform == "linux" else None)
    handlers: dict = {signal.SIGTERM: lambda number, frame: sys.exit(128 + number)}
    if hasattr(signal, "SIGUSR1"):  # which mpiexec passes on to the ranks, see `should_stop`
        handlers[signal.SIGUSR1] = lambda number, frame: process.send_signal(number)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        code = process.wait()
    except KeyboardInterrupt:  # mpiexec has seen it too
        _end(process)
        sys.exit(128 + signal.SIGINT)
    except BaseException:
        _end(process)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _end(process):
    """End mpiexec, which ends its processes."""
    process.terminate()
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        process.kill()


def _end_with_parent():
    """Let the kernel end this process (mpiexec, and by it the ranks) if its parent is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def main(args=None):
    """Run the script that the command line, or a list of arguments, names.

    >>> import os, tempfile
    >>> from cygrad.distributed.run import main
    >>> folder = tempfile.TemporaryDirectory()
    >>> script = os.path.join(folder.name, "train.py")
    >>> with open(script, "w") as file:
    ...     size = file.write("import sys; print(sys.argv[1:])")
    >>> main([script, "--epochs", "3"])
    ['--epochs', '3']
    >>> folder.cleanup()
    """
    run(parse_args(args))


if __name__ == "__main__":
    main()
