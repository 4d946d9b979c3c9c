"""The options of collectives by their low-level names, such as `ProcessGroup.allreduce`."""

from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from inspect import signature
from typing import Any

from cygrad import Tensor
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed._c10d.work import finished

__all__ = [
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
    "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip


@dataclass
class Options:
    """What all have: how long to wait (negative: as long as the group does), and whether the caller does.

    `asyncOp` has no effect: what these methods return is waited for by whoever calls them.
    """

    timeout: timedelta = field(default=timedelta(milliseconds=-1), kw_only=True)
    asyncOp: bool = field(default=True, kw_only=True)


@dataclass
class AllreduceOptions(Options):
    """The options of `ProcessGroup.allreduce`.

    >>> import cygrad.distributed as dist
    >>> options = dist.AllreduceOptions()
    >>> options.reduceOp
    <RedOpType.SUM: 0>
    """

    reduceOp: Any = ReduceOp.SUM
    sparseIndices: Any = None


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """The options of `ProcessGroup.allreduce_coalesced`.

    >>> import cygrad.distributed as dist
    >>> dist.AllreduceCoalescedOptions().reduceOp
    <RedOpType.SUM: 0>
    """


@dataclass
class ReduceOptions(Options):
    """The options of `ProcessGroup.reduce`: how, and to which rank of the group.

    >>> import cygrad.distributed as dist
    >>> dist.ReduceOptions().rootRank
    0
    """

    reduceOp: Any = ReduceOp.SUM
    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class BroadcastOptions(Options):
    """The options of `ProcessGroup.broadcast`: from which rank of the group.

    >>> import cygrad, cygrad.distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> options = dist.BroadcastOptions()
    >>> options.rootRank = 0
    >>> dist.group.WORLD.broadcast([cygrad.ones(2)], options).wait()
    True
    >>> dist.destroy_process_group()
    """

    rootRank: int = 0
    rootTensor: int = 0


@dataclass
class AllgatherOptions(Options):
    """The options of `ProcessGroup.allgather`.

    >>> from cygrad.distributed.distributed_c10d import AllgatherOptions
    >>> AllgatherOptions().asyncOp
    True
    """


@dataclass
class GatherOptions(Options):
    """The options of `ProcessGroup.gather`: to which rank of the group.

    >>> import cygrad.distributed as dist
    >>> dist.GatherOptions().rootRank
    0
    """

    rootRank: int = 0


@dataclass
class ScatterOptions(Options):
    """The options of `ProcessGroup.scatter`: from which rank of the group.

    >>> import cygrad.distributed as dist
    >>> dist.ScatterOptions().rootRank
    0
    """

    rootRank: int = 0


@dataclass
class ReduceScatterOptions(Options):
    """The options of `ProcessGroup.reduce_scatter`.

    >>> import cygrad.distributed as dist
    >>> dist.ReduceScatterOptions().reduceOp
    <RedOpType.SUM: 0>
    """

    reduceOp: Any = ReduceOp.SUM


@dataclass
class AllToAllOptions(Options):
    """The options of `ProcessGroup.alltoall`.

    >>> import cygrad.distributed as dist
    >>> dist.AllToAllOptions().asyncOp
    True
    """


@dataclass
class BarrierOptions(Options):
    """The options of `ProcessGroup.barrier`. Devices have no effect: no GPU takes part.

    >>> import cygrad.distributed as dist
    >>> dist.BarrierOptions().device_ids
    []
    """

    device_ids: list[int] = field(default_factory=list)
    device: Any = None


_FIELDS = {"op": "reduceOp", "root": "rootRank"}  # of the options, for parameters of collectives


def takes_options(method):
    """Let a collective take options as its last argument, or as `opts`, and a `timeout`; meta tensors do not travel."""
    fields = {name: field for name, field in _FIELDS.items() if name in signature(method).parameters}

    @wraps(method)
    def call(self, *args, opts=None, timeout=None, **kwargs):
        if args and isinstance(args[-1], Options):
            args, opts = args[:-1], args[-1]
        if opts is not None:
            kwargs |= {name: getattr(opts, field) for name, field in fields.items()}
            timeout = opts.timeout
        for value in args:
            if _is_meta(value):
                return finished()
        if kwargs and any(map(_is_meta, kwargs.values())):
            return finished()
        work = method(self, *args, **kwargs)
        if timeout is not None and timeout >= timedelta(0):
            work._limit(timeout)
        return work

    return call


def _is_meta(value):
    """Whether the first tensor is one without memory."""
    while type(value) in (list, tuple) and value:
        value = value[0]
    return isinstance(value, Tensor) and value.is_meta
