"""How the launchers of several machines find each other, for programs that bring a way of their own.

MPI finds the machines of `cygrad.distributed.run`: no handler is registered here.
"""

import re
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cygrad.distributed._c10d.module_names import also_named
from cygrad.distributed.elastic.utils.distributed import get_free_port

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
    "RendezvousHandler", "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo",
    "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
    "parse_rendezvous_endpoint", "rendezvous_handler_registry",
]  # fmt: skip


class RendezvousError(Exception):
    """The base of what goes wrong while machines look for each other.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousTimeoutError, rendezvous.RendezvousError)
    True
    """


class RendezvousClosedError(RendezvousError):
    """Nobody is taken in any more.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousClosedError, rendezvous.RendezvousError)
    True
    """


class RendezvousTimeoutError(RendezvousError):
    """Not all have come in time.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousTimeoutError, rendezvous.RendezvousError)
    True
    """


class RendezvousConnectionError(RendezvousError):
    """The place where they meet cannot be reached.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousConnectionError, rendezvous.RendezvousError)
    True
    """


class RendezvousStateError(RendezvousError):
    """What stands there cannot be read.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousStateError, rendezvous.RendezvousError)
    True
    """


class RendezvousGracefulExitError(RendezvousError):
    """This machine is not needed, and leaves without a failure.

    >>> from cygrad.distributed.elastic import rendezvous
    >>> issubclass(rendezvous.RendezvousGracefulExitError, rendezvous.RendezvousError)
    True
    """


@dataclass
class RendezvousStoreInfo:
    """The address and the port of the store of a group.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.rendezvous import RendezvousStoreInfo
    >>> RendezvousStoreInfo.build(0, dist.HashStore(), "host1", 29500)
    RendezvousStoreInfo(master_addr='host1', master_port=29500)
    """

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"

    master_addr: str
    master_port: int

    @classmethod
    def build(cls, rank, store, local_addr, server_port=None):
        """Let rank 0 say where it is, by default at its own name and a free port, and the others read it."""
        if rank == 0:
            store.set(cls.MASTER_ADDR_KEY, local_addr or socket.getfqdn())
            store.set(cls.MASTER_PORT_KEY, str(server_port or get_free_port()))
        return cls(store.get(cls.MASTER_ADDR_KEY).decode(), int(store.get(cls.MASTER_PORT_KEY)))


@dataclass(frozen=True)
class RendezvousInfo:
    """What comes of a meeting: a store, this machine's rank, the number of machines, and where the group's store is.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.rendezvous import RendezvousInfo, RendezvousStoreInfo
    >>> RendezvousInfo(dist.HashStore(), 0, 1, RendezvousStoreInfo("host1", 29500)).world_size
    1
    """

    store: Any
    rank: int
    world_size: int
    bootstrap_store_info: RendezvousStoreInfo | None


class RendezvousHandler(ABC):
    """A way by which machines find each other.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.rendezvous import RendezvousHandler, RendezvousInfo
    >>> class Alone(RendezvousHandler):
    ...     def get_backend(self): return "alone"
    ...     def get_run_id(self): return "run1"
    ...     def next_rendezvous(self): return RendezvousInfo(dist.HashStore(), 0, 1, None)
    ...     def num_nodes_waiting(self): return 0
    ...     def is_closed(self): return False
    ...     def set_closed(self): pass
    ...     def shutdown(self): return True
    >>> Alone().next_rendezvous().world_size
    1
    """

    @abstractmethod
    def get_backend(self):
        """The name of the way."""

    @property
    def use_agent_store(self):
        """Whether the processes of a group use the store of their launchers: not unless a handler says so."""
        return False

    @abstractmethod
    def next_rendezvous(self):
        """Wait for the others; returns a `RendezvousInfo`."""

    @abstractmethod
    def is_closed(self):
        """Whether nobody is taken in any more."""

    @abstractmethod
    def set_closed(self):
        """Take in nobody any more."""

    @abstractmethod
    def num_nodes_waiting(self):
        """How many machines came late, and wait for the next meeting."""

    @abstractmethod
    def get_run_id(self):
        """The name of the run, which all its machines have in common."""

    @abstractmethod
    def shutdown(self):
        """Close what is open; returns whether that worked."""


RendezvousHandlerCreator = Callable[["RendezvousParameters"], RendezvousHandler]

_TRUE, _FALSE = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")


@dataclass(init=False)
class RendezvousParameters:
    """What a handler is made from. Raises ValueError without a name, and for impossible numbers of machines.

    >>> from cygrad.distributed.elastic.rendezvous import RendezvousParameters
    >>> given = RendezvousParameters("files", "/shared", "run1", 1, 2, retries="3", verbose="yes")
    >>> given.get_as_int("retries"), given.get_as_bool("verbose"), given.get("other", "unset")
    (3, True, 'unset')
    """

    backend: str
    endpoint: str
    run_id: str
    min_nodes: int
    max_nodes: int
    local_addr: str | None = None
    config: dict[str, Any] = field(default_factory=dict)

    def __init__(self, backend, endpoint, run_id, min_nodes, max_nodes, local_addr=None, **kwargs):
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the minimum "
                f"number of rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes = min_nodes, max_nodes
        self.local_addr, self.config = local_addr, kwargs

    def get(self, key, default=None):
        """The value of a further parameter."""
        return self.config.get(key, default)

    def get_as_bool(self, key, default=None):
        """The value of a further parameter as a bool. Raises ValueError if it is none."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        word = str(value).lower()
        if word not in _TRUE + _FALSE:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid boolean value.\n"
                f"  it is {value!r}"
            )
        return word in _TRUE

    def get_as_int(self, key, default=None):
        """The value of a further parameter as an int. Raises ValueError if it is none."""
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value.\n"
                f"  it is {value!r}"
            ) from None


class RendezvousHandlerRegistry:
    """The ways there are, by name: `creator(parameters)` makes a handler.

    >>> from cygrad.distributed.elastic.rendezvous import RendezvousHandlerRegistry, RendezvousParameters
    >>> registry = RendezvousHandlerRegistry()
    >>> registry.register("others", lambda parameters: None)
    >>> registry.create_handler(RendezvousParameters("files", "/shared", "run1", 1, 2))
    Traceback (most recent call last):
        ...
    ValueError: The rendezvous backend 'files' is not registered. Did you forget to call `register`?
    """

    def __init__(self):
        self._creators = {}

    def register(self, backend, creator):
        """Register a way. Raises ValueError if another one has its name."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._creators.setdefault(backend, creator)
        if known != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered "
                f"with '{known}'."
            )

    def create_handler(self, params):
        """Make a handler from `RendezvousParameters`. Raises ValueError if there is no such way."""
        if params.backend not in self._creators:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?"
            )
        handler = self._creators[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend "
                f"'{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()


def parse_rendezvous_endpoint(endpoint, default_port):
    """Host and port of "host:port", of which either may be missing. Raises ValueError for other texts.

    >>> from cygrad.distributed.elastic.rendezvous import parse_rendezvous_endpoint
    >>> parse_rendezvous_endpoint("host1:1234", 29400), parse_rendezvous_endpoint("[::1]", 29400)
    (('host1', 1234), ('::1', 29400))
    """
    endpoint = (endpoint or "").strip()
    if not endpoint:
        return "localhost", default_port
    is_bare_ipv6 = endpoint[0] == "[" and endpoint[-1] == "]"
    host, colon, number = (endpoint, "", "") if is_bare_ipv6 else endpoint.rpartition(":")
    if not colon:
        host, number = endpoint, str(default_port)
    if not re.fullmatch(r"\d{1,5}", number, re.ASCII) or int(number) >= 2**16:
        raise ValueError(
            f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536."
        )
    if len(host) > 1 and host[0] == "[" and host[-1] == "]":
        host = host[1:-1]
    if not re.fullmatch(r"[\w.:-]+", host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list of labels, an IPv4 "
            "address, or an IPv6 address."
        )
    return host, int(number)


also_named(__name__, api=sys.modules[__name__], utils=sys.modules[__name__])
