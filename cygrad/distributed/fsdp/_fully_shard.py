"""`fully_shard`, FSDP's function that changes modules in place, for a group of one process."""

from dataclasses import dataclass
from functools import wraps

import cygrad
from cygrad.distributed._c10d.errors import one_process
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.fsdp._precision import cast_floating, parameters_in_dtype

__all__ = [
    "CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy",
    "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which parameters, gradients and outputs take part in forward and backward."""

    param_dtype: cygrad.dtype | None = None
    reduce_dtype: cygrad.dtype | None = None
    output_dtype: cygrad.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the CPU's memory until they are used."""

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """The names of the dimensions of a mesh along which parameters are spread and copied."""

    shard: str | None = None
    replicate: str | None = None


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def wait(self):
        """Wait until the parameters are whole; one process has them so."""


class FSDPModule:
    """What `fully_shard` adds to a module's class. It controls when parameters are whole; here they always are."""

    __slots__ = ()  # so that a module can be made one

    def unshard(self, async_op=False):
        """Make the parameters whole."""
        return UnshardHandle() if async_op else None

    def reshard(self):
        """Keep only this process's part of the parameters, which is all of them."""


def _no_effect(name, text):
    def method(self, *args, **kwargs):
        pass

    method.__name__, method.__qualname__ = name, f"FSDPModule.{name}"
    method.__doc__ = f"{text}; has no effect in one process."
    setattr(FSDPModule, name, method)


for _name, _text in (
    ("set_all_reduce_hook", "Set a function that sees reduced gradients"),
    ("set_gradient_divide_factor", "Set what gradients are divided by when they are reduced"),
    ("set_is_last_backward", "Say whether the next backward pass is the last before the step"),
    ("set_modules_to_backward_prefetch", "Set which modules are fetched early in backward"),
    ("set_modules_to_forward_prefetch", "Set which modules are fetched early in forward"),
    ("set_post_optim_event", "Set the event that the next forward pass waits for"),
    ("set_reduce_scatter_divide_factor", "Set what gradients are divided by when they are reduced"),
    ("set_requires_all_reduce", "Say whether gradients are reduced between copies"),
    ("set_requires_gradient_sync", "Say whether gradients are reduced"),
    ("set_reshard_after_backward", "Say whether parameters are spread again after backward"),
    ("set_reshard_after_forward", "Say whether parameters are spread again after forward"),
    ("set_unshard_in_backward", "Say whether parameters are made whole in backward"),
):
    _no_effect(_name, _text)


def fully_shard(
    module,
    *,
    mesh=None,
    reshard_after_forward=None,
    shard_placement_fn=None,
    mp_policy=MixedPrecisionPolicy(),
    offload_policy=OffloadPolicy(),  # noqa: B008
    ignored_params=None,
    dp_mesh_dims=None,
):
    """Spread the parameters of a module, or of several, over the processes of a mesh; returns the module.

    The module's class gets the methods of `FSDPModule`. In one process parameters stay tensors as they are.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.fsdp import FSDPModule, fully_shard
    >>> model = fully_shard(cygrad.nn.Linear(2, 1))
    >>> isinstance(model, FSDPModule), type(model).__name__
    (True, 'FSDPLinear')
    >>> dist.destroy_process_group()
    """
    if mesh is None:
        mesh = init_device_mesh("cpu", (1,))
    if mesh.size() != 1:
        raise one_process(f"fully_shard over {mesh}")
    for each in module if isinstance(module, (list, tuple)) else [module]:
        if isinstance(each, (cygrad.nn.ModuleList, cygrad.nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        kind = type(each)
        each.__class__ = type(f"FSDP{kind.__name__}", (kind, FSDPModule), {"__module__": kind.__module__})
        each._fsdp_policy, each._fsdp_mesh = mp_policy, mesh
        _set_dtypes(each, mp_policy)
    return module


def _set_dtypes(module, policy):
    """Let a module compute in the dtypes of a policy."""
    if policy.param_dtype is not None:
        inner = module.forward

        @wraps(inner)
        def forward(*args, **kwargs):
            if policy.cast_forward_inputs:
                args, kwargs = cast_floating((args, kwargs), policy.param_dtype)
            with parameters_in_dtype(module, policy.param_dtype):
                return inner(*args, **kwargs)

        module.forward = forward
    if policy.output_dtype is not None:
        module.register_forward_hook(lambda _, args, output: cast_floating(output, policy.output_dtype))


def register_fsdp_forward_method(module, method_name):
    """Let a method of a module make its parameters whole, as `forward` does; one process has them so."""
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")


def share_comm_ctx(modules):
    """Let modules share their streams for collectives, of which one process needs none."""
