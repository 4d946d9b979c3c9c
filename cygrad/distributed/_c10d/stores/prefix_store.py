"""`PrefixStore`: a part of another store."""

from cygrad.distributed._c10d.stores.arguments import checked, refused
from cygrad.distributed._c10d.stores.hash_store import HashStore
from cygrad.distributed._c10d.stores.store import Store

__all__ = ["PrefixStore"]


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
        if not isinstance(store, Store):
            raise refused("__init__", f"`store` must be a Store, got {store!r}", "constructor")
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

    @checked
    def set_timeout(self, timeout):
        """Set how long `get` and `wait` wait, as a `timedelta`."""
        self._store.set_timeout(timeout)

    def _name(self, key):
        return key if self._prefix is None else f"{self._prefix}/{key}"

    @checked
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

    @checked
    def multi_get(self, keys):
        """Return the values of several keys."""
        return self._store.multi_get([self._name(key) for key in keys])

    @checked
    def multi_set(self, keys, values):
        """Set several keys."""
        self._store.multi_set([self._name(key) for key in keys], values)

    def clone(self):
        """Return another view of the same keys."""
        return PrefixStore(self._prefix, self._store.clone())


def _with_prefix(name):
    def method(self, key, *args, **kwargs):
        return getattr(self._store, name)(self._name(key), *args, **kwargs)

    like = getattr(HashStore, name)
    method.__name__, method.__qualname__ = name, f"PrefixStore.{name}"
    method.__doc__ = like.__doc__
    return checked(method, like)


for _method in ("set", "get", "add", "compare_set", "delete_key", "append", "queue_push", "queue_pop", "queue_len"):
    setattr(PrefixStore, _method, _with_prefix(_method))
