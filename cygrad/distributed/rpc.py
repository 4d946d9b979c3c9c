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
    """How remote calls travel.

    >>> from cygrad.distributed import rpc
    >>> rpc.BackendType.TENSORPIPE.name
    'TENSORPIPE'
    """

    TENSORPIPE = "TENSORPIPE"


@dataclass(frozen=True)
class WorkerInfo:
    """The name and rank of a process.

    >>> from cygrad.distributed import rpc
    >>> rpc.WorkerInfo("worker1", 1).name
    'worker1'
    """

    name: str
    id: int


@dataclass
class TensorPipeRpcBackendOptions:
    """The options of `init_rpc`.

    >>> from cygrad.distributed import rpc
    >>> options = rpc.TensorPipeRpcBackendOptions(rpc_timeout=30)
    >>> options.set_device_map("worker1", {0: 1})
    >>> options.rpc_timeout, options.device_maps
    (30, {'worker1': {0: 1}})
    """

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
    """Whether functions can be called in other processes: False.

    >>> import cygrad
    >>> cygrad.distributed.rpc.is_available()
    False
    """
    return False


class RRef:
    """A value in another process. Raises RuntimeError on construction.

    >>> from cygrad.distributed import rpc
    >>> rpc.RRef(3)
    Traceback (most recent call last):
        ...
    RuntimeError: RRef, a value in another process: this works in one process for now...
    """

    def __init__(self, value, type_hint=None):
        raise one_process("RRef, a value in another process")


def _unavailable(name, arguments, text):
    def function(*args, **kwargs):
        raise one_process(f"rpc.{name}, which calls other processes")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{text}. Raises RuntimeError: ask `rpc.is_available()` first.\n\n>>> from cygrad.distributed import rpc\n"
        f">>> rpc.{name}({arguments})\nTraceback (most recent call last):\n    ...\n"
        f"RuntimeError: rpc.{name}, which calls other processes: this works in one process for now..."
    )
    return function


init_rpc = _unavailable("init_rpc", '"worker0", rank=0, world_size=2', "Join the processes that call each other")
shutdown = _unavailable("shutdown", "", "Leave the processes that call each other")
get_worker_info = _unavailable("get_worker_info", '"worker0"', "Return the `WorkerInfo` of a process")
_CALL = '"worker1", max, (1, 2)'
rpc_sync = _unavailable("rpc_sync", _CALL, "Call a function in another process and wait for its result")
rpc_async = _unavailable("rpc_async", _CALL, "Call a function in another process; returns a future")
remote = _unavailable("remote", _CALL, "Call a function in another process; returns an `RRef` to its result")
