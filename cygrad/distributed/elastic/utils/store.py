"""Meeting of processes, and exchange of their data, by a store."""

from contextlib import contextmanager
from datetime import timedelta

from cygrad.distributed._c10d.errors import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_MOST_MISSING = 16  # ranks that an error names


@contextmanager
def store_timeout(store, timeout):
    """Within this context the store waits for so many seconds.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.utils.store import store_timeout
    >>> store = dist.HashStore()
    >>> with store_timeout(store, 3):
    ...     print(store.timeout)
    0:00:03
    >>> store.timeout.total_seconds()
    300.0
    """
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store, rank, prefix, world_size):
    """Return what all ranks have set: the values of `prefix0`, `prefix1` and so on, once they are there.

    Rank 0 returns after all others, so that it may end its store then.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.utils.store import get_all
    >>> store = dist.HashStore()
    >>> store.set("loss0", "0.5")
    >>> get_all(store, 0, "loss", 1)
    [b'0.5']
    """
    values = store.multi_get([f"{prefix}{index}" for index in range(world_size)])
    everyone = _arrive(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([everyone])
    return values


def synchronize(store, data, rank, world_size, key_prefix, timeout=300):
    """Set the data of this rank, and return that of all, within `timeout` seconds.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.utils.store import synchronize
    >>> synchronize(dist.HashStore(), b"0.5", 0, 1, "loss")
    [b'0.5']
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def barrier(store, world_size, key_prefix, barrier_timeout=300, rank=None, rank_tracing_decoder=None, trace_timeout=10):
    """Wait until as many processes have come. Raises DistStoreError after `barrier_timeout` seconds.

    If processes give their ranks, the error says which ranks are missing: rank 0 looks for them, for `trace_timeout`
    seconds, and the others refer to it. `rank_tracing_decoder` makes texts of ranks.

    >>> import cygrad.distributed as dist
    >>> from cygrad.distributed.elastic.utils.store import barrier
    >>> barrier(dist.HashStore(), 1, "here")
    >>> barrier(dist.HashStore(), 2, "here", barrier_timeout=0.02, rank=0, trace_timeout=0.02)
    Traceback (most recent call last):
        ...
    cygrad.distributed.DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: here (world_size=2, ...
    """
    if rank is None and rank_tracing_decoder is not None:
        raise AssertionError("Tracing requires rank information")
    with store_timeout(store, barrier_timeout):
        everyone = _arrive(store, world_size, key_prefix)
        try:
            store.wait([everyone])
        except DistStoreError:
            if rank is None:
                raise
            missing = _missing(store, world_size, key_prefix, rank, rank_tracing_decoder or str, trace_timeout)
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{', '.join(missing)}], timeout={barrier_timeout})"
            ) from None


def _arrive(store, world_size, prefix):
    """Count this process; returns the key that the last one sets."""
    key = f"{prefix}/last_member"
    if store.add(f"{prefix}/num_members", 1) == world_size:
        store.set(key, "here")
    return key


def _missing(store, world_size, prefix, rank, text_of, seconds):
    """Which ranks are missing, or where to look for that; None if rank 0 is missing itself."""
    store.set(f"{prefix}{rank}/TRACE", "here")
    looked = f"{prefix}/TRACING_GATE"
    if rank != 0:
        try:
            store.wait([looked])
        except DistStoreError:
            return None
        return [f"[<check rank 0 ({text_of(0)}) for missing rank info>]"]
    missing: list[str] = []
    for other in range(1, world_size):
        try:
            store.wait([f"{prefix}{other}/TRACE"], timedelta(milliseconds=1) if missing else timedelta(seconds=seconds))
        except DistStoreError:
            missing.append(text_of(other))
        if len(missing) == _MOST_MISSING:
            break
    store.set(looked, "here")
    return missing
