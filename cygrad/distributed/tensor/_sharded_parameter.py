"""`ShardedParameter`: the part of a parameter that a process has."""

import cygrad
from cygrad.distributed._c10d.reduce_ops import ReduceOp
from cygrad.distributed.tensor._dtensor import DTensor, whole
from cygrad.distributed.tensor._shards import local_part
from cygrad.distributed.tensor.placement_types import DTensorSpec, Shard
from cygrad.nn.parameter import Parameter

__all__ = [
    "ParallelParameter",
    "ShardedParameter",
    "as_dtensor",
    "joint_norm",
    "local_values",
    "spread_values",
    "whole_values",
]


class ShardedParameter(Parameter):
    """The rows, or columns, of a parameter that this process has: its memory, `shape` and `grad` are those of the part.

    Optimizers update it as any parameter. It has what a `DTensor` has: `device_mesh`, `placements`, `to_local()`,
    `full_tensor()`. In `state_dict()` it is one, and so are the tensors of its shape that an optimizer keeps for it.
    `_spec.shape` is the shape of the whole.
    """

    _spec: DTensorSpec

    @property
    def device_mesh(self):
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self):
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    def to_local(self, *, grad_placements=None):
        """The part of this process, as an ordinary tensor."""
        return self.as_subclass(cygrad.Tensor)

    def full_tensor(self, *, grad_placements=None):
        """The whole parameter, as an ordinary tensor without history. All processes call this."""
        return whole(self.detach(), self._spec)

    @property
    def group(self):
        """The processes that have the parts."""
        return self._spec.mesh.get_group(self._mesh_dim())

    def _state_out(self, values):
        return spread_values(self, values)

    def _state_in(self, values):
        return local_values(self, values)

    def _mesh_dim(self):
        return next(dim for dim, placement in enumerate(self._spec.placements) if isinstance(placement, Shard))


class ParallelParameter(ShardedParameter):
    """One of a module whose work is divided, too: nobody gathers it."""


def as_dtensor(local, spec):
    """A part as a DTensor, for state dictionaries. It shares memory."""
    return DTensor._made(local.detach(), spec)


def joint_norm(parameters, norm_type):
    """The norm of all gradients, of which processes have parts of some, and None if there are no parts here."""
    sharded = [each for each in parameters if isinstance(each, ShardedParameter)]
    if not sharded:
        return None
    groups: dict = {}
    for each in parameters:
        if each.grad is not None:
            groups.setdefault(each.group if isinstance(each, ShardedParameter) else None, []).append(each.grad)
    for each in sharded:  # of a group that has no gradient here all processes take part all the same
        groups.setdefault(each.group, [])
    parts = []
    for group, gradients in groups.items():
        norms = [cygrad.linalg.vector_norm(each, norm_type) for each in gradients if each.numel()]
        none = cygrad.zeros((), device=sharded[0].device)
        norm = cygrad.linalg.vector_norm(cygrad.stack(norms), norm_type) if norms else none
        if group is not None:
            if norm_type == float("inf"):
                group.allreduce([norm], ReduceOp.MAX).wait()
            else:
                norm = norm**norm_type
                group.allreduce([norm], ReduceOp.SUM).wait()
                norm = norm ** (1 / norm_type)
        parts.append(norm)
    return cygrad.linalg.vector_norm(cygrad.stack(parts), norm_type)


# --- The state that an optimizer has of a parameter ----------------------------------------------


def _is_part(parameter, value):
    """Whether a value of the state has an element for each of the parameter, of which this process has a part."""
    return (
        isinstance(parameter, ShardedParameter)
        and isinstance(value, cygrad.Tensor)
        and not isinstance(value, DTensor)
        and value.dim() > 0
        and value.shape == parameter.shape
    )


def spread_values(parameter, values):
    """The values by name, with DTensors for parts."""
    return {k: as_dtensor(v, parameter._spec) if _is_part(parameter, v) else v for k, v in values.items()}


def whole_values(parameter, values):
    """The values by name, with whole tensors for parts. All processes call this."""
    return {name: _whole_value(parameter, value) for name, value in values.items()}


def _whole_value(parameter, value):
    if isinstance(value, DTensor):
        return value.full_tensor()
    return whole(value, parameter._spec) if _is_part(parameter, value) else value


def local_values(parameter, values):
    """The values by name, with parts for DTensors and whole tensors."""
    return {name: _local_value(parameter, value) for name, value in values.items()}


def _local_value(parameter, value):
    if isinstance(value, DTensor):
        return value.to_local()
    if (
        isinstance(parameter, ShardedParameter)
        and isinstance(value, cygrad.Tensor)
        and value.dim() > 0
        and value.shape == parameter._spec.shape
    ):
        _, dim = parameter._spec.sharded_dim() or (0, 0)
        return local_part(value, dim, parameter.group.size(), parameter.group.rank()).clone()
    return value
