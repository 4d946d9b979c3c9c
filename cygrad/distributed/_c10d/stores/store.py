"""`Store`: keys with values in bytes, in which the processes of a group leave what the others need to find them."""

import time
from datetime import timedelta

from cygrad.distributed._c10d.errors import DistStoreError

__all__ = ["PAUSE", "Store", "as_bytes"]

PAUSE = 0.01  # seconds between two looks into a store that someone else may have changed


def as_bytes(value):
    """A value as stores hold it: a string in UTF-8."""
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
            time.sleep(PAUSE)

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported.

        >>> from cygrad.distributed import FileStore, HashStore, Store
        >>> HashStore().has_extended_api(), Store().has_extended_api()
        (True, False)
        """
        return False
