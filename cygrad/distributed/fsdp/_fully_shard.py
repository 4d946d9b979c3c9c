"""`fully_shard`, FSDP's function that changes modules in place: each process has a part of every parameter."""

from dataclasses import dataclass
from functools import wraps
from typing import Any

import cygrad
from cygrad.distributed._c10d.membership import get_world_size, is_initialized
from cygrad.distributed.device_mesh import init_device_mesh
from cygrad.distributed.fsdp._precision import cast_floating
from cygrad.distributed.fsdp._unit import Unit, units_in
from cygrad.distributed.tensor.placement_types import Shard

__all__ = [
    "CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy",
    "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which parameters are gathered and used, gradients are reduced, and outputs are returned.

    None leaves them as they are; `reduce_dtype` is `param_dtype` by default. Parameters and their `.grad` stay in the
    parameters' own dtype. With `cast_forward_inputs` floating-point inputs are converted to `param_dtype`.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    >>> policy = MixedPrecisionPolicy(param_dtype=cygrad.float16, output_dtype=cygrad.float32)
    >>> model = fully_shard(cygrad.nn.Linear(2, 1), mp_policy=policy)
    >>> model(cygrad.ones(3, 2)).dtype, model.weight.dtype
    (torch.float32, torch.float32)
    >>> cygrad.distributed.destroy_process_group()
    """

    param_dtype: cygrad.dtype | None = None
    reduce_dtype: cygrad.dtype | None = None
    output_dtype: cygrad.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on their device.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import OffloadPolicy, fully_shard
    >>> model = fully_shard(cygrad.nn.Linear(2, 1), offload_policy=OffloadPolicy())
    >>> cygrad.distributed.destroy_process_group()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in the CPU's memory until they are used.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import CPUOffloadPolicy, fully_shard
    >>> model = fully_shard(cygrad.nn.Linear(2, 1), offload_policy=CPUOffloadPolicy(pin_memory=False))
    >>> model.weight.device
    device(type='cpu')
    >>> cygrad.distributed.destroy_process_group()
    """

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """The names of the dimensions of a mesh along which parameters are spread and copied.

    >>> import cygrad
    >>> cygrad.distributed.fsdp.DataParallelMeshDims(shard="shard", replicate="replicate")
    DataParallelMeshDims(shard='shard', replicate='replicate')
    """

    shard: str | None = None
    replicate: str | None = None


class UnshardHandle:
    """What `unshard(async_op=True)` returns.

    >>> import cygrad
    >>> model = cygrad.distributed.fsdp.fully_shard(cygrad.nn.Linear(2, 1))
    >>> handle = model.unshard(async_op=True)
    >>> handle.wait()
    >>> model.weight.shape
    torch.Size([1, 2])
    >>> cygrad.distributed.destroy_process_group()
    """

    def __init__(self, unit=None):
        self._unit = unit

    def wait(self):
        """Wait until the parameters are whole."""
        if self._unit is not None:
            self._unit.fetch()


class FSDPModule:
    """What `fully_shard` adds to a module's class: it controls when parameters are whole and gradients are reduced.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import FSDPModule, fully_shard
    >>> model = fully_shard(cygrad.nn.Linear(2, 1))
    >>> isinstance(model, FSDPModule)
    True
    >>> model.set_reshard_after_forward(False)
    >>> model.set_reshard_after_backward(True)
    >>> model.set_gradient_divide_factor(2.0)  # or set_reduce_scatter_divide_factor
    >>> model.set_reduce_scatter_divide_factor(1.0)
    >>> model.set_requires_gradient_sync(False)  # gradients of this batch are not reduced
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.set_requires_gradient_sync(True)  # those of both are
    >>> model(cygrad.ones(3, 2)).sum().backward()
    >>> model.unshard()
    >>> model.weight.shape
    torch.Size([1, 2])
    >>> model.reshard()
    >>> cygrad.distributed.destroy_process_group()
    """

    __slots__ = ()  # so that a module can be made one
    _fsdp_unit: Any

    def unshard(self, async_op=False):
        """Make the parameters of this module whole, early or for looking at them; all processes call it.

        They stay so until `reshard`, or until forward or backward gives them back as after any use.
        """
        if async_op:
            self._fsdp_unit.begin_gathering()
            return UnshardHandle(self._fsdp_unit)
        self._fsdp_unit.fetch()
        return None

    def reshard(self):
        """Keep only this process's part of the parameters. What has been written to the whole ones is lost."""
        self._fsdp_unit.let_go()

    def _set(self, recurse, **values):
        for unit in units_in(self) if recurse else [self._fsdp_unit]:
            for name, value in values.items():
                setattr(unit, name, value)

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Say whether backward reduces gradients. If not, whole gradients accumulate until it does."""
        self._set(recurse, reduces=requires_gradient_sync)

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Say whether the whole parameters are given back after forward, or kept until backward."""
        self._set(recurse, keeps_whole=not reshard_after_forward)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Say whether the whole parameters are given back after backward, or kept until the next forward."""
        self._set(recurse, gives_back=reshard_after_backward)

    def set_gradient_divide_factor(self, factor):
        """Set what gradients are divided by when they are reduced; by default the number of processes."""
        self._set(True, divisor=factor)

    def set_reduce_scatter_divide_factor(self, factor):
        """`set_gradient_divide_factor` by its older name."""
        self._set(True, divisor=factor)


def _no_effect(name, text, argument):
    def method(self, *args, **kwargs):
        pass

    method.__name__, method.__qualname__ = name, f"FSDPModule.{name}"
    method.__doc__ = f"""{text}; has no effect here.

    >>> import cygrad, cygrad.distributed as dist
    >>> model = dist.fsdp.fully_shard(cygrad.nn.Linear(2, 1))
    >>> model.{name}({argument})
    >>> dist.destroy_process_group()
    """
    setattr(FSDPModule, name, method)


for _name, _text, _argument in (
    ("set_all_reduce_hook", "Set a function that sees reduced gradients", "lambda grad: None"),
    ("set_is_last_backward", "Say whether the next backward pass is the last before the step", "True"),
    ("set_modules_to_backward_prefetch", "Set which modules are fetched early in backward", "[]"),
    ("set_modules_to_forward_prefetch", "Set which modules are fetched early in forward", "[]"),
    ("set_post_optim_event", "Set the event that the next forward pass waits for", "cygrad.cpu.Event()"),
    ("set_requires_all_reduce", "Say whether gradients are reduced between copies", "True"),
    ("set_unshard_in_backward", "Say whether parameters are made whole in backward", "True"),
):
    _no_effect(_name, _text, _argument)


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
    """Divide the parameters of a module, or of several, over the processes of a mesh; returns the module.

    Apply it to layers first and to the whole module last: a call takes the parameters that no earlier one has. Each
    process then has some rows of every parameter (`ShardedParameter`), with their gradients and optimizer state. Whole
    parameters are gathered before the module's `forward` and given back after it (with `reshard_after_forward`; by
    default all but the outermost module do), gathered again in backward, and gradients are averaged and divided during
    backward. A mesh of two dimensions keeps copies along its first. Make the optimizer afterwards. Call the module
    itself: submodules called in other ways see their part (`register_fsdp_forward_method`).

    The module's class gets the methods of `FSDPModule`. Raises ValueError for containers without `forward`, scalar
    parameters, and placements other than `Shard(0)`.

    >>> import cygrad, cygrad.distributed as dist
    >>> from cygrad.distributed.fsdp import FSDPModule, fully_shard
    >>> model = fully_shard(cygrad.nn.Linear(2, 1))
    >>> isinstance(model, FSDPModule), type(model).__name__
    (True, 'FSDPLinear')
    >>> dist.destroy_process_group()
    """
    if mesh is None:
        mesh = init_device_mesh("cpu", (get_world_size() if is_initialized() else 1,))
    modules = module if isinstance(module, (list, tuple)) else [module]
    for each in modules:
        if isinstance(each, (cygrad.nn.ModuleList, cygrad.nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if shard_placement_fn is not None:
            for name, parameter in each.named_parameters():
                if shard_placement_fn(parameter) not in (None, Shard(0)):
                    raise ValueError(f"fully_shard: cygrad divides parameters along dimension 0 only\n  got {name}")
    for each in modules:
        each = each._modules.get("_orig_mod", each)  # within a compiled module, which passes all else on to it
        kind = type(each)
        unit = Unit(
            each,
            mesh,
            mp_policy,
            keeps_whole=None if reshard_after_forward is None else not reshard_after_forward,
            ignored=ignored_params or (),
        )
        each.__class__ = type(f"FSDP{kind.__name__}", (kind, FSDPModule), {"__module__": kind.__module__})
        attach(each, unit)
    return module


def attach(module, unit):
    """Let a module's `forward` and its state dictionaries use a unit."""
    module._fsdp_unit, module._fsdp_policy, module._fsdp_mesh = unit, unit.policy, unit.mesh
    module.register_state_dict_pre_hook(unit.before_state)
    module._register_state_dict_hook(unit.parts_in_state)
    module.register_load_state_dict_pre_hook(unit.parts_of_state)
    module.register_load_state_dict_post_hook(unit.adopt)
    _wrap_method(module, "forward", unit)


def _wrap_method(module, name, unit):
    """Let a method of a module have whole parameters, and the dtypes of its unit's policy."""
    inner, policy = getattr(module, name), unit.policy

    @wraps(inner)
    def method(*args, **kwargs):
        if policy.cast_forward_inputs and policy.param_dtype is not None:
            args, kwargs = cast_floating((args, kwargs), policy.param_dtype)
        with unit.at_work():
            output = inner(*args, **kwargs)
        return cast_floating(output, policy.output_dtype)

    setattr(module, name, method)


def register_fsdp_forward_method(module, method_name):
    """Let a method of a module of `fully_shard` have whole parameters, as `forward` does; others stay as they are.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import fully_shard, register_fsdp_forward_method
    >>> class Model(cygrad.nn.Linear):
    ...     def generate(self, x):
    ...         return self(x).argmax(-1)
    >>> model = fully_shard(Model(2, 3))
    >>> register_fsdp_forward_method(model, "generate")
    >>> model.generate(cygrad.ones(4, 2)).shape
    torch.Size([4])
    >>> cygrad.distributed.destroy_process_group()
    """
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    if isinstance(module, FSDPModule):
        _wrap_method(module, method_name, module._fsdp_unit)


def share_comm_ctx(modules):
    """Let modules share their streams for collectives, of which one process needs none.

    >>> import cygrad
    >>> from cygrad.distributed.fsdp import fully_shard, share_comm_ctx
    >>> share_comm_ctx([fully_shard(cygrad.nn.Linear(2, 2)), fully_shard(cygrad.nn.Linear(2, 1))])
    >>> cygrad.distributed.destroy_process_group()
    """
