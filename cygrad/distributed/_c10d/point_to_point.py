"""Tensors from one process to another."""

from contextlib import ExitStack

from cygrad.distributed._c10d.arguments import check_tensor, finished, member, partner, root_of
from cygrad.distributed._c10d.membership import _get_group

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send `tensor` to process `dst`; returns a `Work`. The tensor must not change before that is finished.

    Raises ValueError if `dst` is this process.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 0:
    ...     dist.isend(cygrad.tensor([1.0, 2.0]), dst=1).wait()
    >>> dist.isend(cygrad.ones(2), dst=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    group = member(group, "isend")
    return group and group.send([tensor], partner(group, dst, group_dst, "destination"), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive into `tensor` what process `src`, by default any, sends; returns a `Work`.

    Raises ValueError if `src` is this process.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 1:
    ...     x = cygrad.empty(2)
    ...     dist.irecv(x, src=0).wait()
    >>> dist.irecv(cygrad.empty(2), src=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid source rank: source rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    group = member(group, "irecv")
    if group is None:
        return None
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    return group.recv([tensor], partner(group, src, group_src, "source"), tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send `tensor` to process `dst`; returns once the tensor may change.

    Raises ValueError if `dst` is this process.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 0:
    ...     dist.send(cygrad.tensor([1.0, 2.0]), dst=1)
    >>> dist.send(cygrad.ones(2), dst=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    return work and finished(work, False)


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive into `tensor` what process `src`, by default any, sends; returns its rank among all processes.

    Raises ValueError if `src` is this process.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> if dist.get_world_size() > 1 and dist.get_rank() == 1:
    ...     x = cygrad.empty(2)
    ...     dist.recv(x, src=0)
    >>> dist.recv(cygrad.empty(2), src=dist.get_rank())
    Traceback (most recent call last):
        ...
    ValueError: Invalid source rank: source rank should not be the same as the rank of the current process.
    >>> dist.destroy_process_group()
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    return _get_group(group)._ranks[work.source_rank() if group_src is None else group_src]


class P2POp:
    """A call of `isend` or `irecv` for `batch_isend_irecv`.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.P2POp(dist.all_reduce, cygrad.ones(2), 0)
    Traceback (most recent call last):
        ...
    ValueError: Invalid ``op``. Expected ``op`` to be of type ...
    >>> dist.destroy_process_group()
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _get_group(group)
        self.group_peer = root_of(self.group, peer, group_peer)
        self.peer = self.group._ranks[self.group_peer] if self.group_peer < self.group.size() else self.group_peer

    def __repr__(self):
        me, peer = self.group.rank(), self.group_peer
        source, target = (me, peer) if self.op is isend else (peer, me)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list):
    """Begin all these calls; returns a list of `Work`.

    Each process may send to the next and receive from the last:

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> found = cygrad.empty(2)
    >>> if size > 1:
    ...     there = dist.P2POp(dist.isend, cygrad.full((2,), float(rank)), (rank + 1) % size)
    ...     here = dist.P2POp(dist.irecv, found, (rank - 1) % size)
    ...     for work in dist.batch_isend_irecv([there, here]):
    ...         work.wait()
    >>> dist.destroy_process_group()
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise IndexError("list index out of range\n  there is no call in the list")
    with ExitStack() as stack:  # with NCCL, a send waits for its receipt, unless both are begun together
        for engine in {each.group._engine(each.tensor) for each in p2p_op_list}:
            stack.enter_context(engine.together())
        return [
            each.op(each.tensor, group=each.group, tag=each.tag, group_dst=each.group_peer)
            if each.op is isend
            else each.op(each.tensor, group=each.group, tag=each.tag, group_src=each.group_peer)
            for each in p2p_op_list
        ]
