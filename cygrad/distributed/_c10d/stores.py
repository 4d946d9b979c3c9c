"""Stores, in which the processes of a group leave what the others need to find them."""

import os
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from cygrad.distributed._c10d.errors import DistNetworkError, DistStoreError, QueueEmptyError
from cygrad.distributed._c10d.launchers import launched

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_PAUSE = 0.01  # seconds between two looks into a store that someone else may have changed


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Keys with values in bytes, shared by processes: the base of all stores.

    A subclass has `set`, `get`, `add`, `check`, `delete_key`, `num_keys` and the like. `get` and `wait` wait for keys
    that are not there yet, for `timeout`, and then raise DistStoreError.

    >>> import cygrad.distributed as dist
    >>> store = dist.HashStore()
    >>> isinstance(store, dist.Store)
    True
    """

    def __init__(self):
        self._timeout = timedelta(seconds=300)

    @property
    def timeout(self):
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout):
        """Set how long `get` and `wait` wait, as a `timedelta`.

        Raises TypeError for anything else.

        >>> from datetime import timedelta
        >>> import cygrad.distributed as dist
        >>> store = dist.HashStore()
        >>> store.set_timeout(timedelta(seconds=10))
        >>> store.timeout
        datetime.timedelta(seconds=10)
        """
        if not isinstance(timeout, timedelta):
            raise TypeError(f"set_timeout(): expected a datetime.timedelta, got {timeout!r}")
        self._timeout = timeout

    def check(self, keys):
        """Whether all these keys are there.

        >>> import cygrad.distributed as dist
        >>> store = dist.HashStore()
        >>> store.set("key", "value")
        >>> store.check(["key"]), store.check(["key", "other"])
        (True, False)
        """
        raise NotImplementedError(f"{type(self).__name__} has no check()")

    def wait(self, keys, timeout=None):
        """Wait until all these keys are there.

        `timeout` is a `timedelta`, by default that of the store. Raises DistStoreError when it has passed.

        >>> from datetime import timedelta
        >>> import cygrad.distributed as dist
        >>> store = dist.HashStore()
        >>> store.wait(["key"], timedelta(milliseconds=20))
        Traceback (most recent call last):
            ...
        cygrad.distributed.DistStoreError: Wait timeout...
        >>> store.set("key", "value")
        >>> store.wait(["key"])
        """
        end = time.monotonic() + (self._timeout if timeout is None else timeout).total_seconds()
        while not self.check(keys):
            if time.monotonic() >= end:
                raise DistStoreError(f"Wait timeout\n  nobody has set {', '.join(map(repr, keys))}")
            time.sleep(_PAUSE)

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported.

        >>> from cygrad.distributed import FileStore, HashStore, Store
        >>> HashStore().has_extended_api(), Store().has_extended_api()
        (True, False)
        """
        return False


class HashStore(Store):
    """A store in the memory of this process, which its threads share.

    >>> from cygrad.distributed import HashStore
    >>> store = HashStore()
    >>> store.set("name", "value")
    >>> store.get("name"), store.add("counter", 2), store.add("counter", 3)
    (b'value', 2, 5)
    >>> store.compare_set("name", "value", "new"), store.compare_set("name", "value", "newer")
    (b'new', b'new')
    >>> store.append("name", " one")
    >>> store.multi_set(["a", "b"], ["1", "2"])
    >>> store.multi_get(["name", "a", "b"])
    [b'new one', b'1', b'2']
    >>> store.check(["a", "c"]), store.delete_key("b"), store.num_keys(), store.list_keys()
    (False, True, 3, ['name', 'counter', 'a'])
    >>> store.queue_push("tasks", "first")
    >>> store.queue_len("tasks"), store.queue_pop("tasks"), store.queue_len("tasks")
    (1, b'first', 0)
    >>> store.queue_pop("tasks", block=False)
    Traceback (most recent call last):
        ...
    cygrad.distributed.QueueEmptyError: queue tasks is empty
    >>> store.has_extended_api(), store.clone() is store
    (True, True)
    """

    def __init__(self):
        super().__init__()
        self._lock = threading.RLock()
        self._values: dict[str, bytes] = {}
        self._queues: defaultdict[str, deque[bytes]] = defaultdict(deque)

    @contextmanager
    def _exclusive(self):
        with self._lock:
            yield self._values

    def _changed(self, key, value):
        """Called after a change; `value` is None for a key that is no longer there."""

    def _put(self, values, key, value):
        values[key] = value
        self._changed(key, value)

    def set(self, key, value):
        """Set a key to a string or bytes."""
        with self._exclusive() as values:
            self._put(values, key, _bytes(value))

    def get(self, key):
        """Return the value of a key in bytes, once it is there."""
        self.wait([key])
        with self._exclusive() as values:
            return values[key]

    def add(self, key, amount):
        """Add to a counter, which starts at 0, and return it."""
        with self._exclusive() as values:
            total = int(values.get(key, b"0")) + amount
            self._put(values, key, str(total).encode())
            return total

    def compare_set(self, key, expected_value, desired_value):
        """Set a key if it has the expected value, or is not there and "" is expected; return what it then is."""
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        with self._exclusive() as values:
            if values.get(key, b"") == expected:
                self._put(values, key, desired)
                return desired
            return values.get(key, expected)

    def check(self, keys):
        """Whether all these keys are there."""
        with self._exclusive() as values:
            return all(key in values for key in keys)

    def delete_key(self, key):
        """Delete a key; returns whether it was there."""
        with self._exclusive() as values:
            was_there = values.pop(key, None) is not None
            if was_there:
                self._changed(key, None)
            return was_there

    def num_keys(self):
        """The number of keys."""
        with self._exclusive() as values:
            return len(values)

    def list_keys(self):
        """All keys."""
        with self._exclusive() as values:
            return list(values)

    def append(self, key, value):
        """Append to the value of a key."""
        with self._exclusive() as values:
            self._put(values, key, values.get(key, b"") + _bytes(value))

    def multi_get(self, keys):
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        """Set several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key, value):
        """Append a value to a queue."""
        with self._lock:
            self._queues[key].append(_bytes(value))

    def queue_pop(self, key, block=True):
        """Take the first value of a queue; waits for one, or raises QueueEmptyError unless `block`."""
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            with self._lock:
                if self._queues[key]:
                    return self._queues[key].popleft()
            if not block:
                raise QueueEmptyError(f"queue {key} is empty")
            if time.monotonic() >= end:
                raise DistStoreError(f"Wait timeout\n  nobody has put anything into queue {key!r}")
            time.sleep(_PAUSE)

    def queue_len(self, key):
        """The number of values in a queue."""
        with self._lock:
            return len(self._queues[key])

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported: True."""
        return True

    def clone(self):
        """Return the store itself: its threads share it."""
        return self


class FileStore(HashStore):
    """A store in a file, which processes on one machine share. It is a log: each change appends a record.

    The file is created if it is not there, and stays; `world_size` is not needed to read it.

    >>> import os, tempfile
    >>> from cygrad.distributed import FileStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "store")
    >>> FileStore(path).set("key", "value")
    >>> other = FileStore(path)  # in another process, as a rule
    >>> other.get("key"), other.has_extended_api()
    (b'value', False)
    >>> folder.cleanup()
    """

    _RECORD = struct.Struct("<ii")  # lengths of key and value; -1 for a deleted key

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self._path, self._read_up_to = os.fspath(file_name), 0
        with open(self._path, "ab"):
            pass

    @property
    def path(self):
        """The file."""
        return self._path

    @contextmanager
    def _exclusive(self):
        with self._lock, open(self._path, "r+b") as self._file, _locked(self._file):
            self._read_changes()
            yield self._values

    def _read_changes(self):
        self._file.seek(self._read_up_to)
        log, at = self._file.read(), 0
        while at < len(log):
            key_length, value_length = self._RECORD.unpack_from(log, at)
            at += self._RECORD.size
            key, at = log[at : at + key_length].decode(), at + key_length
            if value_length < 0:
                self._values.pop(key, None)
            else:
                self._values[key], at = log[at : at + value_length], at + value_length
        self._read_up_to += at

    def _changed(self, key, value):
        name = key.encode()
        record = self._RECORD.pack(len(name), -1 if value is None else len(value)) + name + (value or b"")
        self._file.seek(0, os.SEEK_END)
        self._file.write(record)
        self._file.flush()
        self._read_up_to += len(record)

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported: False, as queues are in memory."""
        return False


@contextmanager
def _locked(file):
    try:
        import fcntl  # not on Windows, where a group of one process needs no lock
    except ImportError:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class PrefixStore(Store):
    """A part of another store: all its keys begin with `prefix/` there.

    >>> from datetime import timedelta
    >>> import cygrad.distributed as dist
    >>> whole = dist.HashStore()
    >>> store = dist.PrefixStore("layer1", whole)
    >>> store.set("key", "value")
    >>> store.get("key"), whole.list_keys()
    (b'value', ['layer1/key'])
    >>> store.list_keys() == whole.list_keys(), store.num_keys()
    (True, 1)
    >>> store.add("counter", 1), store.compare_set("key", "value", "new")
    (1, b'new')
    >>> store.append("key", "er")
    >>> store.multi_set(["a", "b"], ["1", "2"])
    >>> store.multi_get(["key", "a", "b"]), store.check(["a"]), store.delete_key("a")
    ([b'newer', b'1', b'2'], True, True)
    >>> store.queue_push("tasks", "first")
    >>> store.queue_len("tasks"), store.queue_pop("tasks")
    (1, b'first')
    >>> store.set_timeout(timedelta(seconds=10))  # that of the whole store
    >>> whole.timeout == store.timeout, store.has_extended_api()
    (True, True)
    >>> store.clone().get("key")
    b'newer'
    """

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self):
        """The other store."""
        return self._store

    @property
    def timeout(self):
        """How long `get` and `wait` wait."""
        return self._store.timeout

    def set_timeout(self, timeout):
        """Set how long `get` and `wait` wait, as a `timedelta`."""
        self._store.set_timeout(timeout)

    def _name(self, key):
        return key if self._prefix is None else f"{self._prefix}/{key}"

    def check(self, keys):
        """Whether all these keys are there."""
        return self._store.check([self._name(key) for key in keys])

    def num_keys(self):
        """The number of keys in the whole store."""
        return self._store.num_keys()

    def list_keys(self):
        """All keys of the whole store."""
        return self._store.list_keys()

    def has_extended_api(self):
        """Whether the store behind it supports `append`, `multi_get`, `multi_set` and queues."""
        return self._store.has_extended_api()

    def multi_get(self, keys):
        """Return the values of several keys."""
        return self._store.multi_get([self._name(key) for key in keys])

    def multi_set(self, keys, values):
        """Set several keys."""
        self._store.multi_set([self._name(key) for key in keys], values)

    def clone(self):
        """Return another view of the same keys."""
        return PrefixStore(self._prefix, self._store.clone())


def _with_prefix(name):
    def method(self, key, *args, **kwargs):
        return getattr(self._store, name)(self._name(key), *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"PrefixStore.{name}"
    method.__doc__ = getattr(HashStore, name).__doc__
    return method


for _method in ("set", "get", "add", "compare_set", "delete_key", "append", "queue_push", "queue_pop", "queue_len"):
    setattr(PrefixStore, _method, _with_prefix(_method))


class TCPStore(PrefixStore):
    """A store by the name of a server, which the processes that MPI's launcher has started share, on any machine.

    Nothing listens at the port: it tells stores apart, and MPI carries what ranks ask of rank 0. Within one process,
    a client finds the server by its port too, and raises DistNetworkError if there is none.

    >>> import cygrad.distributed as dist
    >>> server = dist.TCPStore("localhost", 0, is_master=True)  # port 0: one that is free
    >>> client = dist.TCPStore("localhost", server.port)
    >>> server.set("key", "value")
    >>> client.get("key")
    b'value'
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
            port = port or _free_port()
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
            raise DistNetworkError(
                f"The client socket has failed to connect to {host_name}:{port}\n"
                "  processes that mpiexec has not started share no store; in this one, make the server first: "
                "TCPStore(..., is_master=True)"
            )
        super().__init__(None, store)
        if timeout is not None:
            self.set_timeout(timeout)
        self.host, self.port = host_name, port


def _shared_store():
    # These start MPI, which only programs of several processes want.
    from cygrad.distributed._c10d.connection import start_mpi

    start_mpi()
    from cygrad.distributed._c10d.mpi_store import shared_store  # likewise

    return shared_store()
