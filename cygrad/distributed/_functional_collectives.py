"""Collectives that return their results, as compiled programs call them. Here results are there at once."""

import cygrad
from cygrad import Tensor
from cygrad.distributed._c10d.membership import _get_default_group, _resolve_process_group, get_process_group_ranks
from cygrad.distributed._c10d.process_group import ProcessGroup
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed._c10d.world import current
from cygrad.distributed.device_mesh import DeviceMesh
from cygrad.distributed.nn import functional

__all__ = [
    "AsyncCollectiveTensor", "all_gather_inplace", "all_gather_into_tensor_coalesced", "all_gather_single",
    "all_gather_single_autograd", "all_gather_single_coalesced", "all_gather_tensor", "all_gather_tensor_autograd",
    "all_gather_tensor_inplace", "all_reduce", "all_reduce_coalesced", "all_reduce_inplace", "all_to_all_inplace",
    "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_single",
    "reduce_scatter_single_autograd", "reduce_scatter_single_coalesced", "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_inplace", "wait_tensor",
]  # fmt: skip

REDUCE_OP_TO_STR = {kind: name.lower() for name, kind in ReduceOp.RedOpType.__members__.items() if name != "PREMUL_SUM"}


class AsyncCollectiveTensor(Tensor):
    """The class of PyTorch's results that are still under way. Results are there at once here, so none is made."""


def _group_of(group):
    """A process group from what these functions take: a group, its name, a mesh, (mesh, dimension) or its ranks."""
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, tuple):
        if len(group) != 2 or not isinstance(group[0], DeviceMesh) or not isinstance(group[1], int):
            raise ValueError(
                f"Invalid tuple for group must be (DeviceMesh, int). Instead got {tuple(type(each) for each in group)}"
            )
        return group[0].get_group(group[1])
    if isinstance(group, list):
        return _group_of_ranks(group)
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _group_of_ranks(ranks):
    for each in current().groups:
        if sorted(get_process_group_ranks(each)) == sorted(ranks):
            return each
    raise ValueError(f"there is no group of the ranks {ranks}\n  to fix it: make it by `new_group`")


def _reduction(name):
    kinds = ReduceOp.RedOpType.__members__
    if name.upper() not in kinds:
        raise ValueError(f"Unsupported reduce op {name!r}: there are {', '.join(kinds).lower()}")
    return kinds[name.upper()]


def wait_tensor(tensor):
    """Wait until a result is there; returns it."""
    return tensor


def broadcast(self, src, group, tag=""):
    """The tensor of process `src`."""
    return functional.broadcast(self, src, _group_of(group))


def all_reduce(self, reduceOp, group, tag=""):
    """The tensor reduced over all processes by "sum", "avg" and the like."""
    return functional.all_reduce(self, _reduction(reduceOp), _group_of(group))


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """A list of tensors reduced over all processes."""
    return [all_reduce(each, reduceOp, group) for each in self]


def all_gather_single(self, gather_dim, group, tag=""):
    """The tensors of all processes, joined along `gather_dim`."""
    return cygrad.cat(functional.all_gather(self, _group_of(group)), gather_dim)


def reduce_scatter_single(self, reduceOp, scatter_dim, group, tag=""):
    """This process's part along `scatter_dim` of the tensor reduced over all processes."""
    group = _group_of(group)
    if self.shape[scatter_dim] % group.size():
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size {group.size()}"
        )
    parts = self.chunk(group.size(), scatter_dim)
    return functional.reduce_scatter(parts[0], parts, _reduction(reduceOp), group)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """The parts that all processes have for this one."""
    length = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    output = self.new_empty((length, *self.shape[1:]))
    return functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, _group_of(group))


def permute_tensor(self, src_dst, group, tag=""):
    """The tensor of the process that sends to this one: process i sends to process `src_dst[i]`."""
    group = _group_of(group)
    me, size = group.rank(), group.size()
    outgoing = [self.numel() if rank == src_dst[me] else 0 for rank in range(size)]
    incoming = [self.numel() if src_dst[rank] == me else 0 for rank in range(size)]
    return all_to_all_single(self.reshape(-1), incoming, outgoing, group).reshape(self.shape)


def all_gather_single_coalesced(self, group, tag=""):
    """The tensors of all processes, joined along the first dimension, for a list."""
    return [all_gather_single(each, 0, group) for each in self]


def reduce_scatter_single_coalesced(inputs, reduceOp, scatter_dim, group, tag=""):
    """This process's parts of tensors reduced over all processes."""
    return [reduce_scatter_single(each, reduceOp, dim, group) for each, dim in zip(inputs, scatter_dim, strict=True)]


# Older names, and those for derivatives, which all of these have here.
all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_gather_into_tensor_coalesced, reduce_scatter_tensor_coalesced = (
    all_gather_single_coalesced,
    reduce_scatter_single_coalesced,
)
all_to_all_single_autograd = all_to_all_single


def _group_for(group, async_op):
    """The group of a call that writes its result, by default that of all; such calls do not return early."""
    if async_op:
        raise AssertionError("Can't remap async version of inplace op to functional collective")
    return _get_default_group() if group is None else group


def all_reduce_inplace(tensor, op="sum", group=None, async_op=False, tag=""):
    """`all_reduce` into the tensor itself."""
    return tensor.copy_(all_reduce(tensor, op, _group_for(group, async_op)))


def all_gather_tensor_inplace(output_tensor, input_tensor, group=None, async_op=False, tag="", gather_dim=0):
    """`all_gather_single` into a tensor."""
    return output_tensor.copy_(all_gather_single(input_tensor, gather_dim, _group_for(group, async_op)))


def all_gather_inplace(tensor_list, tensor, group=None, async_op=False, tag=""):
    """The tensors of all processes, into a list of tensors."""
    for output, each in zip(tensor_list, functional.all_gather(tensor, _group_of(_group_for(group, async_op)))):
        output.copy_(each)
    return tensor_list


def reduce_scatter_tensor_inplace(output, input, op="sum", group=None, async_op=False, scatter_dim=0, tag=""):
    """`reduce_scatter_single` into a tensor."""
    return output.copy_(reduce_scatter_single(input, op, scatter_dim, _group_for(group, async_op)))


def all_to_all_inplace(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False, tag=""
):
    """`all_to_all_single` into a tensor."""
    group = _group_for(group, async_op)
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, group))
