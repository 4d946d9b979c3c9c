"""`Backend`: what carries the tensors of a group, by name, and which of them there are here."""

from importlib.util import find_spec
from typing import Any

from cygrad import cuda
from cygrad import device as _device
from cygrad.distributed._c10d.errors import HOW_TO_INSTALL
from cygrad.distributed._c10d.world import current

__all__ = [
    "Backend", "BackendConfig", "get_default_backend_for_device", "is_backend_available", "is_gloo_available",
    "is_mpi_available", "is_nccl_available", "is_ucc_available", "is_xccl_available",
]  # fmt: skip


class Backend(str):
    """The name of a back end, in lower case: "gloo" for the CPU, "nccl" for GPUs.

    >>> from cygrad.distributed import Backend
    >>> Backend("GLOO") == Backend.GLOO
    True
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO, "hpu": "hccl"}
    backend_capability = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }
    registered: dict[str, Any] = {}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish\n  got {name!r}")
        return super().__new__(cls, getattr(cls, name.upper(), name.lower()))

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Let groups be made with a back end of one's own: `func(store, rank, size, timeout)` returns its engine.

        The engine has the methods of `cygrad.distributed._c10d.engines.engine.Engine`, for the kinds of `devices`: by
        default "cpu" and "cuda". Raises RuntimeError if the name is taken, and TypeError for PyTorch's `extended_api`.

        >>> import cygrad.distributed as dist
        >>> dist.Backend.register_backend("gloo", lambda store, rank, size, timeout: None)
        Traceback (most recent call last):
            ...
        RuntimeError: GLOO c10d backend creator function already exist
        >>> dist.Backend("GLOO")
        'gloo'
        """
        name = name.lower()
        if name in cls.backend_list:
            raise RuntimeError(f"{name.upper()} c10d backend creator function already exist")
        if extended_api:
            raise TypeError("register_backend(extended_api=True): cygrad has the short form of `func` only")
        cls.backend_list.append(name)
        cls.backend_capability[name] = [devices] if isinstance(devices, str) else list(devices or ("cpu", "cuda"))
        cls.registered[name] = func


class BackendConfig:
    """Which back end serves which kind of device: from "gloo", or from "cpu:gloo,cuda:nccl".

    >>> import cygrad.distributed as dist
    >>> dist.BackendConfig(dist.Backend("gloo")).get_device_backend_map()
    {'cpu': 'gloo', 'cuda': 'gloo'}
    """

    def __init__(self, backend):
        defaults = Backend.default_device_backend_map
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend(defaults["cpu"])}
        elif ":" in backend:
            self.device_backend_map = dict(self._pairs(backend))
        else:
            devices = Backend.backend_capability.get(backend, ["cpu", "cuda"])
            self.device_backend_map = dict.fromkeys(devices, Backend(backend))

    @staticmethod
    def _pairs(backend):
        for part in backend.lower().split(","):
            pair = part.split(":")
            if len(pair) != 2:
                raise ValueError(
                    f"Invalid device:backend pairing: {part}. The custom backend string argument is invalid: "
                    f"{backend}.\n  it reads like 'cpu:gloo,cuda:nccl'"
                )
            yield pair[0], Backend(pair[1])

    def get_device_backend_map(self):
        """Return {kind of device: back end}."""
        return self.device_backend_map

    def __repr__(self):
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


def is_gloo_available():
    """Whether groups can be made with "gloo", for tensors on the CPU: True.

    >>> import cygrad
    >>> cygrad.distributed.is_gloo_available()
    True
    """
    return True


def is_nccl_available():
    """Whether groups can be made with "nccl": if there is a GPU.

    >>> import cygrad
    >>> cygrad.distributed.is_nccl_available() == cygrad.cuda.is_available()
    True
    """
    return cuda.is_available()


def is_mpi_available():
    """Whether groups can be made with "mpi": if mpi4py is installed.

    >>> import cygrad
    >>> import importlib.util
    >>> cygrad.distributed.is_mpi_available() == (importlib.util.find_spec("mpi4py") is not None)
    True
    """
    return find_spec("mpi4py") is not None


def is_ucc_available():
    """Whether groups can be made with "ucc": False.

    >>> import cygrad
    >>> cygrad.distributed.is_ucc_available()
    False
    """
    return False


def is_xccl_available():
    """Whether groups can be made with "xccl": False.

    >>> import cygrad
    >>> cygrad.distributed.is_xccl_available()
    False
    """
    return False


def is_backend_available(backend):
    """Whether groups can be made with a back end, by name.

    >>> import cygrad
    >>> cygrad.distributed.is_backend_available("gloo"), cygrad.distributed.is_backend_available("ucc")
    (True, False)
    """
    name = backend.lower()
    known = {"gloo": is_gloo_available, "nccl": is_nccl_available, "mpi": is_mpi_available}
    return known[name]() if name in known else name in Backend.registered


def get_default_backend_for_device(device):
    """The name of the back end for a device.

    >>> from cygrad import distributed
    >>> distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    kind = _device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def checked_backend(backend):
    """The name as a `Backend`; raises if one of those it names is not there."""
    name = Backend(Backend.UNDEFINED if backend is None else backend)
    for part in BackendConfig(name).device_backend_map.values():
        if part not in Backend.backend_list:
            kind = f"c10d backend type {part.upper()}" if ":" in name else f"backend type {part}"
            raise AssertionError(f"Unknown {kind}")
        if part == Backend.NCCL and ":" not in name and not is_nccl_available():
            raise RuntimeError(
                "Distributed package doesn't have NCCL built in\n"
                '  there is no GPU; to fix it: pass "gloo", e.g. "nccl" if torch.cuda.is_available() else "gloo"'
            )
        if part == Backend.FAKE and current().engine is not None:
            continue
        if part == Backend.MPI and not is_mpi_available():
            raise RuntimeError(f"Distributed package doesn't have MPI built in\n  {HOW_TO_INSTALL}")
        if part not in (Backend.GLOO, Backend.NCCL, Backend.MPI, *Backend.registered):
            raise AssertionError(f'Unknown c10d backend type {part.upper()}\n  to fix it: pass "gloo" or "nccl"')
    return name
