"""How processes find each other: from the URL of `init_process_group` to a store, a rank and a world size."""

import os
from urllib.parse import parse_qs, urlparse

from cygrad.distributed._c10d.stores import FileStore, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

_HANDLERS: dict = {}


def register_rendezvous_handler(scheme, handler):
    """Let `init_method="scheme://..."` call `handler(url)`, which yields (store, rank, world size).

    >>> import cygrad.distributed as dist
    >>> dist.register_rendezvous_handler("alone", lambda url, **options: iter([(dist.HashStore(), 0, 1)]))
    >>> dist.init_process_group(init_method="alone://")
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if scheme in _HANDLERS:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _HANDLERS[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """Return an iterator over (store, rank, world size), whose first element is that of this process.

    Raises ValueError if the URL and the variables of the environment do not tell rank and world size, and RuntimeError
    for a scheme that no one has registered.

    >>> import os, tempfile
    >>> from cygrad.distributed import rendezvous
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "store")
    >>> store, rank, size = next(rendezvous("file://" + path, rank=0, world_size=1))
    >>> rank, size
    (0, 1)
    >>> folder.cleanup()
    """
    return handler_of(url)(url, rank=rank, world_size=world_size, **kwargs)


def handler_of(url):
    """What finds the others by this URL. Raises RuntimeError if no one has registered its scheme."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    scheme = urlparse(url).scheme
    if scheme not in _HANDLERS:
        raise RuntimeError(f"No rendezvous handler for {scheme}://\n  there is one for {', '.join(sorted(_HANDLERS))}")
    return _HANDLERS[scheme]


def _from_url(url, rank, world_size):
    """The numbers as far as they are given, by argument or in the query of the URL."""
    query = {key: values[0] for key, values in parse_qs(urlparse(url).query).items()}
    return int(query.get("rank", rank)), int(query.get("world_size", world_size))


def _given(scheme, rank, world_size):
    for name, value in (("rank", rank), ("world size", world_size)):
        if value == -1:
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} parameter missing"
            )
    return rank, world_size


def _file(url, rank, world_size, **_):
    path = urlparse(url).path
    if not path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    rank, world_size = _given("file", *_from_url(url, rank, world_size))
    yield FileStore(path, world_size), rank, world_size


def _tcp(url, rank, world_size, timeout=None, **_):
    parts = urlparse(url)
    if not parts.port:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    rank, world_size = _given("tcp", *_from_url(url, rank, world_size))
    yield TCPStore(parts.hostname, parts.port, world_size, rank == 0, timeout), rank, world_size


def _env(url, rank, world_size, timeout=None, **_):
    rank, world_size = _from_url(url, rank, world_size)
    rank = int(_variable("RANK")) if rank == -1 else rank
    world_size = int(_variable("WORLD_SIZE")) if world_size == -1 else world_size
    host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield TCPStore(host, port, world_size, rank == 0, timeout), rank, world_size


def _variable(name):
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
            "but not set\n"
            "  to fix it: set it, pass `store=HashStore(), rank=0, world_size=1`, or start the program by "
            "`python -m cygrad.distributed.run`"
        )
    return os.environ[name]


for _scheme, _handler in (("tcp", _tcp), ("env", _env), ("file", _file)):
    register_rendezvous_handler(_scheme, _handler)
