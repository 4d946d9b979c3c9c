"""`FileStore`: a store in a file, which processes on one machine share."""

import os
import struct
from contextlib import contextmanager

from cygrad.distributed._c10d.stores.arguments import checked, refused
from cygrad.distributed._c10d.stores.hash_store import HashStore
from cygrad.distributed._c10d.stores.store import Store

__all__ = ["FileStore"]


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
    >>> [call.__name__ for call in (other.queue_push, other.queue_pop, other.queue_len)]  # raise NotImplementedError
    ['queue_push', 'queue_pop', 'queue_len']
    >>> folder.cleanup()
    """

    _RECORD = struct.Struct("<ii")  # lengths of key and value; -1 for a deleted key

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        if not isinstance(file_name, (str, bytes, os.PathLike)):
            raise refused("__init__", f"`file_name` must be a path, got {file_name!r}", "constructor")
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

    def _too_late(self, keys, timeout):
        return RuntimeError(str(super()._too_late(keys, timeout)))  # as in PyTorch

    @checked
    def get(self, key):
        """Return the value of a key in bytes, once it is there."""
        try:
            return super().get(key)
        except RuntimeError:
            milliseconds = self.timeout.total_seconds() * 1000
            raise RuntimeError(f"Timeout waiting for key: {key} after {milliseconds:.0f} ms") from None

    queue_push, queue_pop, queue_len = Store.queue_push, Store.queue_pop, Store.queue_len

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
