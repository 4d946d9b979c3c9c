"""Which groups there are, and which ranks processes have in them."""

import os

from cygrad.distributed._c10d.process_group import ProcessGroup
from cygrad.distributed._c10d.world import current

__all__ = [
    "GroupMember", "get_backend", "get_backend_config", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "is_available", "is_initialized",
    "is_torchelastic_launched",
]  # fmt: skip

NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


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


def _get_default_group():
    """The group of all processes; raises ValueError if there is none."""
    if current().default is None:
        raise ValueError(
            f"{NO_GROUP}\n"
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
    """The number of groups made since `init_process_group`, without those that only their members make.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> group = dist.new_group([0])
    >>> dist.get_pg_count()
    2
    >>> dist.destroy_process_group()
    """
    return current().count
