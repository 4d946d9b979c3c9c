"""Worlds of any size in one process, for tests: each rank is a thread.

Collectives are exact: sums are taken in the order of ranks. A rank that fails makes all others raise, and ranks that
wait for each other in vain raise after a timeout. What is global in a process (the default random number generator,
say) is shared.
"""

import threading
from datetime import timedelta

from cygrad.distributed._c10d.engines.fake import FakeWorld
from cygrad.distributed._c10d.groups import destroy_process_group, init_process_group
from cygrad.distributed._c10d.membership import is_initialized
from cygrad.distributed._c10d.stores import HashStore
from cygrad.distributed._c10d.world import World, enter

__all__ = ["simulate"]


def simulate(function, world_size, *args, timeout=60.0, world=None):
    """Call `function(*args)` in `world_size` threads, each of which is a rank of one world; returns their results.

    Within the function `dist.get_rank()` and all collectives work as in a process of its own. Raises the error of the
    first rank that failed. `timeout` is in seconds, for each collective. `world`, a `FakeWorld`, keeps the calls.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed._fake import simulate
    >>> def total():
    ...     x = cygrad.tensor([dist.get_rank() + 1.0])
    ...     dist.all_reduce(x)
    ...     return x.item()
    >>> simulate(total, 4)
    [10.0, 10.0, 10.0, 10.0]
    """
    world = world or FakeWorld(world_size)
    store = HashStore()
    results: list = [None] * world_size

    def rank_runs(rank):
        enter(World(world.engine(rank), store))
        try:
            init_process_group("fake", timeout=timedelta(seconds=timeout))
            results[rank] = function(*args)
        except BaseException as error:
            world.fail(rank, error)
        finally:
            if is_initialized():
                destroy_process_group()
            enter(None)

    threads = [threading.Thread(target=rank_runs, args=(rank,), daemon=True) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if world.failure is not None:
        raise world.failure[1]
    return results
