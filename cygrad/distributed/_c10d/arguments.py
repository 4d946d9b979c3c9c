"""What all collectives do before and after: they check tensors and ranks, and wait or return a `Work`."""

from cygrad import Tensor
from cygrad.distributed._c10d.membership import _get_group, _rank_not_in_group, get_group_rank, get_rank
from cygrad.distributed._c10d.world import current
from cygrad.utils.warning import warn

__all__ = ["check_dtypes", "check_list", "check_tensor", "finished", "member", "partner", "root_of"]


def member(group, name):
    """The group, or None with a warning if this process is not in it."""
    if _rank_not_in_group(group):
        warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.")
        return None
    return _get_group(group)


def finished(work, async_op):
    """What a collective returns: its `Work` if it was asked not to wait."""
    if async_op:
        return work
    manager = current().coalescing
    if manager is not None:
        manager.append(work)
    else:
        work.wait()
    return None


def check_tensor(value, name):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n  got {type(value)} instead."
        )


def check_list(value, name):
    if not isinstance(value, list) or not all(isinstance(each, Tensor) for each in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"  got {type(value)} instead."
        )


def check_dtypes(*tensors):
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}"
            )


def root_of(group, rank, group_rank):
    """The rank in the group, given either as that or as one among all processes."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if rank is not None:
        return get_group_rank(group, rank)
    if group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return group_rank


def partner(group, rank, group_rank, kind):
    """The rank in the group of another process. Raises ValueError if it is this one."""
    peer = root_of(group, rank, group_rank)
    if peer == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    return peer
