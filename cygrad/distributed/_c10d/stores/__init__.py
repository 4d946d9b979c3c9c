"""Stores, in which the processes of a group leave what the others need to find them."""

from cygrad.distributed._c10d.stores.file_store import FileStore
from cygrad.distributed._c10d.stores.hash_store import HashStore
from cygrad.distributed._c10d.stores.prefix_store import PrefixStore
from cygrad.distributed._c10d.stores.store import Store
from cygrad.distributed._c10d.stores.tcp_store import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
