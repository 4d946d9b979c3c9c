"""From one placement to another along a dimension of a mesh, with gradients.

The gradient of a tensor that is whole in each process is whole, too, and the same in all. That of a part is the part
of the gradient. A summand ("partial") has the gradient of the sum.
"""

import cygrad
from cygrad import Tensor
from cygrad.autograd import Function
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed.tensor._shards import gathered, local_part
from cygrad.distributed.tensor.placement_types import Partial, Replicate, Shard

__all__ = ["converted", "used_by_all"]


def converted(local: Tensor, source, target, group, length=None) -> Tensor:
    """The tensor of this process after a change of placement.

    length: that of the whole along the dimension of `source`, if that is a `Shard`; by default that of equal parts.
    """
    source, target = (_with_positive_dim(each, local.dim()) for each in (source, target))
    if source == target or group.size() == 1:
        return local
    if isinstance(target, Partial):
        raise RuntimeError(f"redistribute from {source} to {target} not supported")
    return _Conversion.apply(local, source, target, group, length)


def used_by_all(local: Tensor, group) -> Tensor:
    """A whole tensor of which each process uses, or computes, a part: its gradients are added up over processes."""
    return local if group.size() == 1 else _UsedByAll.apply(local, group)


def _with_positive_dim(placement, dims):
    if isinstance(placement, Shard) and placement.dim < 0:
        return Shard(placement.dim + dims)
    return placement


def _whole(local, source, group, length):
    """The whole tensor from what processes have."""
    if isinstance(source, Partial):
        whole = local.detach().clone(memory_format=cygrad.contiguous_format)
        operation = getattr(ReduceOp, source.reduce_op.upper())
        group.allreduce([whole], operation).wait()
        return whole
    if isinstance(source, Replicate):
        return local.detach()
    shape = list(local.shape)
    shape[source.dim] = shape[source.dim] * group.size() if length is None else length
    return gathered(local, source.dim, shape, group)


def _sum_of_parts(local, dim, group):
    """This process's part of the sum over all processes."""
    rows = local.detach().movedim(dim, 0).contiguous()
    part = rows.new_empty((rows.shape[0] // group.size(), *rows.shape[1:]))
    group.reduce_scatter_single(part, rows, ReduceOp.SUM).wait()
    return part.movedim(0, dim).contiguous()


class _Conversion(Function):
    @staticmethod
    def forward(ctx, local, source, target, group, length):
        ctx.source, ctx.target, ctx.group = source, target, group
        dim = target.dim if isinstance(target, Shard) else None
        if dim is not None and source == Partial() and local.shape[dim] % group.size() == 0:
            ctx.length = local.shape[dim]
            return _sum_of_parts(local, dim, group)
        whole = _whole(local, source, group, length)
        ctx.length = None if dim is None else whole.shape[dim]
        if dim is None:
            return whole.clone() if isinstance(source, Replicate) else whole
        return local_part(whole, dim, group.size(), group.rank()).clone(memory_format=cygrad.contiguous_format)

    @staticmethod
    def backward(ctx, gradient):
        if isinstance(ctx.source, Partial) and ctx.source.reduce_op not in ("sum", "avg"):
            raise RuntimeError(f"there is no gradient for tensors that are reduced by {ctx.source.reduce_op!r}")
        target = Replicate() if isinstance(ctx.source, Partial) else ctx.source
        gradient = converted(gradient, ctx.target, target, ctx.group, ctx.length)
        if ctx.source == Partial("avg"):
            gradient = gradient / ctx.group.size()
        return gradient, None, None, None, None


class _UsedByAll(Function):
    @staticmethod
    def forward(ctx, local, group):
        ctx.group = group
        return local.view_as(local)

    @staticmethod
    def backward(ctx, gradient):
        return converted(gradient, Partial(), Replicate(), ctx.group), None
