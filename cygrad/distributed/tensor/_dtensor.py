"""`DTensor`, a tensor with a mesh and placements. Its memory is the part of this process."""

from dataclasses import replace
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad.distributed._c10d.collectives import broadcast
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.tensor._conversions import converted
from cygrad.distributed.tensor._shards import bounds, gathered, local_part
from cygrad.distributed.tensor.placement_types import DTensorSpec, Replicate, Shard
from cygrad.nn.parameter import Parameter

__all__ = [
    "DTensor", "compute_local_shape_and_global_offset", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip


def _as_spec(mesh, placements):
    mesh = mesh if mesh is not None else init_device_mesh("cpu", (1,))
    placements = tuple(placements) if placements is not None else (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    return DTensorSpec(mesh, placements)


# What DTensors in larger meshes can do.
_KEEPING = {
    "__get__", "__set__", "__repr__", "__str__", "__format__", "__hash__", "as_subclass", "clone", "copy_",
    "cpu", "cuda", "detach", "dim", "element_size", "is_complex", "is_contiguous", "is_floating_point", "numel",
    "numpy", "requires_grad_", "retain_grad", "size", "storage_offset", "stride", "to", "untyped_storage",
    "view_as", "zero_", "data_ptr", "contiguous", "__reduce_ex__", "__deepcopy__", "backward", "empty_like",
    "zeros_like", "__len__",
}  # fmt: skip


class DTensor(Tensor):
    """A tensor spread over the processes of a mesh, made by `distribute_tensor` or `from_local`.

    In a mesh of one process results of ops have the mesh and the placements of their first DTensor; other tensors count
    as whole. In larger meshes a DTensor is for keeping: it can be copied, converted, gathered (`full_tensor`) and saved
    (`distributed.checkpoint`), and everything else raises RuntimeError; compute with `to_local()`. `shape` is that of
    the part of this process.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh
    >>> mesh = init_device_mesh("cpu", (1,))
    >>> x = DTensor.from_local(cygrad.ones(2, 3), mesh, [Shard(0)])
    >>> x.shape, x.placements
    (torch.Size([2, 3]), (Shard(dim=0),))
    >>> x.to_local().shape, x.full_tensor().shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    >>> x.redistribute(placements=[Replicate()]).placements
    (Replicate(),)
    >>> cygrad.distributed.destroy_process_group()
    """

    _spec: DTensorSpec

    @staticmethod
    def _made(tensor, spec):
        made = tensor.as_subclass(DTensor)
        made._spec = spec
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        source = next((each for each in _flat((args, kwargs)) if isinstance(each, DTensor)), None)
        name = getattr(func, "__name__", "")
        if source is not None and "_spec" in source.__dict__ and source._spec.mesh.size() > 1 and name not in _KEEPING:
            raise RuntimeError(
                f"{name}: cygrad computes with whole or local tensors only, and this one is spread over "
                f"{source._spec.mesh}\n  to fix it: use `to_local()`, the part of this process, or `full_tensor()`"
            )
        result = super().__torch_function__(func, types, args, kwargs or {})
        source = next((each for each in _flat((args, kwargs)) if isinstance(each, DTensor)), None)
        if source is not None:
            for each in _flat(result):
                if isinstance(each, DTensor) and "_spec" not in each.__dict__:
                    each._spec = source._spec
        return result

    @staticmethod
    def from_local(local_tensor, device_mesh=None, placements=None, *, run_check=False, shape=None, stride=None):
        """The tensor of which this process has the part `local_tensor`. Gradients flow to it.

        shape: of the whole; by default that of equal parts.
        """
        spec = _as_spec(device_mesh, placements)
        cut = spec.sharded_dim()
        if shape is None and cut is not None:
            mesh_dim, dim = cut
            shape = list(local_tensor.shape)
            shape[dim] *= spec.mesh.size(mesh_dim)
        spec = replace(spec, shape=None if shape is None else tuple(shape))
        return DTensor._made(local_tensor.view_as(local_tensor), spec)

    def to_local(self, *, grad_placements=None):
        """The part of this process, as an ordinary tensor. Gradients flow through."""
        return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements=None):
        """The whole tensor, as an ordinary tensor. All processes call this. Gradients flow through."""
        return self.redistribute(placements=[Replicate()] * self.device_mesh.ndim).to_local()

    def redistribute(
        self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None
    ):
        """The same tensor with other placements. All processes call this. Gradients flow through."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        spec = _as_spec(device_mesh or self.device_mesh, placements)
        if self.device_mesh.size() == 1:
            return DTensor._made(self.to_local().view_as(self), spec)
        if spec.mesh is not self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        shape = self._spec.shape or tuple(self.shape)
        local, now = self.to_local(), list(self.placements)
        wholes = [Replicate() if isinstance(each, Shard) else target for each, target in zip(now, spec.placements)]
        for targets in (wholes, spec.placements):  # first no process has a part along two dimensions of the mesh
            for dim, target in enumerate(targets):
                if now[dim] == target or targets is wholes and spec.placements[dim] == now[dim]:
                    continue
                length = shape[now[dim].dim] if isinstance(now[dim], Shard) else None
                local = converted(local, now[dim], target, spec.mesh.get_group(dim), length)
                now[dim] = target
        return DTensor._made(local.view_as(local), replace(spec, shape=shape))

    def _whole_length(self):
        """The length of the whole along the dimension that is divided in a mesh of one dimension, if it is known."""
        (placement,), shape = self.placements, self._spec.shape
        return shape[placement.dim] if isinstance(placement, Shard) and shape is not None else None

    @property
    def device_mesh(self):
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self):
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self):
        return self.to_local()

    def __repr__(self):
        detached: Any = self.detach()
        return (
            f"DTensor(local_tensor={detached.to_local()}, device_mesh={self.device_mesh}, placements={self.placements})"
        )


def _flat(value):
    """The tensors in nested arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """Spread a tensor, of which each process has the whole, over a mesh.

    All processes of the mesh call this, and take the values of process `src_data_rank` of each of its dimensions; for
    None each keeps its own.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.tensor import Shard, distribute_tensor
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(cygrad.ones(2), mesh, [Shard(0)])
    >>> (x + x).placements, (x + x).to_local()
    ((Shard(dim=0),), tensor([2., 2.]))
    >>> dist.destroy_process_group()
    """
    spec = _as_spec(device_mesh, placements)
    if isinstance(tensor, DTensor):
        if (tensor._spec.mesh, tensor._spec.placements) != (spec.mesh, spec.placements):
            raise ValueError(f"Cannot distribute a DTensor with placements {tensor.placements} to {spec.placements}.")
        return tensor
    cut = spec.sharded_dim()
    local = tensor.detach()
    if src_data_rank is not None and spec.mesh.size() > 1:
        local = local.clone(memory_format=cygrad.contiguous_format)
        for each in range(spec.mesh.ndim):
            broadcast(local, group=spec.mesh.get_group(each), group_src=src_data_rank)
    if cut is not None:
        mesh_dim, dim = cut
        local = local_part(local, dim, spec.mesh.size(mesh_dim), spec.mesh.get_local_rank(mesh_dim)).clone()
        spec = replace(spec, shape=tuple(tensor.shape))
    return DTensor._made(local, spec).requires_grad_(tensor.requires_grad)


def whole(local, spec):
    """The whole tensor from the parts of all processes."""
    if any(placement.is_partial() for placement in spec.placements) and spec.mesh.size() > 1:
        raise RuntimeError("full_tensor: cygrad does not add up tensors of which each process has a summand")
    cut = spec.sharded_dim()
    if cut is None:
        return local
    mesh_dim, dim = cut
    return gathered(local, dim, spec.shape, spec.mesh.get_group(mesh_dim))


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """Spread a module's parameters over a mesh: as `partition_fn(name, module, mesh)` does, or whole in each process.

    `input_fn` and `output_fn` see the inputs and outputs of each call. In one process parameters stay ordinary.

    >>> import cygrad
    >>> from cygrad.distributed.tensor import distribute_module, init_device_mesh
    >>> model = distribute_module(cygrad.nn.Linear(2, 1), init_device_mesh("cpu", (1,)))
    >>> type(model.weight).__name__
    'Parameter'
    >>> cygrad.distributed.destroy_process_group()
    """
    mesh = device_mesh if device_mesh is not None else init_device_mesh("cpu", (1,))
    if mesh.size() > 1:
        raise RuntimeError(
            f"distribute_module over {mesh}: cygrad does not divide what a module computes over processes\n"
            "  to fix it: use `parallelize_module`, which divides layers, `fully_shard`, which divides parameters, "
            "or `DistributedDataParallel`, which divides data"
        )
    if partition_fn is not None:
        for name, inner in module.named_modules():
            partition_fn(name, inner, mesh)
            for key, parameter in list(inner._parameters.items()):
                if isinstance(parameter, DTensor):
                    inner._parameters[key] = Parameter(parameter.to_local(), parameter.requires_grad)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, mesh))
    return module


def compute_local_shape_and_global_offset(global_shape, mesh, placements, skip_offset=False):
    """The shape of this process's part of a tensor, and where in it that begins."""
    shape, offset = list(global_shape), [0] * len(tuple(global_shape))
    cut = _as_spec(mesh, placements).sharded_dim()
    if cut is not None:
        mesh_dim, dim = cut
        first, last = bounds(shape[dim], mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim))
        shape[dim], offset[dim] = last - first, first
    return tuple(shape), tuple(offset)


def _factory(name, text):
    def factory(*size, requires_grad=False, dtype=None, layout=cygrad.strided, device_mesh=None, placements=None):
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        made = getattr(cygrad, name)(size, dtype=dtype, layout=layout)
        source = 0 if name.startswith("rand") else None
        made = distribute_tensor(made, device_mesh, placements, src_data_rank=source)
        return made.requires_grad_(requires_grad)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = f"""A DTensor of {text}.

    >>> import cygrad, cygrad.distributed.tensor as dt
    >>> mesh = dt.init_device_mesh("cpu", (1,))
    >>> x = dt.{name}(4, 3, device_mesh=mesh, placements=[dt.Shard(0)])
    >>> x.shape, x.placements, x.to_local().dtype
    (torch.Size([4, 3]), (Shard(dim=0),), torch.float32)
    >>> cygrad.distributed.destroy_process_group()
    """
    return factory


zeros = _factory("zeros", "zeros")
ones = _factory("ones", "ones")
empty = _factory("empty", "elements that are not set")
rand = _factory("rand", "random numbers from 0 to 1")
randn = _factory("randn", "normally distributed random numbers")


def full(
    size, fill_value, *, dtype=None, layout=cygrad.strided, requires_grad=False, device_mesh=None, placements=None
):
    """A DTensor of equal elements.

    >>> import cygrad
    >>> from cygrad.distributed import tensor
    >>> mesh = tensor.init_device_mesh("cpu", (1,))
    >>> tensor.full((2,), 7.0, device_mesh=mesh, placements=[tensor.Shard(0)]).to_local()
    tensor([7., 7.])
    >>> cygrad.distributed.destroy_process_group()
    """
    made = cygrad.full(size, fill_value, dtype=dtype, layout=layout)
    return distribute_tensor(made, device_mesh, placements, src_data_rank=None).requires_grad_(requires_grad)
