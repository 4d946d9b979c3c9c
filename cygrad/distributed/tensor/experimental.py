"""Names of `torch.distributed.tensor.experimental`, in one process."""

import sys
from contextlib import contextmanager

from cygrad.distributed._c10d.module_names import also_named

__all__ = ["context_parallel", "implicit_replication", "local_map", "set_rotate_method"]


@contextmanager
def implicit_replication():
    """Within this context, ordinary tensors count as whole in each process when they meet DTensors."""
    yield


@contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None):
    """Within this context, each process has some places of the sequence; one process has all."""
    yield


def set_rotate_method(rotate_method):
    """Set how processes exchange keys and values in `context_parallel`: "allgather" or "alltoall"."""
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")


def local_map(func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, **_):
    """Return a function that calls `func` with the parts of DTensors, and makes its results DTensors."""
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
