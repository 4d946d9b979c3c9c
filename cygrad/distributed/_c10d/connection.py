"""How `init_process_group` connects this process to the others: by which engine, store and rank."""

from typing import Any, NamedTuple

from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed._c10d.single import Single
from cygrad.distributed._c10d.world import current
from cygrad.distributed.rendezvous import rendezvous

__all__ = ["Connection", "connect", "engines_for", "how_to_install"]


class Connection(NamedTuple):
    """The engine of all processes, the store that they share, and what watches over their collectives, if anything."""

    engine: Any
    store: Any
    guard: Any = None

    @property
    def size(self):
        """The number of processes."""
        return self.engine.size

    def close(self):
        """Leave the other processes."""
        if self.guard is not None:
            self.guard.close()


def how_to_install():
    """What to do where mpi4py or its library is missing."""
    return "to fix it: pip install mpi4py mpich, or 'cygrad[distributed]' (on a cluster: mpi4py with the cluster's MPI)"


def connect(name, init_method, store, rank, world_size, timeout):
    """Find the other processes; returns the `Connection`."""
    world = current()
    if world.engine is not None:
        _check_given("rank", rank, world.engine.rank)
        _check_given("world_size", world_size, world.engine.size)
        return Connection(world.engine, store or world.store)
    if store is None:
        store, rank, world_size = next(iter(rendezvous(init_method or "env://", rank, world_size, timeout=timeout)))
    if world_size > 1:
        raise one_process(f"init_process_group with a world size of {world_size}")
    if rank >= world_size:
        raise RuntimeError(f"rank < size. {rank} vs {world_size}\n  ranks are counted from 0")
    return Connection(Single(), store)


def _check_given(name, given, true):
    """Raise if a number that the program gives is not that of the launcher."""
    if given not in (-1, true):
        raise RuntimeError(
            f"init_process_group(): {name}={given}, but the launcher has started this process with {name} {true}\n"
            f"  to fix it: leave {name} out"
        )


def engines_for(config, engine, connection):
    """{kind of device: engine} for the devices that a group serves."""
    return dict.fromkeys(config.get_device_backend_map(), engine)
