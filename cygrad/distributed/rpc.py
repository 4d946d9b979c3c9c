"""Remote calls, as a build of PyTorch without them answers: `is_available()` is False."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cygrad.distributed._c10d.errors import one_process

__all__ = [
    "BackendType", "RRef", "TensorPipeRpcBackendOptions", "WorkerInfo", "get_worker_info", "init_rpc", "is_available",
    "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip


class BackendType(Enum):
    """How remote calls travel."""

    TENSORPIPE = "TENSORPIPE"


@dataclass(frozen=True)
class WorkerInfo:
    """The name and rank of a process."""

    name: str
    id: int


@dataclass
class TensorPipeRpcBackendOptions:
    """The options of `init_rpc`."""

    num_worker_threads: int = 16
    rpc_timeout: float = 60.0
    init_method: str = "env://"
    device_maps: dict[str, Any] = field(default_factory=dict)
    devices: list[Any] = field(default_factory=list)
    _transports: Any = None
    _channels: Any = None

    def set_device_map(self, to, device_map):
        """Set which device of process `to` takes the tensors of which device here."""
        self.device_maps.setdefault(to, {}).update(device_map)


def is_available():
    """Whether functions can be called in other processes: False."""
    return False


class RRef:
    """A value in another process. Raises RuntimeError on construction."""

    def __init__(self, value, type_hint=None):
        raise one_process("RRef, a value in another process")


def _unavailable(name, text):
    def function(*args, **kwargs):
        raise one_process(f"rpc.{name}, which calls other processes")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}. Raises RuntimeError: ask `rpc.is_available()` first."
    return function


init_rpc = _unavailable("init_rpc", "Join the processes that call each other")
shutdown = _unavailable("shutdown", "Leave the processes that call each other")
get_worker_info = _unavailable("get_worker_info", "Return the `WorkerInfo` of a process")
rpc_sync = _unavailable("rpc_sync", "Call a function in another process and wait for its result")
rpc_async = _unavailable("rpc_async", "Call a function in another process; returns a future")
remote = _unavailable("remote", "Call a function in another process; returns an `RRef` to its result")
