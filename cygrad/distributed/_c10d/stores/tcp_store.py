"""`TCPStore`: a store by the name of a server, which the processes of a job share."""

import socket
from typing import Any

from cygrad.distributed._c10d.errors import DistNetworkError, DistStoreError, QueueEmptyError
from cygrad.distributed._c10d.stores.arguments import checked
from cygrad.distributed._c10d.stores.hash_store import HashStore
from cygrad.distributed._c10d.stores.prefix_store import PrefixStore
from cygrad.distributed._c10d.supervision.launchers import launched
from cygrad.distributed.constants import default_pg_timeout

__all__ = ["TCPStore", "free_port"]


def free_port():
    """The number of a port at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class TCPStore(PrefixStore):
    """A store by the name of a server, which the processes that MPI's launcher has started share, on any machine.

    Nothing listens at the port: it tells stores apart, and MPI carries what ranks ask of rank 0. Within one process,
    a client finds the server by its port too, and raises DistNetworkError if there is none.

    >>> import cygrad.distributed as dist
    >>> server = dist.TCPStore("localhost", 0, is_master=True)  # port 0: one that is free
    >>> client = dist.TCPStore("localhost", server.port)
    >>> server.set("key", "value")
    >>> client.get("key"), client.multi_get(["key"])
    (b'value', [b'value'])
    >>> server.queue_push("tasks", "first")
    >>> client.queue_pop("tasks")
    b'first'
    """

    _servers: dict[int, HashStore] = {}

    def __init__(
        self,
        host_name,
        port=29500,
        world_size=None,
        is_master=False,
        timeout=None,
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        if is_master:
            port = port or free_port()
        launch = launched()
        store: Any
        if launch is not None and launch.size > 1 and world_size != 1:
            store = PrefixStore(f"port {port}", _shared_store())
        elif is_master:
            is_there = multi_tenant and port in self._servers
            store = self._servers[port] = self._servers[port] if is_there else HashStore()
        elif port in self._servers:
            store = self._servers[port]
        else:
            milliseconds = (default_pg_timeout if timeout is None else timeout).total_seconds() * 1000
            raise DistNetworkError(
                f"The client socket has timed out after {milliseconds:.0f}ms while trying to connect to ({host_name}, "
                f"{port}).\n"
                "  processes that mpiexec has not started share no store; in this one, make the server first: "
                "TCPStore(..., is_master=True)"
            )
        super().__init__(None, store)
        if timeout is not None:
            self.set_timeout(timeout)
        self.host, self.port = host_name, port

    def _too_late(self, keys, timeout):
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        return DistStoreError(
            f"wait timeout after {seconds * 1000:.0f}ms, keys: {', '.join(f'/{key}' for key in keys)}\n"
            "  nobody has set them"
        )

    @checked
    def get(self, key):
        """Return the value of a key in bytes, once it is there."""
        self.wait([key])
        return super().get(key)

    @checked
    def multi_get(self, keys):
        """Return the values of several keys, once they are there."""
        self.wait(keys)
        return super().multi_get(keys)

    @checked
    def queue_pop(self, key, block=True):
        """Take the first value of a queue; waits for one, or raises QueueEmptyError unless `block`."""
        try:
            return super().queue_pop(key, block)
        except QueueEmptyError:
            raise
        except DistStoreError:
            raise self._too_late([key], None) from None


def _shared_store():
    # These start MPI, which only programs of several processes want.
    from cygrad.distributed._c10d.engines import start_mpi

    start_mpi()
    from cygrad.distributed._c10d.stores.mpi_store import shared_store  # likewise

    return shared_store()
