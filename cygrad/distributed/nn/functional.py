"""Collectives through which gradients flow back to the process whose tensor it was.

In a group of one process a result is a copy of what this process sends, and its gradient arrives there.
"""

from cygrad.distributed._c10d import collectives
from cygrad.distributed._c10d.groups import _get_group
from cygrad.distributed._c10d.reduce_ops import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _checked(name, group, tensor, *args, **kwargs):
    """Check the arguments by carrying the collective out on what autograd does not see; returns the copy to return."""
    getattr(_get_group(group), name)(*args, **kwargs)
    return tensor.clone()


def broadcast(tensor, src, group=None):
    """Send the tensor of process `src` to all; returns what has arrived."""
    return _checked("broadcast", group, tensor, tensor.detach(), src)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """Reduce over all processes; returns the result.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.nn.functional import all_reduce
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (3 * all_reduce(x)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    return _checked("allreduce", group, tensor, tensor.detach(), op)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """Reduce over all processes; process `dst` returns the result."""
    return _checked("reduce", group, tensor, tensor.detach(), dst, op)


def gather(tensor, dst=0, group=None):
    """Return a tuple of the tensors of all processes, in process `dst`."""
    _get_group(group)._check_root("gather", dst)
    return (tensor.clone(),)


def all_gather(tensor, group=None):
    """Return a tuple of the tensors of all processes."""
    collectives._check_tensor(tensor, "tensor")
    _get_group(group)
    return (tensor.clone(),)


def scatter(tensors, src=0, group=None):
    """Return this process's tensor of the list of process `src`."""
    group = _get_group(group)
    group._check_root("scatter", src)
    group._check_length("scatter", "input", tensors)
    return tensors[group.rank()].clone()


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """Reduce lists over all processes; returns the result for this process."""
    detached = [each.detach() for each in input_list]
    return _checked("reduce_scatter", group, input_list[0], output.detach(), detached, op)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Send the i-th tensor of each process to process i; returns a tuple of what has arrived."""
    _get_group(group).alltoall([each.detach() for each in output_tensor_list], [x.detach() for x in input_tensor_list])
    return tuple(each.clone() for each in input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Send the i-th part of the tensor of each process to process i; returns what has arrived."""
    collectives.all_to_all_single(output.detach(), input.detach(), output_split_sizes, input_split_sizes, group)
    return input.clone()
