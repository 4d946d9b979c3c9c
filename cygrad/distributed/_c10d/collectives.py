"""The collectives: `all_reduce`, `broadcast`, `all_gather` and the rest.

Each takes `group=` (all processes by default) and most `async_op=`: then they return a `Work` to wait for, else None. A
process that is not in the group gets a warning and does nothing.
"""

from contextlib import ExitStack, contextmanager

from cygrad import Tensor
from cygrad.distributed._c10d.groups import _get_group, _rank_not_in_group, get_group_rank, get_rank
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed._c10d.work import joined
from cygrad.distributed._c10d.world import current
from cygrad.utils.warning import warn

__all__ = [
    "P2POp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "gather",
    "irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip


def _member(group, name):
    """The group, or None with a warning if this process is not in it."""
    if _rank_not_in_group(group):
        warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.")
        return None
    return _get_group(group)


def _finished(work, async_op):
    """What a collective returns: its `Work` if it was asked not to wait."""
    if async_op:
        return work
    manager = current().coalescing
    if manager is not None:
        manager.append(work)
    else:
        work.wait()
    return None


def _check_tensor(value, name):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n  got {type(value)} instead."
        )


def _check_list(value, name):
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, Tensor) for each in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"  got {type(value)} instead."
        )


def _check_dtypes(*tensors):
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}"
            )


def _root(group, rank, group_rank):
    """The rank in the group, given either as that or as one among all processes."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if rank is not None:
        return get_group_rank(group, rank)
    if group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return group_rank


# --- One tensor in each process ------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `tensor` over all processes, in place: each has the result.

    A sparse tensor (`torch.sparse_coo`) can be added up, and is coalesced then; other reductions raise RuntimeError.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2)
    >>> dist.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    group = _member(group, "all_reduce")
    return group and _finished(group.allreduce([tensor], op), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a list of tensors over all processes, in place. Deprecated, as in PyTorch.

    Raises ValueError if the tensors differ in dtype.

    >>> import warnings
    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x, y = cygrad.ones(2), cygrad.ones(1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     dist.all_reduce_coalesced([x, y])  # each is the sum over all processes then
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _deprecated("all_reduce_coalesced")
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_list(tensors, "tensor")
    _check_dtypes(*tensors)
    group = _member(group, "all_reduce_coalesced")
    return group and _finished(group.allreduce_coalesced(tensors, op), async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce `tensor` over all processes, into that of process `dst`.

    `dst` is a rank among all processes, `group_dst` one in the group: raises ValueError unless one is given. The
    tensors have one shape and dtype in all processes.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> dist.reduce(x, dst=0, op=dist.ReduceOp.MAX)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    group = _member(group, "reduce")
    return group and _finished(group.reduce([tensor], _root(group, dst, group_dst), op), async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Send the `tensor` of process `src` to all, which receive it in theirs.

    `src` is a rank among all processes, `group_src` one in the group: raises ValueError unless one is given. The
    tensors have one shape and dtype in all processes.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0]) if dist.get_rank() == 0 else cygrad.empty(2)
    >>> dist.broadcast(x, src=0)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    group = _member(group, "broadcast")
    return group and _finished(group.broadcast([tensor], _root(group, src, group_src)), async_op)


# --- A list, or one tensor for all ---------------------------------------------------------------


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Gather the `tensor` of each process into `tensor_list`, in all processes.

    The list has a tensor for each process, all of the shape and dtype of `tensor`; otherwise RuntimeError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> found = [cygrad.empty(2) for _ in range(dist.get_world_size())]
    >>> dist.all_gather(found, x)
    >>> found
    [tensor([1., 2.])]
    >>> dist.destroy_process_group()
    """
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_dtypes(*tensor_list, tensor)
    group = _member(group, "all_gather")
    return group and _finished(group.allgather(tensor_list, tensor), async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """Gather several tensors of each process into as many lists. Deprecated, as in PyTorch.

    >>> import warnings
    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [[cygrad.empty(2)], [cygrad.empty(1)]]  # a list with a tensor of each process, for each tensor
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     dist.all_gather_coalesced(found, [cygrad.ones(2), cygrad.zeros(1)])
    >>> found
    [[tensor([1., 1.])], [tensor([0.])]]
    >>> dist.destroy_process_group()
    """
    _deprecated("all_gather_coalesced")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    _check_list(input_tensor_list, "input_tensor_list")
    group = _member(group, "all_gather_coalesced")
    if group is None:
        return None
    works = [group.allgather(outputs, each) for outputs, each in zip(output_tensor_lists, input_tensor_list)]
    return _finished(joined(works, [tensor for work in works for tensor in work.result()]), async_op)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """Gather the `input_tensor` of each process into one tensor, in which they follow each other.

    `output_tensor` has the dtype of the input, and as many elements for each process; otherwise ValueError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> found = cygrad.empty(2 * dist.get_world_size())
    >>> dist.all_gather_single(found, x)
    >>> found
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    _check_dtypes(output_tensor, input_tensor)
    group = _member(group, "all_gather_into_tensor")
    if group is None:
        return None
    return _finished(group._allgather_base(output_tensor, input_tensor), async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """`all_gather_single` by its older name.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = cygrad.empty(2 * dist.get_world_size())
    >>> dist.all_gather_into_tensor(found, cygrad.tensor([1.0, 2.0]))
    >>> found
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    return all_gather_single(output_tensor, input_tensor, group, async_op)


_all_gather_base = all_gather_into_tensor


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Gather the `tensor` of each process into the `gather_list` of process `dst` (0 by default).

    `gather_list` has, in process `dst` alone, a tensor like `tensor` for each process, or else RuntimeError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [cygrad.empty(2) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    >>> dist.gather(cygrad.tensor([1.0, 2.0]), found, dst=0)
    >>> found
    [tensor([1., 2.])]
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    group = _member(group, "gather")
    if group is None:
        return None
    root = 0 if dst is None and group_dst is None else _root(group, dst, group_dst)
    _check_list_is_at_root("gather_list", "destination", gather_list, group.rank() == root)
    _check_list(gather_list or [], "gather_list")
    _check_dtypes(tensor, *(gather_list or ()))
    return _finished(group.gather(gather_list, tensor, root), async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Send each process its tensor of the `scatter_list` of process `src` (0 by default), into `tensor`.

    `scatter_list` has, in process `src` alone, a tensor like `tensor` for each process, or else RuntimeError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x, rank, size = cygrad.empty(2), dist.get_rank(), dist.get_world_size()
    >>> dist.scatter(x, [cygrad.full((2,), float(i)) for i in range(size)] if rank == 0 else None, src=0)
    >>> x
    tensor([0., 0.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(tensor, "tensor")
    group = _member(group, "scatter")
    if group is None:
        return None
    root = 0 if src is None and group_src is None else _root(group, src, group_src)
    _check_list_is_at_root("scatter_list", "source", scatter_list, group.rank() == root)
    _check_list(scatter_list or [], "scatter_list")
    _check_dtypes(tensor, *(scatter_list or ()))
    return _finished(group.scatter(tensor, scatter_list, root), async_op)


def _check_list_is_at_root(name, kind, value, is_root):
    if is_root and not value:
        raise ValueError(f"Argument ``{name}`` must be specified on {kind} rank.")
    if not is_root and value:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{kind} ranks.")


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce lists over all processes, and leave in `output` the result for this process.

    `input_list` has a tensor like `output` for each process, or else RuntimeError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.empty(2)
    >>> dist.reduce_scatter(x, [cygrad.ones(2) for _ in range(dist.get_world_size())])
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    _check_dtypes(output, *input_list)
    group = _member(group, "reduce_scatter")
    return group and _finished(group.reduce_scatter(output, input_list, op), async_op)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `input` over all processes, and leave in `output` the part of this process.

    `input` has the dtype of `output`, and as many elements for each process; otherwise ValueError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.empty(2)
    >>> dist.reduce_scatter_single(x, cygrad.ones(2 * dist.get_world_size()))
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_dtypes(output, input)
    group = _member(group, "reduce_scatter_tensor")
    if group is None:
        return None
    return _finished(group._reduce_scatter_base(output, input, op), async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """`reduce_scatter_single` by its older name.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.empty(2)
    >>> dist.reduce_scatter_tensor(x, cygrad.ones(2 * dist.get_world_size()))
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return reduce_scatter_single(output, input, op, group, async_op)


_reduce_scatter_base = reduce_scatter_tensor


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send the i-th tensor of each process to process i, which has one from each then.

    Both lists have a tensor for each process, or else RuntimeError is raised.
    What arrives has the shape of what was sent.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = [cygrad.empty(2) for _ in range(dist.get_world_size())]
    >>> dist.all_to_all(found, [cygrad.full((2,), float(rank)) for rank in range(dist.get_world_size())])
    >>> found
    [tensor([0., 0.])]
    >>> dist.destroy_process_group()
    """
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_dtypes(*output_tensor_list, *input_tensor_list)
    group = _member(group, "all_to_all")
    return group and _finished(group.alltoall(output_tensor_list, input_tensor_list), async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Send the i-th part of `input` to process i, and collect in `output` the parts from all.

    Parts are along the first dimension: equal ones, or as long as the split sizes say, a number for each process.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> found = cygrad.empty(2)
    >>> dist.all_to_all_single(found, cygrad.tensor([1.0, 2.0]), [2], [2])
    >>> found
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_dtypes(output, input)
    group = _member(group, "all_to_all_single")
    if group is None:
        return None
    return _finished(group.alltoall_base(output, input, output_split_sizes, input_split_sizes), async_op)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all processes are here.

    With `async_op` it returns a `Work`, whose `wait()` returns once all are here.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.barrier()
    >>> dist.destroy_process_group()
    """
    group = _member(group, "barrier")
    if group is None:
        return None
    work = group.barrier()
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Wait until all processes are here; fails with the rank of one that is not here in time.

    >>> from datetime import timedelta
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.monitored_barrier(timeout=timedelta(seconds=10))
    >>> dist.destroy_process_group()
    """
    if timeout is not None and timeout.total_seconds() <= 0:
        raise ValueError(f"monitored_barrier: the timeout must be positive, got {timeout}")
    group = _member(group, "monitored_barrier")
    if group is not None:
        group.monitored_barrier(timeout, wait_all_ranks)


# --- From one process to another -----------------------------------------------------------------


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
    _check_tensor(tensor, "tensor")
    group = _member(group, "isend")
    return group and group.send([tensor], _partner(group, dst, group_dst, "destination"), tag)


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
    _check_tensor(tensor, "tensor")
    group = _member(group, "irecv")
    if group is None:
        return None
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    return group.recv([tensor], _partner(group, src, group_src, "source"), tag)


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
    return work and _finished(work, False)


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
    return _get_group(group)._ranks[work.source_rank()]


def _partner(group, rank, group_rank, kind):
    """The rank in the group of another process. Raises ValueError if it is this one."""
    peer = _root(group, rank, group_rank)
    if peer == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    return peer


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
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _get_group(group)
        self.group_peer = _root(self.group, peer, group_peer)
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
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    with ExitStack() as stack:  # with NCCL, a send waits for its receipt, unless both are begun together
        for engine in {each.group._engine(each.tensor) for each in p2p_op_list}:
            stack.enter_context(engine.together())
        return [
            each.op(each.tensor, group=each.group, tag=each.tag, group_dst=each.group_peer)
            if each.op is isend
            else each.op(each.tensor, group=each.group, tag=each.tag, group_src=each.group_peer)
            for each in p2p_op_list
        ]


class _CoalescingManager:
    """What `_coalescing_manager` yields: the collectives that were called in it."""

    def __init__(self):
        self.works = []

    def append(self, work):
        """Add a collective."""
        if work:
            self.works.append(work)

    def wait(self):
        """Wait for all."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Within this context collectives are called, and begun together at its end, with NCCL as one group of calls.

    At the end it waits for all, or, with `async_ops`, leaves that to the object that it yields.
    """
    group, world = _get_group(group), current()
    manager = _CoalescingManager()
    before, world.coalescing = world.coalescing, manager
    try:
        with ExitStack() as stack:
            for engine in set(group._engines.values()):
                stack.enter_context(engine.together())
            yield manager
    finally:
        world.coalescing = before
    if not async_ops:
        manager.wait()


def _deprecated(name):
    warn(f"`torch.distributed.{name}` will be deprecated. Call the collective once for each tensor.", FutureWarning)
