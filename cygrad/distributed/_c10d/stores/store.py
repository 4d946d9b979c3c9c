"""`Store`: keys with values in bytes, in which the processes of a group leave what the others need to find them."""

import time
from datetime import timedelta

from cygrad.distributed._c10d.errors import DistStoreError
from cygrad.distributed._c10d.stores.arguments import checked, refused

__all__ = ["PAUSE", "Store", "as_bytes"]

PAUSE = 0.01  # seconds between two looks into a store that someone else may have changed


def as_bytes(value):
    """A value as stores hold it: a string in UTF-8."""
    return value.encode() if isinstance(value, str) else bytes(value)


def _missing(name, error, text):
    def method(self, *args, **kwargs):
        raise error(f"{text}\n  {type(self).__name__} has no {name}()")

    method.__name__, method.__qualname__ = name, f"Store.{name}"
    method.__doc__ = f"Raises {error.__name__}: subclasses have it."
    return method


def _virtual(name, theirs):
    return _missing(name, RuntimeError, f'Tried to call pure virtual function "::c10d::Store::{theirs}"')


def _of_queues(name):
    return _missing(name, NotImplementedError, "queue support is not implemented.")


class Store:
    """Keys with values in bytes, shared by processes: the base of all stores.

    A subclass has `set`, `get`, `add`, `check`, `delete_key`, `num_keys` and the like. `get` and `wait` wait for keys
    that are not there yet, for `timeout`, and then raise DistStoreError.

    >>> import cygrad.distributed as dist
    >>> store = dist.HashStore()
    >>> isinstance(store, dist.Store)
    True
    >>> store.set("name", "value")
    >>> store.append("name", "s")
    >>> store.get("name"), store.add("counter", 2), store.check(["name"]), store.num_keys()
    (b'values', 2, True, 2)
    >>> store.multi_set(["a", "b"], ["1", "2"])
    >>> store.multi_get(["a", "b"]), store.compare_set("a", "1", "3"), store.delete_key("b"), store.list_keys()
    ([b'1', b'2'], b'3', True, ['name', 'counter', 'a'])
    >>> store.clone().get("a")
    b'3'
    """

    def __init__(self):
        self._timeout = timedelta(seconds=300)

    @property
    def timeout(self):
        """How long `get` and `wait` wait."""
        return self._timeout

    @checked
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
        if timeout is None:
            raise refused("set_timeout", "`timeout` must be a datetime.timedelta, got None")
        self._timeout = timeout

    @checked
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
        end = time.monotonic() + (self.timeout if timeout is None else timeout).total_seconds()
        while not self.check(keys):
            if time.monotonic() >= end:
                raise self._too_late(keys, timeout)
            time.sleep(PAUSE)

    def _too_late(self, keys, timeout):
        """The error when nobody has set the keys in time."""
        return DistStoreError(f"Wait timeout\n  nobody has set {', '.join(map(repr, keys))}")

    set, get, add = _virtual("set", "set"), _virtual("get", "get"), _virtual("add", "add")
    check, delete_key = _virtual("check", "check"), _virtual("delete_key", "deleteKey")
    num_keys, compare_set = _virtual("num_keys", "getNumKeys"), _virtual("compare_set", "compareSet")
    append, clone = _virtual("append", "append"), _virtual("clone", "clone")
    multi_get, multi_set = _virtual("multi_get", "multiGet"), _virtual("multi_set", "multiSet")
    list_keys = _missing("list_keys", NotImplementedError, "listKeys support is not implemented.")
    queue_push, queue_pop, queue_len = _of_queues("queue_push"), _of_queues("queue_pop"), _of_queues("queue_len")

    def has_extended_api(self):
        """Whether `append`, `multi_get`, `multi_set` and queues are supported.

        >>> from cygrad.distributed import FileStore, HashStore, Store
        >>> HashStore().has_extended_api(), Store().has_extended_api()
        (True, False)
        """
        return False
