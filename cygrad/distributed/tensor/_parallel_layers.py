"""Layers of which each process of a mesh has a part of the weights."""

from typing import Any

import cygrad
from cygrad import nn
from cygrad.distributed._c10d.collectives import broadcast
from cygrad.distributed.tensor._conversions import converted, used_by_all
from cygrad.distributed.tensor._sharded_parameter import ParallelParameter, ShardedParameter, as_dtensor
from cygrad.distributed.tensor._shards import bounds, local_part
from cygrad.distributed.tensor.placement_types import DTensorSpec, Partial, Replicate, Shard

__all__ = ["RowwiseEmbedding", "RowwiseLinear", "add_up_gradients", "change_class", "divide"]


def divide(module, mesh, cuts, source):
    """Leave in a module this process's part of its parameters, {name: placement}.

    source: the process of the mesh whose values all take; None: each has its own.
    """
    group = mesh.get_group()
    for name, placement in cuts.items():
        parameter = module._parameters.get(name)
        if parameter is None:
            continue
        if isinstance(parameter, ShardedParameter):
            raise ValueError(
                f"{type(module).__name__}.{name} is divided already\n"
                "  to fix it: let one style of the plan match the module"
            )
        _same_everywhere(parameter, group, source)
        if isinstance(placement, Shard):
            local = local_part(parameter.detach(), placement.dim, group.size(), group.rank()).clone()
            part = ParallelParameter(local, parameter.requires_grad)
            part._spec = DTensorSpec(mesh, (placement,), tuple(parameter.shape))
            module._parameters[name] = part
    module._register_state_dict_hook(_parts_in_state)
    module.register_load_state_dict_pre_hook(_parts_of_state)


def _same_everywhere(parameter, group, source):
    if source is not None:
        broadcast(parameter.detach(), group=group, group_src=source)


def _parts_in_state(module, state, prefix, *_):
    """The hook of `state_dict`: parts are DTensors there."""
    for name, parameter in module._parameters.items():
        if isinstance(parameter, ShardedParameter) and prefix + name in state:
            state[prefix + name] = as_dtensor(state[prefix + name], parameter._spec)


def _parts_of_state(module, state, prefix, *_):
    """The hook of `load_state_dict`: DTensors and whole tensors become parts."""
    for name, parameter in module._parameters.items():
        if isinstance(parameter, ShardedParameter) and prefix + name in state:
            state[prefix + name] = parameter._state_in({name: state[prefix + name]})[name]


def add_up_gradients(module, mesh, source):
    """Add the gradients of a module's parameters up over the processes, each of which uses it for other places."""
    group = mesh.get_group()
    for parameter in module.parameters():
        _same_everywhere(parameter, group, source)
        if parameter.requires_grad:
            parameter.register_hook(lambda gradient: converted(gradient, Partial(), Replicate(), group))


def change_class(module, kind, replacement, output_layout):
    """Let a module belong to a class of this file, which computes what its parts of the weights are for."""
    if replacement is None:
        return
    if type(module) is not kind:
        raise NotImplementedError(
            f"RowwiseParallel of {type(module).__name__}, which may compute something else than {kind.__name__}\n"
            f"  to fix it: use nn.{kind.__name__} itself"
        )
    module.__class__ = replacement
    module._output_layout = output_layout


class RowwiseLinear(nn.Linear):
    """A linear layer of which this process has the weights for some inputs, and the whole bias."""

    weight: Any
    _output_layout: Any

    def forward(self, input):
        """Compute from this process's part of the inputs, and add up."""
        group = self.weight.group
        output = converted(nn.functional.linear(input, self.weight), Partial(), self._output_layout, group)
        if self.bias is None:
            return output
        is_cut = isinstance(self._output_layout, Shard)
        if is_cut and self._output_layout.dim % output.dim() == output.dim() - 1:
            first, last = bounds(self.bias.shape[0], group.size(), group.rank())
            return output + used_by_all(self.bias, group)[first:last]
        return output + (used_by_all(self.bias, group) if is_cut else self.bias)


class RowwiseEmbedding(nn.Embedding):
    """An embedding of which this process has some rows."""

    weight: Any
    _output_layout: Any

    def forward(self, input):
        """Look up what is among this process's rows, and add up."""
        if self.max_norm is not None:
            raise NotImplementedError(
                "RowwiseParallel of an embedding with max_norm\n  to fix it: leave it out, or the embedding whole"
            )
        weight = self.weight
        first, last = bounds(weight._spec.shape[0], weight.group.size(), weight.group.rank())
        is_here = (input >= first) & (input < last)
        skipped = self.padding_idx
        skipped = skipped - first if skipped is not None and first <= skipped < last else None
        rows = nn.functional.embedding(cygrad.where(is_here, input - first, 0), weight, skipped)
        return converted(rows * is_here.unsqueeze(-1), Partial(), self._output_layout, weight.group)
