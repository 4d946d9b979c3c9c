"""Making groups of processes, and leaving them."""

from datetime import timedelta
from hashlib import sha1
from typing import Any

from cygrad import cuda
from cygrad.distributed._c10d.backends import BackendConfig, checked_backend
from cygrad.distributed._c10d.connection import connect, engines_for
from cygrad.distributed._c10d.membership import (
    NO_GROUP,
    GroupMember,
    _get_default_group,
    _get_group,
    get_global_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from cygrad.distributed._c10d.process_group import ProcessGroup
from cygrad.distributed._c10d.world import current
from cygrad.distributed.constants import default_pg_timeout

__all__ = [
    "destroy_process_group", "init_process_group", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
    "shrink_group", "split_group",
]  # fmt: skip


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
    _ranks=None,
):
    """Make the group of all processes.

    `backend` is "gloo" or "mpi", which both mean MPI, "nccl" (with a GPU) or "cpu:gloo,cuda:nccl". Rank and world size
    are those that the launcher (`mpiexec`, `srun`, `cygrad.distributed.run`) has given this process; without a launcher
    the group has this process alone, and they come from `init_method` ("env://", which is the default, "file://" or
    "tcp://") or accompany `store`. Collectives that last longer than `timeout`, a `timedelta`, raise.

    Raises ValueError if rank and world size are not given, or the group exists; RuntimeError if they are not those of
    the launcher, if the processes do not find each other, or if mpi4py is missing.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_rank(), dist.get_world_size(), dist.get_backend()
    (0, 1, 'gloo')
    >>> dist.destroy_process_group()
    """
    if current().default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    timeout = _checked_timeout(timeout)
    name = checked_backend(backend)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    connection = connect(name, init_method, store, rank, world_size, timeout)
    connection.store.set_timeout(timeout)
    current().connection = connection
    world = range(connection.size)
    current().default = _made(name, list(world), connection.engine, group_name or "0", "default_pg", device_id, timeout)
    current().count = 1


def _checked_timeout(timeout):
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _made(name, ranks, engine, group_name, group_desc, device_id, timeout):
    """Make the group of these ranks, of which this process is one, over an engine that connects them."""
    world = current()
    config = BackendConfig(name)
    made = ProcessGroup(
        engines_for(config, engine, world.connection.store, timeout, world.connection.guard),
        ranks,
        engine.rank,
        name=name,
        config=config,
        store=world.connection.store,
        group_name=group_name,
        timeout=timeout,
        guard=world.connection.guard,
        group_desc=group_desc,
        device_id=device_id,
    )
    world.groups.append(made)
    return made


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
    sort_ranks=True,
):
    """Make a group of some of the processes, by their ranks; of all by default.

    All processes call it, in the same order; those that are not in the group get `GroupMember.NON_GROUP_MEMBER`. With
    `use_local_synchronization` only the members need to call; others get None.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_world_size(group), dist.get_process_group_ranks(group)
    (1, [0])
    >>> dist.destroy_process_group()
    """
    world = _get_default_group()
    timeout = world._timeout_given if timeout is None else _checked_timeout(timeout)
    name = world._name if backend is None else checked_backend(backend)
    ranks = world._ranks if ranks is None else sorted(ranks) if sort_ranks else list(ranks)
    if not ranks:
        raise TypeError("new_group(ranks=[]): a group needs a process; pass the ranks of its members, or None for all")
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group\n"
            f"  got {len(ranks)} ranks for {world.size()} processes"
        )
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if use_local_synchronization:
        group_name = _name_of(ranks)
    else:
        group_name, current().count = str(current().count), current().count + 1
    if world.rank() not in ranks:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    return _joined(name, ranks, group_name, group_desc, device_id, timeout)


def _name_of(ranks):
    """A name for a group that only its members make, and that no group of this process has."""
    name = sha1("_".join(map(str, ranks)).encode()).hexdigest()
    while any(each.group_name == name for each in current().groups):
        name = sha1(f"{name}_".encode()).hexdigest()
    return name


def _joined(name, ranks, group_name, group_desc, device_id, timeout):
    """Make a group together with its other members."""
    connection = current().connection
    if connection.guard is not None:
        connection.guard.meet(ranks, connection.engine, timeout.total_seconds())
    return _made(name, ranks, connection.engine.split(ranks), group_name, group_desc, device_id, timeout)


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Make groups of `group_size` processes each, by default the number of GPUs; returns this process's, and all.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mine, all_of_them = dist.new_subgroups(1)
    >>> mine.size(), len(all_of_them)
    (1, 1)
    >>> dist.destroy_process_group()
    """
    if group_size is None:
        if not cuda.is_available():
            raise ValueError(
                "Default group size only takes effect when CUDA is available.If your subgroup using a backend that "
                "does not depend on CUDA,please pass in 'group_size' correctly."
            )
        group_size = cuda.device_count()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if group_size > size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[first : first + group_size] for first in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Make a group for each list of ranks; returns that of this process, and all of them.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mine, all_of_them = dist.new_subgroups_by_enumeration([[0]])
    >>> dist.get_process_group_ranks(mine)
    [0]
    >>> dist.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    mine: Any = None
    made: list[Any] = []
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if get_rank() in ranks:
            mine = made[-1]
    return mine, made


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """Make a group of each list of ranks of `parent_pg`; returns that of this process, None if it is in no list.

    Only the members of `parent_pg` call it. Ranks are those in `parent_pg`, by default the group of all. Raises
    ValueError for lists that are empty, too long, or name a rank twice.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.split_group(split_ranks=[[0]]).size()
    1
    >>> dist.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _get_group(parent_pg)
    timeout = parent._timeout_given if timeout is None else _checked_timeout(timeout)
    name = parent._name if backend is None else checked_backend(backend)
    for ranks in split_ranks:
        if not ranks:
            raise ValueError("the split group cannot be empty")
        if len(ranks) > get_world_size():
            raise ValueError(
                "the split group's size should be less or equal to the world_size set by init_process_group"
            )
        if len(set(ranks)) < len(ranks):
            raise ValueError("the split group cannot have duplicate ranks")
        for rank in ranks:
            if not 0 <= rank < parent.size():
                raise ValueError(f"Group rank {rank} is not part of group {parent}")
    for ranks in split_ranks:
        if parent.rank() in ranks:
            members = [get_global_rank(parent, each) for each in sorted(ranks)]
            desc = group_desc or f"{parent.group_desc}:split"
            return _joined(name, members, _name_of(members), desc, parent.bound_device_id, timeout)
    return None


def shrink_group(ranks_to_exclude, group=None, shrink_flags=0, pg_options=None):
    """Raises TypeError, as in PyTorch with gloo: make a group of the others by `new_group`.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.shrink_group([0])
    Traceback (most recent call last):
        ...
    TypeError: Process group backend for '0' does not support shrinking operations...
    >>> dist.destroy_process_group()
    """
    raise TypeError(
        f"Process group backend for '{_get_group(group).group_name}' does not support shrinking operations.\n"
        "  to fix it: make a group of the others, `new_group(ranks)`"
    )


def destroy_process_group(group=None):
    """Leave a group; by default all of them.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.destroy_process_group()
    >>> dist.is_initialized()
    False
    """
    if group is None or group is current().default:
        if current().default is None:
            raise AssertionError("Process group cannot be None\n  " + NO_GROUP)
        _leave_all()
    elif group is not GroupMember.NON_GROUP_MEMBER:
        if group not in current().groups:
            raise ValueError("Invalid process group specified")
        current().groups.remove(group)
        group._close()


def _set_pg_timeout(timeout, group=None):
    """Set how long the collectives of a group wait, as a `timedelta`."""
    _get_group(group).set_timeout(_checked_timeout(timeout))


def _leave_all():
    world = current()
    for group in world.groups[::-1]:
        group._close()
    connection, world.connection = world.connection, None
    world.default, world.groups, world.count = None, [], 0
    connection.close()
