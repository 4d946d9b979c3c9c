"""How a tensor is spread along a dimension of a mesh."""

from dataclasses import dataclass
from typing import Any

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base of placements.

    >>> from cygrad.distributed.tensor import Partial, Placement, Replicate, Shard
    >>> isinstance(Shard(0), Placement)
    True
    >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate(), Partial().is_partial("sum")
    (True, False, True, True)
    """

    def is_shard(self, dim=None):
        """Whether each process has a part, along `dim` if that is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        """Whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether each process has a summand of the tensor."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along dimension `dim`.

    >>> from cygrad.distributed.tensor import Shard
    >>> Shard(0), Shard(1).dim, Shard(0) == Shard(0)
    (Shard(dim=0), 1, True)
    """

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each process has a part along dimension `dim` of what another placement has spread before."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor.

    >>> from cygrad.distributed.tensor import Replicate
    >>> Replicate().is_replicate()
    True
    """


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a tensor; reduced over all of them by `reduce_op`, they are the whole.

    >>> from cygrad.distributed.tensor import Partial
    >>> Partial("avg").reduce_op
    'avg'
    """

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"


@dataclass(frozen=True)
class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and the shape of the whole (None: that of the local part).

    >>> import cygrad
    >>> from cygrad.distributed.tensor import Shard, init_device_mesh
    >>> from cygrad.distributed.tensor.placement_types import DTensorSpec
    >>> spec = DTensorSpec(init_device_mesh("cpu", (1,)), (Shard(1),))
    >>> print(spec.sharded_dim())  # one process has it all
    None
    >>> cygrad.distributed.destroy_process_group()
    """

    mesh: Any
    placements: tuple[Placement, ...]
    shape: tuple[int, ...] | None = None

    def sharded_dim(self):
        """(dimension of the mesh, dimension of the tensor) along which parts are, or None if each process has all."""
        for mesh_dim, placement in enumerate(self.placements):
            if isinstance(placement, Shard) and self.mesh.size(mesh_dim) > 1:
                return mesh_dim, placement.dim
        return None
