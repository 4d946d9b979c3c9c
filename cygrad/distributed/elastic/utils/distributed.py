"""Ports, and stores at them."""

import socket
from datetime import timedelta

from cygrad.distributed._c10d.stores import TCPStore
from cygrad.distributed.elastic.utils.store import barrier

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]


def get_socket_with_port():
    """A socket that listens at a free port of this machine; the caller closes it.

    >>> from cygrad.distributed.elastic.utils import get_socket_with_port
    >>> with get_socket_with_port() as listener:
    ...     listener.getsockname()[1] > 0
    True
    """
    for family, kind, protocol, _, address in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.bind(address)
            listener.listen(0)
        except OSError:  # this machine may have no IPv6, for example
            listener.close()
        else:
            return listener
    raise RuntimeError("Failed to create a socket")


def get_free_port():
    """The number of a port of this machine at which nobody listens.

    >>> from cygrad.distributed.elastic.utils.distributed import get_free_port
    >>> get_free_port() > 0
    True
    """
    with get_socket_with_port() as listener:
        return listener.getsockname()[1]


def create_c10d_store(
    is_server, server_addr, server_port=-1, world_size=1, timeout=600, wait_for_workers=True, retries=3, use_libuv=None
):
    """Make a `TCPStore`, and wait until all processes have.

    timeout: in seconds. Raises ValueError if there are several processes, and no port.

    >>> from cygrad.distributed.elastic.utils.distributed import create_c10d_store
    >>> store = create_c10d_store(True, "localhost")
    >>> store.set("key", "value")
    """
    if server_port == -1 and world_size > 1:
        raise ValueError(
            f"server_port must be specified when world_size > 1, got server_port={server_port}, world_size={world_size}"
        )
    port = get_free_port() if server_port == -1 else server_port
    store = TCPStore(server_addr, port, world_size, is_server, timedelta(seconds=timeout), wait_for_workers)
    if wait_for_workers:
        barrier(store, world_size, "_tcp_store/num_members", timeout)
    return store
