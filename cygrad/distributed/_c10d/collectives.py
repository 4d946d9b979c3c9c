"""The collectives: `all_reduce`, `broadcast`, `all_gather` and the rest.

Each takes `group=` (all processes by default) and most `async_op=`: then they return a `Work` to wait for, else None. A
process that is not in the group gets a warning and does nothing.
"""

from datetime import timedelta

from cygrad import Tensor
from cygrad.distributed._c10d.arguments import check_dtypes, check_list, check_tensor, finished, member, root_of
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.utils.warning import warn

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier",
    "reduce", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


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
    check_tensor(tensor, "tensor")
    group = member(group, "all_reduce")
    return group and finished(group.allreduce([tensor], op), async_op)


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
    check_list(tensors, "tensor")
    check_dtypes(*tensors)
    group = member(group, "all_reduce_coalesced")
    return group and _future(group.allreduce_coalesced(tensors, op), async_op)


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
    check_tensor(tensor, "tensor")
    group = member(group, "reduce")
    return group and finished(group.reduce([tensor], root_of(group, dst, group_dst), op), async_op)


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
    check_tensor(tensor, "tensor")
    group = member(group, "broadcast")
    return group and finished(group.broadcast([tensor], root_of(group, src, group_src)), async_op)


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
    check_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_dtypes(*tensor_list, tensor)
    group = member(group, "all_gather")
    return group and finished(group.allgather(tensor_list, tensor), async_op)


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
    group = member(group, "all_gather_coalesced")
    if group is None:
        return None
    check_list(input_tensor_list, "input_tensor_list")
    check_dtypes(*input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        check_list(outputs, "output_tensor_lists")
        check_dtypes(*outputs)
    return _future(group.allgather_coalesced(output_tensor_lists, input_tensor_list), async_op)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """Gather the `input_tensor` of each process into one tensor, in which they follow each other.

    `output_tensor` has the dtype of the input, and as many elements for each process, or else RuntimeError is raised.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> found = cygrad.empty(2 * dist.get_world_size())
    >>> dist.all_gather_single(found, x)
    >>> found
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    group = member(group, "all_gather_into_tensor")
    if group is None:
        return None
    return finished(group.all_gather_single(output_tensor, input_tensor), async_op)


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
    check_tensor(tensor, "tensor")
    check_list(gather_list or [], "gather_list")
    check_dtypes(tensor, *(gather_list or ()))
    group = member(group, "gather")
    if group is None:
        return None
    root = 0 if dst is None and group_dst is None else root_of(group, dst, group_dst)
    _check_list_is_at_root("gather_list", "destination", gather_list, group.rank() == root)
    return finished(group.gather(gather_list, tensor, root), async_op)


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
    check_tensor(tensor, "tensor")
    check_list(scatter_list or [], "scatter_list")
    check_dtypes(tensor, *(scatter_list or ()))
    group = member(group, "scatter")
    if group is None:
        return None
    root = 0 if src is None and group_src is None else root_of(group, src, group_src)
    _check_list_is_at_root("scatter_list", "source", scatter_list, group.rank() == root)
    return finished(group.scatter(tensor, scatter_list, root), async_op)


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
    check_tensor(output, "output")
    check_list(input_list, "input_list")
    check_dtypes(output, *input_list)
    group = member(group, "reduce_scatter")
    return group and finished(group.reduce_scatter(output, input_list, op), async_op)


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
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_dtypes(output, input)
    group = member(group, "reduce_scatter_tensor")
    if group is None:
        return None
    return finished(group.reduce_scatter_single(output, input, op), async_op)


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
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    check_dtypes(*output_tensor_list, *input_tensor_list)
    group = member(group, "all_to_all")
    return group and finished(group.alltoall(output_tensor_list, input_tensor_list), async_op)


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
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_dtypes(output, input)
    group = member(group, "all_to_all_single")
    if group is None:
        return None
    return finished(group.all_to_all_single(output, input, output_split_sizes, input_split_sizes), async_op)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all processes are here.

    With `async_op` it returns a `Work`, whose `wait()` returns once all are here.

    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.barrier()
    >>> dist.destroy_process_group()
    """
    group = member(group, "barrier")
    if group is None:
        return None
    work = group.barrier(timeout=timeout)
    if async_op:
        return work
    work.wait()
    return None


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Wait until all processes are here; fails with the rank of one that is not here in time.

    >>> from datetime import timedelta
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.monitored_barrier(timeout=timedelta(seconds=10))
    >>> dist.destroy_process_group()
    """
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if timeout is not None and timeout.total_seconds() <= 0:
        raise ValueError(f"monitored_barrier: the timeout must be positive, got {timeout}")
    group = member(group, "monitored_barrier")
    if group is not None:
        group.monitored_barrier(timeout, wait_all_ranks)


def _future(work, async_op):
    """What collectives of several tensors return: the future of their work, if they were asked not to wait."""
    finished(work, async_op)
    return work.get_future() if async_op else None


def _deprecated(name):
    warn(f"`torch.distributed.{name}` will be deprecated. Call the collective once for each tensor.", FutureWarning)
