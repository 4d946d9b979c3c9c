"""Names of `torch.distributed.tensor.experimental`, in one process."""

import sys
from contextlib import contextmanager

from cygrad.distributed._c10d.module_names import also_named

__all__ = ["context_parallel", "implicit_replication", "local_map", "set_rotate_method"]


@contextmanager
def implicit_replication():
    """Within this context, ordinary tensors count as whole in each process when they meet DTensors.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import DTensor, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.experimental import implicit_replication
    >>> x = DTensor.from_local(cygrad.ones(2), init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> with implicit_replication():
    ...     (x + cygrad.ones(2)).to_local()
    tensor([2., 2.])
    >>> cygrad.distributed.destroy_process_group()
    """
    yield


@contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """Within this context, each process has some places of the sequence; one process has all.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import init_device_mesh
    >>> from cygrad.distributed.tensor.experimental import context_parallel
    >>> x = cygrad.rand(1, 2, 4, 8)
    >>> with context_parallel(init_device_mesh("cpu", (1,)), buffers=[x], buffer_seq_dims=[2]):
    ...     cygrad.nn.functional.scaled_dot_product_attention(x, x, x).shape
    torch.Size([1, 2, 4, 8])
    >>> cygrad.distributed.destroy_process_group()
    """
    yield


def set_rotate_method(rotate_method):
    """Set how processes exchange keys and values in `context_parallel`: "allgather" or "alltoall".

    Raises NotImplementedError for another word, as in PyTorch.

    >>> from cygrad.distributed.tensor.experimental import set_rotate_method
    >>> set_rotate_method("alltoall")
    """
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")


def local_map(func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, **_):
    """Return a function that calls `func` with the parts of DTensors, and makes its results DTensors.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import DTensor, Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.experimental import local_map
    >>> x = DTensor.from_local(cygrad.ones(2), init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> double = local_map(lambda part: part * 2, out_placements=[Shard(0)])
    >>> double(x).to_local()
    tensor([2., 2.])
    >>> cygrad.distributed.destroy_process_group()
    """
    from cygrad.distributed.tensor import DTensor  # names this module

    def call(*args, **kwargs):
        mesh = next((each.device_mesh for each in args if isinstance(each, DTensor)), device_mesh)
        result = func(*(each.to_local() if isinstance(each, DTensor) else each for each in args), **kwargs)
        if not isinstance(result, tuple):
            placements = out_placements[0] if isinstance(out_placements, tuple) else out_placements
            return DTensor.from_local(result, mesh, placements)
        return tuple(DTensor.from_local(each, mesh, place) for each, place in zip(result, out_placements))

    return call


also_named(__name__, _attention=sys.modules[__name__])
