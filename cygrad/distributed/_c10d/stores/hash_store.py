"""`HashStore`: a store in the memory of one process."""

import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager

from cygrad.distributed._c10d.errors import DistStoreError, QueueEmptyError
from cygrad.distributed._c10d.stores.arguments import checked
from cygrad.distributed._c10d.stores.store import PAUSE, Store, as_bytes

__all__ = ["HashStore"]


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
    cygrad.distributed.QueueEmptyError: queue is empty...
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

    @checked
    def set(self, key, value):
        """Set a key to a string or bytes."""
        with self._exclusive() as values:
            self._put(values, key, as_bytes(value))

    @checked
    def get(self, key):
        """Return the value of a key in bytes, once it is there."""
        self.wait([key])
        with self._exclusive() as values:
            return values[key]

    @checked
    def add(self, key, amount):
        """Add to a counter, which starts at 0, and return it."""
        with self._exclusive() as values:
            total = _number(key, values.get(key, b"0")) + amount
            self._put(values, key, str(total).encode())
            return total

    @checked
    def compare_set(self, key, expected_value, desired_value):
        """Set a key if it has the expected value, or is not there and "" is expected; return what it then is."""
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        with self._exclusive() as values:
            if values.get(key, b"") == expected:
                self._put(values, key, desired)
                return desired
            return values.get(key, expected)

    @checked
    def check(self, keys):
        """Whether all these keys are there."""
        with self._exclusive() as values:
            return all(key in values for key in keys)

    @checked
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

    @checked
    def append(self, key, value):
        """Append to the value of a key."""
        with self._exclusive() as values:
            self._put(values, key, values.get(key, b"") + as_bytes(value))

    @checked
    def multi_get(self, keys):
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    @checked
    def multi_set(self, keys, values):
        """Set several keys."""
        if len(keys) != len(values):
            raise DistStoreError(
                "multiSet keys and values vectors must be of same size\n"
                f"  got {len(keys)} keys and {len(values)} values"
            )
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    @checked
    def queue_push(self, key, value):
        """Append a value to a queue."""
        with self._lock:
            self._queues[key].append(as_bytes(value))

    @checked
    def queue_pop(self, key, block=True):
        """Take the first value of a queue; waits for one, or raises QueueEmptyError unless `block`."""
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            with self._lock:
                if self._queues[key]:
                    return self._queues[key].popleft()
            if not block:
                raise QueueEmptyError(f"queue is empty\n  nobody has put anything into queue {key!r}")
            if time.monotonic() >= end:
                raise DistStoreError(f"Wait timeout\n  nobody has put anything into queue {key!r}")
            time.sleep(PAUSE)

    @checked
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


def _number(key, value):
    """The value of a counter."""
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"stoll\n  {key!r} is no counter: its value is {value!r}") from None
