"""Sums of sparse tensors over all processes.

Each process has elements at other places, so they cannot be added on their way: all are gathered, and each process adds
them up.
"""

from typing import Any

import cygrad
from cygrad.distributed._c10d.objects import all_gather_object
from cygrad.distributed._c10d.reduce_ops import RedOpType, check_reduction, kind_of
from cygrad.distributed._c10d.work import Work

__all__ = ["all_reduce", "elements", "total"]


def all_reduce(tensor, op, group):
    """Add up a sparse tensor over all processes, in place; returns a finished `Work`. Other reductions are errors."""
    check_reduction(op, tensor, "all_reduce")
    if kind_of(op) is not RedOpType.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation (allreduce of sparse tensors only works with "
            f"ReduceOp.SUM)\n  got {op}; to fix it: add up, and divide the result"
        )
    if tensor.layout is not cygrad.sparse_coo:
        raise RuntimeError(
            f"all_reduce: a sparse tensor must have the layout torch.sparse_coo\n  got {tensor.layout}; to fix it: "
            "pass `tensor.to_sparse_coo()`"
        )
    found: list[Any] = [None] * group.size()
    all_gather_object(found, (tuple(tensor.shape), elements(tensor)), group)
    for rank, (shape, _) in enumerate(found):
        if shape != tuple(tensor.shape):
            raise RuntimeError(
                "all_reduce: all sparse tensors must have the same size\n"
                f"  rank {group._ranks[rank]} has {shape}, and this process {tuple(tensor.shape)}"
            )
    with cygrad.no_grad():
        tensor.copy_(total([part for _, part in found], tensor))
    return Work([tensor])


def elements(tensor):
    """The indices and values of a sparse tensor, each index once, on the CPU."""
    tensor = tensor.detach().coalesce()
    return tensor.indices().cpu(), tensor.values().cpu()


def total(parts, like, scale=None):
    """The coalesced sum of what `elements` has returned in several processes, with the shape and device of `like`."""
    indices = cygrad.cat([indices for indices, _ in parts], 1)
    values = cygrad.cat([values for _, values in parts])
    values = values if scale is None else values * scale
    return cygrad.sparse_coo_tensor(indices, values, like.shape, device=like.device).coalesce()
