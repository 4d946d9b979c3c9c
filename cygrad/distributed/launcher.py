"""Starting functions in processes, as `run` starts scripts. One process is this one."""

import os
import pickle
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import reduction, spawn
from pathlib import Path
from typing import Any

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed._c10d.stores.tcp_store import free_port
from cygrad.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many processes are started, and how they find each other.

    >>> from cygrad.distributed.launcher import LaunchConfig
    >>> LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=1).nproc_per_node
    1
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None


@contextmanager
def as_rank_zero(run_id="none", role="default"):
    """Within this context the environment says that this process is the only one."""
    port = os.environ.get("MASTER_PORT") or str(free_port())
    variables = {
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "RANK": "0",
        "ROLE_NAME": role,
        "ROLE_RANK": "0",
        "ROLE_WORLD_SIZE": "1",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": run_id or "none",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "WORLD_SIZE": "1",
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def launch_agent(config, entrypoint, args):
    """Call a function in each of the processes that `config` describes; returns {rank: result}.

    One process is this one. Several are started by `mpiexec`, on this machine. The function and its arguments are
    pickled, so the function must be one that other programs can import, unless `start_method` is "fork": then
    cloudpickle, which has to be installed, also takes functions of notebooks. Raises ChildFailedError if a process
    fails.

    >>> from cygrad.distributed.launcher import LaunchConfig, launch_agent
    >>> launch_agent(LaunchConfig(1, 1, 1), lambda x: x * 2, [21])
    {0: 42}
    """
    if config.min_nodes > 1:
        raise RuntimeError(
            f"launch_agent(): {config.min_nodes} machines; MPI starts the processes of all machines from one\n"
            "  to fix it: write a script, and start it by python -m cygrad.distributed.run --hosts first,second"
        )
    if config.nproc_per_node == 1:
        with as_rank_zero(config.run_id, config.role):
            return {0: entrypoint(*args)}
    if isinstance(entrypoint, str):
        raise TypeError(
            f"launch_agent(): the entrypoint {entrypoint!r} is a program, not a function\n"
            f"  to fix it: python -m cygrad.distributed.run --no-python --nproc-per-node {config.nproc_per_node} "
            f"{entrypoint}"
        )
    with tempfile.TemporaryDirectory() as folder:
        return _called(config, entrypoint, args, Path(folder))


def _called(config, function, arguments, folder):
    """What a function returns in several processes, which find it in a folder and leave their results there."""
    from cygrad.distributed import run  # which imports this module

    is_any = config.start_method == "fork"
    main: Any = None if is_any else spawn.get_preparation_data("rank")
    if main is not None:
        main.pop("authkey", None)  # which is for pipes between processes, and must not be pickled
    (folder / "main").write_bytes(pickle.dumps(main))
    (folder / "call").write_bytes(_pickled((function, arguments), is_any))
    count, logs = config.nproc_per_node, folder / "logs"
    options = ["--log-dir", str(logs), "--role", config.role, "--rdzv-id", config.run_id or "none"]
    options += ["--nproc-per-node", str(count), "--max-restarts", str(config.max_restarts)]
    code = run.call_in_processes(str(folder), run.parse_args([*options, "function"]))
    if code != 0:
        raise ChildFailedError(getattr(function, "__qualname__", repr(function)), _failures(logs, count, code))
    return {rank: pickle.loads((folder / f"result-{rank}").read_bytes()) for rank in range(count)}


def _pickled(value, is_any):
    if not is_any:
        return bytes(reduction.ForkingPickler.dumps(value))
    try:
        cloudpickle = import_module("cloudpickle")  # optional
    except ImportError:
        raise RuntimeError(
            'launch_agent(): start_method="fork" needs cloudpickle, as MPI starts new processes\n'
            '  to fix it: pip install cloudpickle, or pass start_method="spawn"'
        ) from None
    return cloudpickle.dumps(value)


def _failures(logs, count, code):
    """The errors that processes of the last start have left; if there are none, how all of them have ended."""
    starts = sorted(logs.glob("*/attempt_*"), key=lambda path: int(path.name.rpartition("_")[2]))
    found = {rank: starts[-1] / str(rank) / "error.json" for rank in range(count)} if starts else {}
    left = {rank: path for rank, path in found.items() if path.exists()}
    return {rank: ProcessFailure(rank, 0, code, str(path)) for rank, path in left.items()} or {
        rank: ProcessFailure(rank, 0, code, "") for rank in range(count)
    }


class elastic_launch:
    """A callable that calls `entrypoint` in each process of `config`; returns {rank: result}.

    >>> from cygrad.distributed.launcher import LaunchConfig, elastic_launch
    >>> elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=1), max)(3, 4)
    {0: 4}
    """

    def __init__(self, config, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args))


also_named(__name__, api=sys.modules[__name__])
