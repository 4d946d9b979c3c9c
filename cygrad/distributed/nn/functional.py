"""Collectives through which gradients flow back to the process whose tensor it was, derivatives of gradients too.

Each process calls them in the same order, and runs backward through them in the same order: a backward pass is a
collective too. Ranks are those among all processes.
"""

import cygrad
from cygrad.autograd import Function
from cygrad.distributed._c10d import collectives
from cygrad.distributed._c10d.arguments import check_tensor
from cygrad.distributed._c10d.membership import _get_group, get_group_rank
from cygrad.distributed._c10d.reduce_ops import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def broadcast(tensor, src, group=None):
    """Send the tensor of process `src` to all; returns what has arrived. Its gradient is the sum over all.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = cygrad.distributed.nn.broadcast(x, src=0)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _Broadcast.apply(src, _get_group(group), tensor)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """Reduce over all processes; returns the result. Gradients are reduced in the same way.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.nn.functional import all_reduce
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (3 * all_reduce(x)).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(op, _get_group(group), tensor)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """Reduce over all processes; process `dst` returns the result, and its gradient goes to all.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.distributed.nn.reduce(x, dst=0).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _Reduce.apply(dst, op, _get_group(group), tensor)


def gather(tensor, dst=0, group=None):
    """Return a tuple of the tensors of all processes, in process `dst`; of zeros in the others.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (y,) = cygrad.distributed.nn.gather(x, dst=0)
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _Gather.apply(dst, _get_group(group), tensor)


def all_gather(tensor, group=None):
    """Return a tuple of the tensors of all processes. A gradient is the sum of those that all have for it.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.cat(cygrad.distributed.nn.all_gather(x)).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    return _AllGather.apply(_get_group(group), tensor)


def scatter(tensors, src=0, group=None):
    """Return this process's tensor of the list of process `src`; the others give a list of the same shapes.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> parts = [cygrad.ones(2, requires_grad=True) for _ in range(dist.get_world_size())]
    >>> cygrad.distributed.nn.scatter(parts, src=0).sum().backward()
    >>> parts[0].grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    group = _get_group(group)
    group._check_length("scatter", "input", tensors)
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """Reduce lists over all processes; returns the result for this process, with the shape of `output`.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> parts = [cygrad.ones(2, requires_grad=True) for _ in range(dist.get_world_size())]
    >>> cygrad.distributed.nn.reduce_scatter(cygrad.empty(2), parts).sum().backward()
    >>> parts[0].grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _ReduceScatter.apply(op, _get_group(group), output, *input_list)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Send the i-th tensor of each process to process i; returns a tuple of what has arrived.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> parts = [cygrad.ones(2, requires_grad=True) for _ in range(dist.get_world_size())]
    >>> (found,) = cygrad.distributed.nn.all_to_all([cygrad.empty(2)], parts)
    >>> found.sum().backward()
    >>> parts[0].grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _AllToAll.apply(_get_group(group), list(output_tensor_list), *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Send the i-th part of the tensor of each process to process i; returns what has arrived, shaped as `output`.

    >>> import cygrad.distributed.nn
    >>> import cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.distributed.nn.all_to_all_single(cygrad.empty(2), x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return _AllToAllSingle.apply(_get_group(group), output, output_split_sizes, input_split_sizes, input)


# --- With their derivatives ----------------------------------------------------------------------


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        total = reduce(gradient, ctx.src, ReduceOp.SUM, ctx.group)
        is_source = get_group_rank(ctx.group, ctx.src) == ctx.group.rank()
        return None, None, total if is_source else total * 0


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone(memory_format=cygrad.contiguous_format)
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, all_reduce(gradient, ctx.op, ctx.group)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        result = tensor.detach().clone()
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, None, broadcast(gradient, ctx.dst, ctx.group)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        results = [cygrad.zeros_like(tensor) for _ in range(group.size())]
        is_destination = get_group_rank(group, dst) == group.rank()
        collectives.gather(tensor.detach(), results if is_destination else None, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, scatter(gradients, ctx.dst, ctx.group)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        result = cygrad.zeros_like(tensors[0])
        is_source = get_group_rank(group, src) == group.rank()
        collectives.scatter(result, [each.detach() for each in tensors] if is_source else None, src, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return None, None, *gather(gradient, ctx.src, ctx.group)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        results = [cygrad.empty_like(tensor) for _ in range(group.size())]
        collectives.all_gather(results, tensor.detach(), group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        return None, reduce_scatter(gradients[ctx.group.rank()], gradients, ReduceOp.SUM, ctx.group)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *tensors):
        ctx.op, ctx.group = op, group
        result = cygrad.empty_like(output)
        collectives.reduce_scatter(result, [each.detach() for each in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        shares = all_gather(gradient, ctx.group)
        if ctx.op == ReduceOp.AVG:
            shares = [share / ctx.group.size() for share in shares]
        return None, None, None, *shares


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *tensors):
        ctx.group, ctx.like = group, [cygrad.empty_like(each) for each in tensors]
        results = [cygrad.empty_like(each) for each in outputs]
        collectives.all_to_all(results, [each.detach() for each in tensors], group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *all_to_all(ctx.like, gradients, ctx.group)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, output_sizes, input_sizes, input):
        ctx.group, ctx.sizes, ctx.like = group, (output_sizes, input_sizes), cygrad.empty_like(input)
        result = cygrad.empty_like(output)
        collectives.all_to_all_single(result, input.detach(), output_sizes, input_sizes, group)
        return result

    @staticmethod
    def backward(ctx, gradient):
        output_sizes, input_sizes = ctx.sizes
        return None, None, None, None, all_to_all_single(ctx.like, gradient, input_sizes, output_sizes, ctx.group)
