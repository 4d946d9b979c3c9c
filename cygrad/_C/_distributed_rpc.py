"""Remote calls by the name of PyTorch's compiled module. There are none; `distributed.rpc` says so."""

from typing import Any

from cygrad.distributed import rpc
from cygrad.distributed.rpc import RRef as PyRRef
from cygrad.distributed.rpc import TensorPipeRpcBackendOptions as RpcBackendOptions
from cygrad.distributed.rpc import WorkerInfo

__all__ = ["PyRRef", "RpcBackendOptions", "WorkerInfo", "get_rpc_timeout"]

_DEFAULT_INIT_METHOD = "env://"
_DEFAULT_NUM_WORKER_THREADS = 16
_DEFAULT_RPC_TIMEOUT_SEC = 60.0
_UNSET_RPC_TIMEOUT = -1.0


def get_rpc_timeout() -> float:
    """Return the time limit of a remote call, in seconds."""
    return _DEFAULT_RPC_TIMEOUT_SEC


def _is_current_rpc_agent_set() -> bool:
    """Whether `init_rpc` has been called: it cannot be."""
    return False


def _get_current_rpc_agent() -> Any:
    """Raise RuntimeError: remote calls cannot be made."""
    raise RuntimeError("Current RPC agent is not set!\n  cygrad makes no remote calls: distributed.rpc.is_available()")


def __getattr__(name: str) -> Any:
    return getattr(rpc, name)
