"""The store of a world on MPI: rank 0 holds the values, and a thread of it answers the others.

Importing this file starts MPI.
"""

import atexit
import threading
import time

from mpi4py import MPI

from cygrad.distributed._c10d.engines.mpi import world
from cygrad.distributed._c10d.errors import DistStoreError, QueueEmptyError
from cygrad.distributed._c10d.stores.arguments import checked
from cygrad.distributed._c10d.stores.hash_store import HashStore
from cygrad.distributed._c10d.stores.store import PAUSE, Store

__all__ = ["MpiStore", "shared_store"]

_REQUEST, _ANSWER = 32001, 32002  # tags on the communicator of all processes
_BYE = "bye"  # what a rank that has asked says at the end of its program
_PATIENCE = 10  # seconds that rank 0 waits at its end for those that have asked
_BUSY, _IDLE = 2e-4, 1e-2  # seconds between two looks for requests, shortly after one and else
_METHODS = (
    "set", "add", "compare_set", "check", "delete_key", "num_keys", "list_keys", "append", "multi_set", "queue_push",
    "queue_len",
)  # fmt: skip


class MpiStore(Store):
    """Keys with values in bytes, shared by all processes of the world, on whatever machine.

    It is there once rank 0 has made one: `init_process_group` makes it.
    """

    def __init__(self, communicator, values):
        super().__init__()
        self._communicator, self._values = communicator, values
        self._lock, self._has_asked = threading.Lock(), False

    def _ask(self, name, *args, **kwargs):
        """Call a method of the store of rank 0."""
        if self._values is not None:
            return getattr(self._values, name)(*args, **kwargs)
        with self._lock:
            if not self._has_asked:
                self._has_asked = True
                atexit.register(self._communicator.send, (_BYE, (), {}), 0, _REQUEST)
            self._communicator.send((name, args, kwargs), 0, _REQUEST)
            answer = self._communicator.irecv(source=0, tag=_ANSWER)
            end = time.monotonic() + self._timeout.total_seconds()
            while True:
                done, value = answer.test()
                if done:
                    break
                if time.monotonic() > end:
                    answer.cancel()
                    raise DistStoreError(f"Wait timeout\n  rank 0, which holds the store, has not answered {name}()")
                time.sleep(_BUSY)
        if isinstance(value, Exception):
            raise value
        return value

    @checked
    def get(self, key):
        """Return the value of a key in bytes, once it is there."""
        self.wait([key])
        return self._ask("get", key)

    @checked
    def multi_get(self, keys):
        """Return the values of several keys, once they are there."""
        self.wait(keys)
        return self._ask("multi_get", list(keys))

    @checked
    def queue_pop(self, key, block=True):
        """Take the first value of a queue; waits for one, or raises QueueEmptyError unless `block`."""
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                return self._ask("queue_pop", key, False)
            except QueueEmptyError:
                if not block:
                    raise
            if time.monotonic() >= end:
                raise DistStoreError(f"Wait timeout\n  nobody has put anything into queue {key!r}")
            time.sleep(PAUSE)

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported: True."""
        return True

    def clone(self):
        """Return the store itself."""
        return self


def _asked(name):
    def method(self, *args, **kwargs):
        return self._ask(name, *args, **kwargs)

    like = getattr(HashStore, name)
    method.__name__, method.__qualname__ = name, f"MpiStore.{name}"
    method.__doc__ = like.__doc__
    return checked(method, like)


for _method in _METHODS:
    setattr(MpiStore, _method, _asked(_method))


class _Server:
    """Answers the requests of other ranks, in a thread of rank 0, until its program ends and theirs do."""

    def __init__(self, communicator, values):
        self._communicator, self._values = communicator, values
        self._is_closed = threading.Event()
        self._asking: set = set()
        self._thread = threading.Thread(target=self._serve, name="cygrad.distributed store", daemon=True)
        self._thread.start()
        atexit.register(self._close)  # before MPI ends

    def _serve(self):
        status = MPI.Status()
        last = time.monotonic()
        answers: list = []
        end = None
        while end is None or (self._asking and time.monotonic() < end):
            if end is None and self._is_closed.is_set():
                end = time.monotonic() + _PATIENCE
            if not self._communicator.iprobe(tag=_REQUEST, status=status):
                time.sleep(_BUSY if time.monotonic() - last < 0.1 else _IDLE)
                continue
            last = time.monotonic()
            source = status.Get_source()
            name, args, kwargs = self._communicator.recv(source=source, tag=_REQUEST)
            if name == _BYE:
                self._asking.discard(source)
                continue
            self._asking.add(source)
            try:
                value = getattr(self._values, name)(*args, **kwargs)
            except Exception as error:
                value = error
            answers = [each for each in answers if not each.Test()]
            answers.append(self._communicator.isend(value, source, _ANSWER))

    def _close(self):
        self._is_closed.set()
        self._thread.join()


_shared: list = []  # the store of this process, once it is made


def shared_store():
    """The store that all processes of the world share; starts MPI."""
    if not _shared:
        everyone = world()
        values = HashStore() if everyone.rank == 0 else None
        _shared.append(MpiStore(everyone, values))
        if values is not None and everyone.size > 1:
            _shared.append(_Server(everyone, values))
    return _shared[0]
