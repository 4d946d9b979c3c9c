"""Collectives of objects, which are pickled."""

import pickle

from cygrad.distributed._c10d.collectives import _member, _root
from cygrad.distributed._c10d.errors import one_process

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def _as_received(value):
    """A copy, as another process would receive it."""
    return pickle.loads(pickle.dumps(value))


def all_gather_object(object_list, obj, group=None):
    """Gather the object of each process into `object_list`, in all processes.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> results = [None] * dist.get_world_size()
    >>> dist.all_gather_object(results, {"loss": 0.5})
    >>> results
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    group = _member(group, "all_gather_object")
    if group is not None:
        object_list[group.rank()] = _as_received(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Gather the object of each process into `object_gather_list` of process `dst` (0 by default)."""
    group = _member(group, "gather_object")
    if group is None:
        return
    root = 0 if dst is None and group_dst is None else _root(group, dst, group_dst)
    group._check_root("gather", root)
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[group.rank()] = _as_received(obj)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Send the objects in the list of process `src` to all, which receive them in theirs."""
    group = _member(group, "broadcast_object_list")
    if group is None:
        return
    root = 0 if src is None and group_src is None else _root(group, src, group_src)
    group._check_root("broadcast", root)
    for value in object_list:
        pickle.dumps(value)  # what cannot be sent is an error here too


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Send each process its object of the list of process `src` (0 by default), as the first of its output list."""
    group = _member(group, "scatter_object_list")
    if group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = 0 if src is None and group_src is None else _root(group, src, group_src)
    group._check_root("scatter", root)
    if not scatter_object_input_list:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    group._check_length("scatter", "input", scatter_object_input_list)
    scatter_object_output_list[0] = _as_received(scatter_object_input_list[group.rank()])


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send objects to process `dst`."""
    _check_partner("send_object_list", group, dst, group_dst, "destination")


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive objects from process `src`; returns its rank."""
    _check_partner("recv_object_list", group, src, group_src, "source")


def _check_partner(name, group, rank, group_rank, kind):
    """Raise: in a group of one process there is nobody to send to or receive from."""
    group = _member(group, name)
    if group is None:
        return
    peer = _root(group, rank, group_rank)
    if peer == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    raise one_process(f"{name} with rank {peer}")
