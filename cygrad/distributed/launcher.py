"""Starting functions in processes: for now in one, which is this one."""

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed._c10d.stores.tcp_store import free_port

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
def as_rank_zero(run_id="none"):
    """Within this context the environment says that this process is the only one."""
    port = os.environ.get("MASTER_PORT") or str(free_port())
    variables = {
        "GROUP_RANK": "0",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "RANK": "0",
        "ROLE_RANK": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": run_id or "none",
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
    """Call a function as the only process; returns {0: result}. Raises RuntimeError for more than one process.

    >>> from cygrad.distributed.launcher import LaunchConfig, launch_agent
    >>> launch_agent(LaunchConfig(1, 1, 1), lambda x: x * 2, [21])
    {0: 42}
    """
    if config.min_nodes > 1 or config.nproc_per_node > 1:
        raise one_process(f"launching {config.min_nodes} x {config.nproc_per_node} processes")
    with as_rank_zero(config.run_id):
        return {0: entrypoint(*args)}


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
