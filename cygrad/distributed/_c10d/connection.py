"""How `init_process_group` connects this process to the others: by which engine, store and rank."""

import os
import subprocess
import sys
import traceback
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlparse

from cygrad import get_num_threads, set_num_threads
from cygrad.distributed._c10d.engines import start_mpi
from cygrad.distributed._c10d.engines.single import Single
from cygrad.distributed._c10d.stores import HashStore
from cygrad.distributed._c10d.supervision.guard import Guard, program_line
from cygrad.distributed._c10d.supervision.launchers import command, launched
from cygrad.distributed._c10d.world import current
from cygrad.distributed.rendezvous import _from_url, handler_of, rendezvous

__all__ = ["Connection", "connect", "engines_for"]


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


def connect(name, init_method, store, rank, world_size, timeout):
    """Find the other processes; returns the `Connection`."""
    world = current()
    if world.engine is not None:  # a thread that stands for a process
        _check_given(world.engine, rank, world_size)
        return Connection(world.engine, store or world.store)
    if store is None:
        handler_of(init_method or "env://")
        rank, world_size = _told(init_method or "env://", rank, world_size)
    launch = launched()
    if world_size == 1 or (world_size == -1 and launch is None and name != "mpi"):
        if launch is not None and launch.size > 1 and store is None:
            _check_given(launch, rank, world_size)
        return _alone(init_method, store, rank, world_size, timeout)
    return _by_mpi(launch, store, rank, world_size, timeout)


def _told(init_method, rank, world_size):
    """Rank and world size as the program and the environment give them; -1 for what they do not."""
    rank, world_size = _from_url(init_method, rank, world_size) if isinstance(init_method, str) else (rank, world_size)
    if isinstance(init_method, str) and urlparse(init_method).scheme == "env":
        rank = int(os.environ.get("RANK", -1)) if rank == -1 else rank
        world_size = int(os.environ.get("WORLD_SIZE", -1)) if world_size == -1 else world_size
    return rank, world_size


def _check_given(true, rank, world_size):
    """Raise if a number that the program gives is not the one that `true` has as its `rank` or `size`."""
    for name, given, known in (("rank", rank, true.rank), ("world_size", world_size, true.size)):
        if given not in (-1, known):
            raise RuntimeError(
                f"init_process_group(): {name}={given}, but the launcher has given this process {name}={known}\n"
                f"  to fix it: leave {name} and its variable out, or make them agree"
            )


def _alone(init_method, store, rank, world_size, timeout):
    """The connection of the only process."""
    if store is None:
        store, rank, world_size = next(iter(rendezvous(init_method or "env://", rank, world_size, timeout=timeout)))
    if rank >= world_size:
        raise RuntimeError(f"rank < size. {rank} vs {world_size}\n  ranks are counted from 0")
    return Connection(Single(), store)


def _is_of_multiprocessing():
    """Whether `multiprocessing` has started this process; then it is imported."""
    module = sys.modules.get("multiprocessing")
    return module is not None and module.parent_process() is not None


def _by_mpi(launch, store, rank, world_size, timeout):
    """The connection of one of several processes, or of the only one where "mpi" was asked for."""
    if launch is None and world_size > 1:
        what = f"init_process_group(): a world of {world_size} processes, and no launcher that MPI knows has started"
        if _is_of_multiprocessing():
            raise RuntimeError(
                f"{what} this one, which `multiprocessing.spawn` or the like has\n"
                "  to fix it: start the function by distributed.launcher.elastic_launch("
                f"LaunchConfig(1, 1, {world_size}), function)(...), and read its rank from the variable RANK"
            )
        raise RuntimeError(
            f"{what} this one: variables such as RANK and WORLD_SIZE alone (torchrun's) do not connect processes\n"
            f"  to fix it: python -m cygrad.distributed.run --nproc-per-node {world_size} train.py, or "
            f"{command(world_size)}"
        )
    if launch is not None:
        _check_given(launch, rank, world_size)
    with _watched(launch, timeout.total_seconds(), program_line(sys._getframe())):
        return _met(store)


def _met(store):
    """The connection, once MPI has started and all processes have come."""
    start_mpi()
    # MPI has started.
    from cygrad.distributed._c10d.engines.mpi import MPI, Mpi, world
    from cygrad.distributed._c10d.stores.mpi_store import shared_store  # likewise

    everyone = world()
    if everyone.size == 1:
        return Connection(Single(), store or HashStore())
    try:
        here = everyone.Split_type(MPI.COMM_TYPE_SHARED)
        guard = Guard(everyone, here) if os.name == "posix" else None  # it needs files without names
        _share_cores(here.size)
        here.Free()
        return Connection(Mpi(everyone.Dup()), store or shared_store(), guard)
    except BaseException:  # from here on others wait for this process, and nothing watches yet
        traceback.print_exc()
        everyone.Abort(1)
        raise


@contextmanager
def _watched(launch, seconds, place):
    """Within this context a program watches this process: MPI waits without a look around, and lets no thread run."""
    if launch is None or launch.size == 1 or os.name != "posix":
        yield
        return
    program = os.path.join(os.path.dirname(__file__), "supervision", "starting.py")
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", program, str(os.getpid()), str(seconds), place],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # so that it can clear up when the launcher kills all
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def _share_cores(local_size):
    """Let the processes of a machine use its cores in equal parts, unless the user has said how many."""
    if os.environ.get("CYGRAD_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS"):
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores == (os.cpu_count() or 1):  # else the launcher has given each process its own
        set_num_threads(max(1, min(get_num_threads(), cores // local_size)))


def engines_for(config, engine, store, timeout, guard=None):
    """{kind of device: engine} for the devices that a group serves; `engine` is that of the main memory."""
    engines = {}
    for kind, backend in config.get_device_backend_map().items():
        if backend in backend.registered:
            engines[kind] = backend.registered[backend](store, engine.rank, engine.size, timeout)
        elif kind != "cuda":
            engines[kind] = engine
        elif engine.size == 1:
            engines[kind] = Single(on_device=True)
        elif backend == backend.NCCL:
            from cygrad.distributed._c10d.engines.nccl import Nccl  # which imports CuPy's NCCL

            engines[kind] = Nccl(engine, guard)
        else:
            engines[kind] = engine
    return engines
