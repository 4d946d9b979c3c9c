"""The groups of this process: making, asking and leaving them."""

import os
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from cygrad import cuda
from cygrad.distributed._c10d.connection import connect, engines_for
from cygrad.distributed._c10d.errors import HOW_TO_INSTALL, one_process
from cygrad.distributed._c10d.process_group import Backend, BackendConfig, ProcessGroup
from cygrad.distributed._c10d.world import current
from cygrad.distributed.constants import default_pg_timeout

__all__ = [
    "GroupMember", "destroy_process_group", "get_backend", "get_backend_config", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
    "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "shrink_group", "split_group",
]  # fmt: skip

_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class _Default(type):
    @property
    def WORLD(cls):
        """The group of all processes, or None before `init_process_group`."""
        return current().default

    @WORLD.setter
    def WORLD(cls, value):
        current().default = value


class group(metaclass=_Default):
    """`group.WORLD` is the group of all processes, or None before `init_process_group`.

    >>> import cygrad
    >>> print(cygrad.distributed.group.WORLD)
    None
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.group.WORLD.size()
    1
    >>> dist.destroy_process_group()
    """


class GroupMember(metaclass=_Default):
    """`GroupMember.WORLD` is the group of all processes; `NON_GROUP_MEMBER` stands for a group without this process.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.GroupMember.WORLD.rank()
    0
    >>> dist.destroy_process_group()
    """

    NON_GROUP_MEMBER = -100


# --- What there is -------------------------------------------------------------------------------


def is_available():
    """Whether this package works: always True. Groups of several processes need mpi4py.

    >>> import cygrad
    >>> dist = cygrad.distributed
    >>> dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    0
    """
    return True


def is_initialized():
    """Whether `init_process_group` has been called.

    >>> import cygrad.distributed as dist
    >>> dist.is_initialized()
    False
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.is_initialized()
    True
    >>> dist.destroy_process_group()
    """
    return current().default is not None


def is_torchelastic_launched():
    """Whether `torchrun`, or `python -m cygrad.distributed.run`, started this process.

    >>> import cygrad
    >>> cygrad.distributed.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_gloo_available():
    """Whether groups can be made with "gloo", for tensors on the CPU: True.

    >>> import cygrad
    >>> cygrad.distributed.is_gloo_available()
    True
    """
    return True


def is_nccl_available():
    """Whether groups can be made with "nccl": if there is a GPU.

    >>> import cygrad
    >>> cygrad.distributed.is_nccl_available() == cygrad.cuda.is_available()
    True
    """
    return cuda.is_available()


def is_mpi_available():
    """Whether groups can be made with "mpi": if mpi4py is installed.

    >>> import cygrad
    >>> import importlib.util
    >>> cygrad.distributed.is_mpi_available() == (importlib.util.find_spec("mpi4py") is not None)
    True
    """
    return find_spec("mpi4py") is not None


def is_ucc_available():
    """Whether groups can be made with "ucc": False.

    >>> import cygrad
    >>> cygrad.distributed.is_ucc_available()
    False
    """
    return False


def is_xccl_available():
    """Whether groups can be made with "xccl": False.

    >>> import cygrad
    >>> cygrad.distributed.is_xccl_available()
    False
    """
    return False


def is_backend_available(backend):
    """Whether groups can be made with a back end, by name.

    >>> import cygrad
    >>> cygrad.distributed.is_backend_available("gloo"), cygrad.distributed.is_backend_available("ucc")
    (True, False)
    """
    name = backend.lower()
    known = {"gloo": is_gloo_available, "nccl": is_nccl_available, "mpi": is_mpi_available}
    return known[name]() if name in known else name in Backend.registered


def get_default_backend_for_device(device):
    """The name of the back end for a device.

    >>> from cygrad import distributed
    >>> distributed.get_default_backend_for_device("cpu")
    'gloo'
    """
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


# --- Making groups -------------------------------------------------------------------------------


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
    name = _checked_backend(backend)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    connection = connect(name, init_method, store, rank, world_size, timeout)
    connection.store.set_timeout(timeout)
    current().connection = connection
    world = range(connection.size)
    current().default = _made(name, list(world), connection.engine, group_name, "default_pg", device_id, timeout)


def _checked_timeout(timeout):
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _checked_backend(backend):
    """The name as a `Backend`; raises if one of those it names is not there."""
    name = Backend(Backend.UNDEFINED if backend is None else backend)
    for part in BackendConfig(name).device_backend_map.values():
        if part not in Backend.backend_list:
            kind = f"c10d backend type {part.upper()}" if ":" in name else f"backend type {part}"
            raise AssertionError(f"Unknown {kind}")
        if part == Backend.NCCL and ":" not in name and not is_nccl_available():
            raise RuntimeError(
                "Distributed package doesn't have NCCL built in\n"
                '  there is no GPU; to fix it: pass "gloo", e.g. "nccl" if torch.cuda.is_available() else "gloo"'
            )
        if part == Backend.FAKE and current().engine is not None:
            continue
        if part == Backend.MPI and not is_mpi_available():
            raise RuntimeError(f"Distributed package doesn't have MPI built in\n  {HOW_TO_INSTALL}")
        if part not in (Backend.GLOO, Backend.NCCL, Backend.MPI, *Backend.registered):
            raise RuntimeError(f'Distributed package doesn\'t have {part.upper()} built in. Pass "gloo" or "nccl"')
    return name


def _made(name, ranks, engine, group_name, group_desc, device_id, timeout):
    """Make the group of these ranks, of which this process is one, over an engine that connects them."""
    world = current()
    group_name = group_name or str(world.count)
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
    world.count += 1
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
    `use_local_synchronization` only the members need to call.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_world_size(group), dist.get_process_group_ranks(group)
    (1, [0])
    >>> dist.destroy_process_group()
    """
    world = _get_default_group()
    timeout = world._timeout_given if timeout is None else _checked_timeout(timeout)
    name = world._name if backend is None else _checked_backend(backend)
    ranks = world._ranks if ranks is None else list(ranks)
    if not ranks:
        raise TypeError("new_group(ranks=[]): a group needs a process; pass the ranks of its members, or None for all")
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    for rank in ranks:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if sort_ranks:
        ranks = sorted(ranks)
    if world.rank() not in ranks:
        current().count += 1
        return GroupMember.NON_GROUP_MEMBER
    connection = current().connection
    if connection.guard is not None:
        connection.guard.meet(ranks, connection.engine, timeout.total_seconds())
    engine = connection.engine.split(ranks)
    return _made(name, ranks, engine, "", group_desc, device_id, timeout)


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Make groups of `group_size` processes each; returns that of this process, and all of them.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mine, all_of_them = dist.new_subgroups(1)
    >>> mine.size(), len(all_of_them)
    (1, 1)
    >>> dist.destroy_process_group()
    """
    size = get_world_size(group)
    if group_size is None:
        group_size = size
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    parts = [list(range(first, first + group_size)) for first in range(0, size, group_size)]
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
    seen: set = set()
    mine: Any = None
    made: list[Any] = []
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {made} and {ranks}")
            seen.add(rank)
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if get_rank() in ranks:
            mine = made[-1]
    return mine, made


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """Make a group of each list of ranks of `parent_pg`; returns that of this process.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.split_group(split_ranks=[[0]]).size()
    1
    >>> dist.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    return new_subgroups_by_enumeration(split_ranks, timeout, backend, pg_options, group_desc)[0]


def shrink_group(ranks_to_exclude, group=None, shrink_flags=0, pg_options=None):
    """Raises RuntimeError: only a group of several processes can lose some.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.shrink_group([0])
    Traceback (most recent call last):
        ...
    RuntimeError: shrink_group([0]): this works in one process for now...
    >>> dist.destroy_process_group()
    """
    raise one_process(f"shrink_group({ranks_to_exclude!r})")


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
            raise AssertionError("Process group cannot be None\n  " + _NO_GROUP)
        _leave_all()
    elif group is not GroupMember.NON_GROUP_MEMBER:
        if group not in current().groups:
            raise ValueError("Invalid process group specified")
        current().groups.remove(group)
        group._close()


def _leave_all():
    world = current()
    for group in world.groups[::-1]:
        group._close()
    connection, world.connection = world.connection, None
    world.default, world.groups, world.count = None, [], 0
    connection.close()


# --- Asking --------------------------------------------------------------------------------------


def _get_default_group():
    """The group of all processes; raises ValueError if there is none."""
    if current().default is None:
        raise ValueError(
            f"{_NO_GROUP}\n"
            "  ask `dist.is_initialized()` first, or make a group of this process: "
            'dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)'
        )
    return current().default


def _get_default_store():
    """The store of the group of all processes."""
    return _get_default_group()._store


def _get_process_group_name(group):
    """The name by which `_resolve_process_group` finds a group."""
    return group.group_name


def _resolve_process_group(group_name):
    """The group of this name; raises RuntimeError if there is none."""
    for each in current().groups:
        if each.group_name == group_name:
            return each
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")


def _rank_not_in_group(group):
    """Whether a group is one of other processes only."""
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _get_group(group):
    """A group, by default that of all; raises ValueError for anything else."""
    if group is None:
        return _get_default_group()
    if not isinstance(group, ProcessGroup) or group not in current().groups:
        raise ValueError(
            f"Process group {group} is not initialized in the world group map. Please initialize the group first."
        )
    return group


def get_rank(group=None):
    """This process's rank in a group, by default in that of all; -1 if it is not in it.

    Raises ValueError before `init_process_group`.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_rank()
    0
    >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        return -1
    world = _get_default_group()
    if group is None or group is world:
        return world.rank()
    return get_group_rank(group, world.rank())


def get_world_size(group=None):
    """The number of processes in a group, by default in that of all; -1 if this process is not in it.

    Raises ValueError before `init_process_group`.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    return -1 if _rank_not_in_group(group) else _get_group(group).size()


def get_backend(group=None):
    """The name of a group's back end, such as "gloo".

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_backend()
    'gloo'
    >>> dist.destroy_process_group()
    """
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return _get_group(group)._name


def get_backend_config(group=None):
    """Which back end of a group serves which kind of device, such as "cpu:gloo".

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_backend_config()
    'cpu:gloo,cuda:gloo'
    >>> dist.destroy_process_group()
    """
    return repr(_get_group(group)._config)


def get_process_group_ranks(group=None):
    """The ranks of a group's members among all processes.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.get_process_group_ranks(dist.group.WORLD)
    [0]
    >>> dist.destroy_process_group()
    """
    return list(_get_group(group)._ranks)


def get_group_rank(group, global_rank):
    """The rank in a group of the process with this rank among all.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_group_rank(group, 0)
    0
    >>> dist.destroy_process_group()
    """
    if group is GroupMember.WORLD:
        return global_rank
    if group not in current().groups:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    if global_rank not in group._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group._ranks.index(global_rank)


def get_global_rank(group, group_rank):
    """The rank among all processes of the member of a group with this rank in it.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_global_rank(group, 0)
    0
    >>> dist.destroy_process_group()
    """
    if group is GroupMember.WORLD:
        return group_rank
    if group not in current().groups:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group._ranks[group_rank]


def get_node_local_rank(fallback_rank=None):
    """This process's rank among those of its machine, from the variable `LOCAL_RANK` or else `fallback_rank`.

    Raises RuntimeError if there is neither.

    >>> import cygrad
    >>> cygrad.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, assuming you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(fallback_rank)


def get_pg_count():
    """The number of groups made since `init_process_group`.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_pg_count()
    2
    >>> dist.destroy_process_group()
    """
    return current().count
